package e2e_test

import (
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

// A daemon that forks twice and has its own session outlives the command that started it as a host.
// It still serves the network, and it outlives the network, too.
func TestDaemonAsHost(t *testing.T) {
	t.Parallel()
	h := runHosts(t, "nets", "a-b")
	self, err := os.Executable()
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "pid")
	const daemon = `(setsid sh -c 'echo $$ >"$1"; exec "$0"' "$1" "$2" </dev/null >/dev/null 2>&1 &)`
	c := h.in("B", "sh", "-c", daemon, "sh", self, file)
	c.Env = append(c.Env, serveEnv+"=:80")
	out, err := c.CombinedOutput() // the command ends, although the daemon runs
	require.NoError(t, err, string(out))
	require.Eventually(t, func() bool {
		text, _ := h.get("A", "http://b/")
		return strings.Contains(text, "a page for 10.0.0.1:")
	}, Soon, 20*time.Millisecond)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	h.down()
	require.NoError(t, syscall.Kill(pid, 0), "the daemon still runs")
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
}

// A program whose name server does not answer gets an error after a few seconds.
func TestResolverOfAHostHangs(t *testing.T) {
	t.Parallel()
	h := runHosts(t, "nets", "a-b")
	h.net.Append("A", "dns server 10.9.0.1", "route 10.9.0.0/16 blackhole")
	start := time.Now()
	out, err := h.get("A", "http://not-in-hosts/")
	assert.Error(t, err)
	assert.Contains(t, out, "not-in-hosts")
	assert.Contains(t, out, "timeout")
	assert.Less(t, time.Since(start), Soon)
}

// The path of a network cannot be used to enter another network with the same name.
func TestNameOfANetworkIsTaken(t *testing.T) {
	t.Parallel()
	h := runHosts(t, "nets", "a-b")
	other := filepath.Join(t.TempDir(), filepath.Base(h.folder))
	require.NoError(t, os.CopyFS(other, os.DirFS(h.folder)))
	assert.Equal(t, "A\n", h.output("A", "echo", "A"))
	c := Command("in", "--state", h.state, other+":A", "--", "true")
	out, err := c.CombinedOutput()
	assert.Error(t, err)
	assert.Contains(t, string(out), "another network named "+filepath.Base(other)+" is up, from "+
		h.folder)
	name := filepath.Base(h.folder)
	out, err = Command("in", "--state", h.state, name+":A", "--", "echo", "A").CombinedOutput()
	assert.NoError(t, err)
	assert.Equal(t, "A\n", string(out))
}

// On a full disk, captures and logs fail with one line. If the disk fills up while a program runs
// behind the link, the program continues. The disk is a tmpfs in a mount namespace.
func TestFullDiskOfALink(t *testing.T) {
	t.Parallel()
	needLink(t)
	const script = `mount -t tmpfs -o size=64k tmpfs . && cd . || exit 3
printf '1\n2\n' >t; head -c 200k /dev/zero >fill 2>/dev/null
"$0" mm-link t t --uplink-log=log -- echo runs; echo "status $?"
"$0" link --pcap first.pcapng -- echo runs; echo "status $?"
rm *.pcapng; head -c 40k /dev/zero >fill
"$0" link --pcap second.pcapng -- "$1"; echo "status $?"`
	self, err := os.Executable()
	require.NoError(t, err)
	c := exec.Command("unshare", "-rm", "sh", "-c", `cd "$2" && `+script, Command().Path, self,
		t.TempDir())
	text := strings.Repeat("a page ", 10_000)
	c.Env = append(Command().Env, getEnv+"=http://100.64.0.1:"+page(t, text)+"/")
	out, err := c.CombinedOutput()
	if c.ProcessState.ExitCode() == 3 {
		t.Skip("skip: needs mounts in user namespaces:", string(out))
	}
	require.NoError(t, err, string(out))
	got := string(out)
	assert.NotContains(t, got, "runs", "a log or capture that cannot be created")
	assert.Contains(t, got, "log: no space left on device\nstatus 1\n")
	assert.Contains(t, got, "first.pcapng: no space left on device\nstatus 1\n")
	assert.Contains(t, got, text)
	assert.Regexp(t, `second.pcapng: no space left on device; the file contains [1-9].*\nstatus 1\n$`,
		got)
}
