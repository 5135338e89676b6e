//go:build linux

package interop_test

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// slurmConfig is one controller and two nodes on this machine, each with one processor.
const slurmConfig = `ClusterName=tidepool
SlurmctldHost=%[1]s(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=%[2]s/munge.sock
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
SlurmctldPort=6817
StateSaveLocation=%[2]s/state
SlurmdSpoolDir=%[2]s/spool-%%n
SlurmctldPidFile=%[2]s/slurmctld.pid
SlurmdPidFile=%[2]s/%%n.pid
SlurmctldLogFile=%[2]s/slurmctld.log
SlurmdLogFile=%[2]s/%%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SchedulerParameters=sched_interval=1
NodeName=n1 NodeHostname=%[1]s NodeAddr=127.0.0.1 Port=6821 CPUs=1 State=UNKNOWN
NodeName=n2 NodeHostname=%[1]s NodeAddr=127.0.0.1 Port=6822 CPUs=1 State=UNKNOWN
PartitionName=lab Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
`

// cluster is Slurm in a network namespace, with its files in a folder of the test.
type cluster struct {
	*bed
	controller *background
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	need(t, "nsenter", "sbatch", "slurmctld", "slurmd", "munged")
	c := &cluster{bed: &bed{t: t}}
	c.namespace()
	// A socket's path has at most 107 bytes, and t.TempDir's path is long.
	dir, err := os.MkdirTemp("", "tidepool-slurm") //nolint:usetesting // see above
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chmod(dir, 0o755))
	c.dir = dir
	t.Cleanup(c.showLogs)
	// Slurm resolves names only if another interface than lo has an address.
	c.must(c.command("ip", "link", "add", "s0", "type", "veth", "peer", "name", "s1"))
	c.must(c.command("ip", "address", "add", "192.0.2.1/24", "dev", "s0"))
	c.must(c.command("ip", "link", "set", "s0", "up"))
	host, err := os.Hostname()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(c.path("slurm.conf"), fmt.Appendf(nil, slurmConfig, host, dir), 0o600))
	key := make([]byte, 1024)
	_, _ = rand.Read(key)
	require.NoError(t, os.WriteFile(c.path("munge.key"), key, 0o600))
	require.NoError(t, os.Mkdir(c.path("state"), 0o755))

	c.daemon("munged", "--foreground", "--force", "--key-file="+c.path("munge.key"),
		"--socket="+c.path("munge.sock"), "--pid-file="+c.path("munged.pid"),
		"--log-file="+c.path("munged.log"), "--seed-file="+c.path("munged.seed"))
	c.eventually("munged listens", func() bool {
		conn, err := net.Dial("unix", c.path("munge.sock"))
		if err == nil {
			err = conn.Close()
		}
		return err == nil
	})
	c.controller = c.daemon("slurmctld", "-D")
	c.daemon("slurmd", "-D", "-N", "n1")
	c.daemon("slurmd", "-D", "-N", "n2")
	c.eventually("two nodes are idle", func() bool {
		return strings.Count(c.ask("sinfo", "--noheader", "--Node", "--format=%T"), "idle") == 2
	})
	return c
}

// showLogs shows what the daemons said if the test failed.
func (c *cluster) showLogs() {
	if !c.t.Failed() {
		return
	}
	paths, _ := filepath.Glob(c.path("*.log"))
	for _, p := range paths {
		text, _ := os.ReadFile(p)
		c.t.Logf("%s:\n%s", p, text[max(0, len(text)-3000):])
	}
}

// slurm returns a command that finds this cluster. slurmd looks for its cgroups in /sys. nsenter
// does not change /sys, but `ip netns exec` would replace it.
func (c *cluster) slurm(name string, args ...string) *exec.Cmd {
	cmd := c.commandFor(10*patience, "")
	cmd.Path, cmd.Err = exec.LookPath("nsenter")
	cmd.Args = append([]string{"nsenter", "--net=/run/netns/" + c.name, name}, args...)
	cmd.Env = append(os.Environ(), "SLURM_CONF="+c.path("slurm.conf"))
	return cmd
}

// daemon starts a daemon that ends with the test.
func (c *cluster) daemon(name string, args ...string) *background {
	c.t.Helper()
	p := c.start(c.slurm(name, args...))
	c.t.Cleanup(func() { p.stop(syscall.SIGTERM) })
	return p
}

// ask returns the output of a Slurm command, even if the command fails.
func (c *cluster) ask(name string, args ...string) string {
	out, _ := c.slurm(name, args...).CombinedOutput()
	return strings.TrimSpace(string(out))
}

func (c *cluster) eventually(what string, is func() bool) {
	c.t.Helper()
	require.Eventually(c.t, is, 2*patience, 50*time.Millisecond, what)
}

// tasks returns the processes that run parts, by the number of the part.
func tasks(program string) map[int]int {
	running := map[int]int{}
	paths, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, p := range paths {
		if exe, err := os.Readlink(p); err != nil || exe != program {
			continue
		}
		words, err := os.ReadFile(filepath.Join(filepath.Dir(p), "cmdline"))
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(p)))
		list := bytes.Split(bytes.TrimRight(words, "\x00"), []byte{0})
		index, _ := bytes.CutPrefix(list[len(list)-1], []byte("--index="))
		if part, e := strconv.Atoi(string(index)); err == nil && e == nil {
			running[part] = pid
		}
	}
	return running
}

// A sweep in Slurm loses no part, and no part has two different results, although tasks are killed,
// a node is drained and the controller restarts. The results equal those of a run on one machine,
// byte for byte.
func TestSlurmRunsASweep(t *testing.T) {
	report(t, &row{peer: "Slurm", scenario: "64 parts; 2 killed, a node drained, a restart"})
	c := newCluster(t)
	c.must(exec.Command("go", "build", "-o", c.dir, "../../cmd/node"))
	node, dir, alone := c.path("node"), c.path("sweep"), c.path("alone")
	sweep := []string{"tahoe-low", "--trials", "64", "--set", "duration=60s"}
	said := c.ask(node, append(append([]string{"lab", "submit"}, sweep...), "--on", "slurm", "-o",
		c.path("refused"), "--", "--partition=nope")...)
	assert.Contains(t, said, "invalid partition specified: nope")
	assert.Contains(t, said, "sinfo lists the partitions")
	assert.NotContains(t, said, "\n", "one line")

	submit := c.start(c.slurm(node, append(append([]string{"lab", "submit"}, sweep...),
		"--on", "slurm", "--parts", "64", "-o", dir)...))

	t.Cleanup(func() { t.Log(submit.out.String(), c.ask("squeue")) })

	killed := map[int]bool{}
	c.eventually("two tasks are killed", func() bool {
		for part, pid := range tasks(filepath.Join(dir, "batch", "node")) {
			if part > 0 && !killed[part] && len(killed) < 2 && syscall.Kill(pid, syscall.SIGKILL) == nil {
				killed[part] = true
			}
		}
		return len(killed) == 2
	})
	require.Empty(t, c.ask("scontrol", "update", "NodeName=n2", "State=DRAIN", "Reason=test"))
	c.eventually("n2 is drained", func() bool {
		return c.ask("sinfo", "--noheader", "--Node", "--nodes=n2", "--format=%T") == "drained"
	})
	require.Empty(t, c.ask("scontrol", "update", "NodeName=n2", "State=RESUME"))
	c.controller.stop(syscall.SIGTERM)
	assert.Contains(t, c.ask("sinfo"), "Unable to contact slurm controller")
	c.controller = c.daemon("slurmctld", "-D")
	c.eventually("the controller answers", func() bool {
		return strings.Contains(c.ask("scontrol", "ping"), "UP")
	})
	submit.wait()
	t.Log(submit.out.String())
	assert.Contains(t, submit.out.String(), "2 parts failed and are queued again")
	assert.Contains(t, submit.out.String(), "192 runs")

	c.must(c.slurm(node, append(append([]string{"lab", "run"}, sweep...), "-o", alone)...))
	c.must(exec.Command("diff", "-r", "--exclude=batch", dir, alone))
}
