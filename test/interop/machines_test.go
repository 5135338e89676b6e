//go:build linux

package interop_test

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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

	"github.com/tidepool-net/tidepool/internal/api"
	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/control"
)

// machineNet has one node here, and others on two machines. R, on the second machine, is the router
// to all others.
const machineNet = `host alpha ssh root@alpha
host beta ssh beta
node A alpha
node R beta
node B beta
link A R
link R B
link R C
`

// machines are three network namespaces on one bridge. The program runs in the first. Each of the
// other two is a machine with its own sshd and home folder.
type machines struct {
	*bed
	far map[string]*machine
}

type machine struct {
	*bed
	addr, home, config, cable string
	sshd                      *background
}

func newMachines(t *testing.T) *machines {
	t.Helper()
	sshd := "/usr/sbin/sshd"
	if _, err := os.Stat(sshd); err != nil {
		t.Skip("skip: needs sshd")
	}
	need(t, "ssh", "ssh-keygen")
	m := &machines{bed: &bed{t: t}, far: map[string]*machine{}}
	m.namespace()
	m.must(exec.Command("go", "build", "-o", m.dir, "../../cmd/node"))
	m.must(m.command("ip", "link", "add", "br0", "type", "bridge"))
	m.must(m.command("ip", "addr", "add", "192.0.2.1/24", "dev", "br0"))
	m.must(m.command("ip", "link", "set", "br0", "up"))
	m.key("key")
	m.write("authorized", m.read("key.pub"))
	known := ""
	for i, name := range []string{"alpha", "beta"} {
		f := &machine{bed: &bed{t: t}, addr: "192.0.2." + strconv.Itoa(i+2), cable: "e" + name}
		f.namespace()
		m.far[name] = f
		m.must(exec.Command("ip", "link", "add", f.cable, "netns", m.name, "type", "veth",
			"peer", "name", "eth0", "netns", f.name))
		m.must(m.command("ip", "link", "set", f.cable, "master", "br0", "up"))
		f.must(f.command("ip", "addr", "add", f.addr+"/24", "dev", "eth0"))
		f.must(f.command("ip", "link", "set", "eth0", "up"))
		f.home = m.path("home-" + name)
		require.NoError(t, os.MkdirAll(filepath.Join(f.home, ".cache"), 0o700))
		m.key("host-" + name)
		f.config = m.write("sshd-"+name, fmt.Sprintf("ListenAddress %s\nHostKey %s\n"+
			"AuthorizedKeysFile %s\nStrictModes no\nUsePAM no\nPidFile none\n", f.addr,
			m.path("host-"+name), m.path("authorized")))
		known += f.addr + " " + m.read("host-"+name+".pub")
		t.Cleanup(f.end)
		f.start()
	}
	t.Cleanup(m.end)
	m.write("known", known)
	m.write("config", fmt.Sprintf("Host alpha\n HostName 192.0.2.2\nHost beta\n HostName 192.0.2.3\n"+
		"Host *\n User root\n IdentityFile %s\n IdentitiesOnly yes\n UserKnownHostsFile %s\n"+
		" GlobalKnownHostsFile none\n", m.path("key"), m.path("known")))
	require.NoError(t, os.Mkdir(m.path("bin"), 0o700))
	m.write("bin/ssh", "#!/bin/sh\nexec /usr/bin/ssh -F "+m.path("config")+" \"$@\"\n")
	require.NoError(t, os.Chmod(m.path("bin/ssh"), 0o700))
	m.write("mine.net", machineNet)
	return m
}

func (m *machines) key(name string) {
	m.must(exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", m.path(name)))
}

func (m *machines) write(name, text string) string {
	m.t.Helper()
	require.NoError(m.t, os.WriteFile(m.path(name), []byte(text), 0o600))
	return m.path(name)
}

func (m *machines) read(name string) string {
	m.t.Helper()
	text, err := os.ReadFile(m.path(name))
	require.NoError(m.t, err)
	return string(text)
}

// start starts the machine's sshd, in a mount namespace with the machine's home.
func (f *machine) start() {
	f.t.Helper()
	f.sshd = f.bed.start(f.commandFor(5*time.Minute, "sh", "-c", "mount -t tmpfs tmpfs /run && "+
		"mkdir /run/sshd && mount --bind "+f.home+" /root && cd / && "+
		"exec /usr/sbin/sshd -D -e -f "+f.config+" >"+f.config+".log 2>&1"))
	require.Eventually(f.t, func() bool {
		return f.inside(func() error {
			c, err := net.DialTimeout("tcp4", f.addr+":22", time.Second)
			if err == nil {
				err = c.Close()
			}
			return err
		}) == nil
	}, patience, 20*time.Millisecond)
}

// mount mounts something where the machine's sshd runs, for one test.
func (f *machine) mount(t *testing.T, args ...string) {
	t.Helper()
	// ip and sh have been replaced by sshd
	inside := []string{"-t", strconv.Itoa(f.sshd.cmd.Process.Pid), "-m"}
	require.NoError(t, exec.Command("nsenter", append(append(inside, "mount"), args...)...).Run())
	t.Cleanup(func() {
		require.NoError(t, exec.Command("nsenter", append(inside, "umount", "-l", args[len(args)-1])...).Run())
	})
}

// pids returns the processes in a namespace, except its sshd.
func (b *bed) pids() (list []string) {
	b.t.Helper()
	for pid := range strings.FieldsSeq(b.must(exec.Command("ip", "netns", "pids", b.name))) {
		text, err := os.ReadFile("/proc/" + pid + "/cmdline")
		if err == nil && len(text) > 0 && !bytes.Contains(text, []byte("sshd")) &&
			pid != strconv.Itoa(os.Getpid()) {
			list = append(list, pid+" "+strings.ReplaceAll(string(text), "\x00", " "))
		}
	}
	return list
}

// end kills all processes of a namespace.
func (b *bed) end() {
	b.t.Helper()
	require.Eventually(b.t, func() bool {
		left := false
		for pid := range strings.FieldsSeq(b.must(exec.Command("ip", "netns", "pids", b.name))) {
			n, err := strconv.Atoi(pid)
			if n == os.Getpid() { // the first thread of this process may have entered the namespace
				continue
			}
			require.NoError(b.t, err)
			_ = syscall.Kill(n, syscall.SIGKILL) // the process may have exited
			left = true
		}
		return !left
	}, patience, 20*time.Millisecond)
}

// node returns a command of the program.
func (m *machines) node(args ...string) *exec.Cmd {
	c := m.command(m.path("node"), args...)
	c.Env = append(os.Environ(), "PATH="+m.path("bin"), "XDG_RUNTIME_DIR="+m.dir)
	return c
}

// run runs a command of the program and returns its status and everything that it printed.
func (m *machines) run(args ...string) (int, string) {
	m.t.Helper()
	c := m.node(args...)
	text, err := c.CombinedOutput()
	if c.ProcessState == nil {
		require.NoError(m.t, err)
	}
	return c.ProcessState.ExitCode(), string(text)
}

// lives returns the states of the nodes, as `net status` prints them.
func (m *machines) lives() map[string]string {
	m.t.Helper()
	out, _ := m.node("net", "status", "--json").Output() // the exit status is 1 if a node is not up
	var list []struct {
		Nodes []struct{ Name, Host, Life string }
	}
	require.NoError(m.t, json.Unmarshal(out, &list), "%s", out)
	lives := map[string]string{}
	for _, n := range list[0].Nodes {
		lives[strings.TrimPrefix(n.Host+"/"+n.Name, "/")] = n.Life
	}
	return lives
}

// transfer sends a megabyte from A to B, over the router.
func (m *machines) transfer() {
	t := m.t
	t.Helper()
	data := make([]byte, 1_000_000)
	_, _ = rand.Read(data) // never fails
	require.NoError(t, os.WriteFile(filepath.Join(m.far["alpha"].home, "in.bin"), data, 0o600))
	receiver := m.bed.start(m.node("ctl", "B", "recvfile", "--force", "out.bin", "9000"))
	var text string
	require.Eventually(t, func() bool {
		_, text = m.run("ctl", "B", "sockets", "-l")
		return strings.Contains(text, "LISTEN")
	}, patience, 20*time.Millisecond, "%s%s", text, &receiver.out)
	code, text := m.run("ctl", "A", "sendfile", "in.bin", "10.1.0.2", "9000")
	require.Zero(t, code, text)
	receiver.wait()
	got, err := os.ReadFile(filepath.Join(m.far["beta"].home, "out.bin"))
	require.NoError(t, err)
	assert.Equal(t, sha256.Sum256(data), sha256.Sum256(got))
	sum := sha256.Sum256(data)
	assert.Contains(t, text, hex.EncodeToString(sum[:]))
}

// TestMachines runs a network over two machines, with a transfer between them. One vanishes and
// returns.
func TestMachines(t *testing.T) {
	m := newMachines(t)
	report(t, &row{peer: "OpenSSH", scenario: "a network over two machines"})
	require.NoError(t, os.Mkdir(filepath.Join(m.far["beta"].home, ".cache/tidepool"), 0o700))
	older := m.write("home-beta/.cache/tidepool/node@0123456789abcdef", "")
	m.write("date", "#!/bin/sh\necho 1000000000\n")
	require.NoError(t, os.Chmod(m.path("date"), 0o700))
	m.far["alpha"].mount(t, "--bind", m.path("date"), "/usr/bin/date")
	code, text := m.run("net", "up", m.path("mine.net"))
	require.Zero(t, code, text)
	assert.Contains(t, text, "copying this program (")
	assert.Contains(t, text, " MB) to host alpha: ")
	assert.Contains(t, text, " MB) to host beta, which had another version: ")
	assert.NoFileExists(t, older)
	assert.Contains(t, text, "note: the clock of host alpha is ")
	assert.NotContains(t, text, "the clock of host beta")
	assert.Contains(t, text, "started: A B C R\n")
	m.transfer()
	up := map[string]string{"alpha/A": "up", "beta/B": "up", "beta/R": "up", "C": "up"}
	assert.Equal(t, up, m.lives())
	m.page("A", "C", "R")

	beta := m.far["beta"]
	beta.end()
	gone := map[string]string{
		"alpha/A": "up", "beta/B": "unreachable", "beta/R": "unreachable", "C": "up",
	}
	assert.Equal(t, gone, m.lives())
	code, text = m.run("net", "apply")
	assert.Equal(t, 1, code)
	assert.Contains(t, text, "host beta (beta) is unreachable: ")
	assert.Contains(t, text, "\nno node was changed\n")
	code, text = m.run("ctl", "R", "routes")
	assert.Equal(t, 1, code)
	assert.Contains(t, text, "host beta (beta) is unreachable: ")

	beta.start()
	code, text = m.run("net", "apply")
	require.Zero(t, code, text)
	assert.NotContains(t, text, "copying", "the program is there")
	assert.Contains(t, text, "started: B R\nalready running: A C\n")
	assert.Equal(t, up, m.lives())
	m.transfer()

	m.must(m.command("ip", "link", "set", beta.cable, "down"))
	began := time.Now()
	assert.Equal(t, gone, m.lives())
	assert.Less(t, time.Since(began), patience/2)
	m.must(m.command("ip", "link", "set", beta.cable, "up"))
	require.Eventually(t, func() bool {
		code, text = m.run("net", "apply")
		return code == 0
	}, patience, 20*time.Millisecond, "%s", text)
	assert.Equal(t, up, m.lives())

	code, text = m.run("net", "down")
	require.Zero(t, code, text)
	assert.Contains(t, text, "mine is down: 4 nodes stopped\n")
	for _, b := range []*bed{m.bed, m.far["alpha"].bed, beta.bed} {
		require.Eventually(t, func() bool { return len(b.pids()) == 0 }, patience,
			20*time.Millisecond, "%v", b.pids())
	}
	assert.NoDirExists(t, m.path("tidepool/mine"))
}

// page requests the interfaces of nodes from the server of the network's page.
func (m *machines) page(nodes ...string) {
	m.t.Helper()
	socket := m.path("page.sock")
	server := m.bed.start(m.node("net", "serve", "--socket", socket))
	require.Eventually(m.t, func() bool { return api.Answers(m.t.Context(), socket) }, patience,
		20*time.Millisecond)
	for _, node := range nodes {
		c := api.NewClient(api.Endpoint{Socket: socket}, node)
		faces := testenv.Ask(m.t, c, control.Interfaces{})
		assert.NotEmpty(m.t, faces, node)
		c.Close()
	}
	server.stop(syscall.SIGTERM)
}

// TestMachineFaults makes `net up` fail in many ways. Each time, one line says where it failed, and
// nothing is left running.
func TestMachineFaults(t *testing.T) {
	m := newMachines(t)
	config, known, ssh := m.read("config"), m.read("known"), m.read("bin/ssh")
	m.key("other")
	taken := func(t *testing.T) {
		f := m.far["beta"]
		require.NoError(t, f.inside(func() error {
			c, err := net.ListenPacket("udp4", "192.0.2.3:6001")
			if err == nil {
				t.Cleanup(func() { _ = c.Close() })
			}
			return err
		}))
	}
	for name, f := range map[string]struct {
		arrange func(t *testing.T)
		file    string
		want    string
	}{
		"silent": {
			func(t *testing.T) { m.write("config", strings.ReplaceAll(config, "192.0.2.3", "192.0.2.9")) }, "",
			"host beta (beta) is unreachable: ",
		},
		"wrong key": {
			func(t *testing.T) { m.write("config", strings.Replace(config, m.path("key"), m.path("other"), 1)) }, "",
			"is unreachable: root@192.0.2.2: Permission denied (publickey",
		},
		"unknown host key": {
			func(t *testing.T) { m.write("known", "") }, "",
			"is unreachable: its host key is unknown: run `ssh root@alpha true` once",
		},
		"changed host key": {
			func(t *testing.T) {
				m.write("known", strings.ReplaceAll(known, m.read("host-alpha.pub"), m.read("other.pub")))
			}, "", "is unreachable: its host key is not the one in known_hosts",
		},
		"port taken": {
			taken, "", "on host beta, interface if0 cannot have 192.0.2.3:6001: ",
		},
		"address of another": {
			func(t *testing.T) {}, strings.Replace(machineNet, "ssh beta", "ssh beta address 192.0.2.77", 1),
			"mine.net:2:6: on host beta, interface if0 cannot have 192.0.2.77:6001: not an address of " +
				"this machine; expected one of this machine's: ",
		},
		"no path between": {
			func(t *testing.T) {
				f := m.far["beta"]
				f.must(f.command("ip", "addr", "add", "203.0.113.3/32", "dev", "lo"))
				m.must(m.command("ip", "route", "add", "default", "dev", "br0"))
				a := m.far["alpha"]
				a.must(a.command("ip", "route", "add", "default", "dev", "eth0"))
				f.sysctl("net/ipv4/conf/eth0/arp_ignore", "1")
			}, strings.Replace(machineNet, "ssh beta", "ssh beta address 203.0.113.3", 1),
			"link A R: no packet of A (host alpha) arrives at R (host beta) and returns; let UDP pass " +
				"between 192.0.2.2:6000 and 203.0.113.3:6001",
		},
		"no room": {
			func(t *testing.T) { m.far["beta"].mount(t, "-t", "tmpfs", "-o", "size=8m", "tmpfs", "/root") }, "",
			"host beta: cat: write error: No space left on device: the program cannot be copied to ",
		},
		"another processor": {
			func(t *testing.T) {
				m.write("uname", "#!/bin/sh\n[ $1 = -s ] && echo Linux || echo aarch64\n")
				require.NoError(t, os.Chmod(m.path("uname"), 0o700))
				m.far["beta"].mount(t, "--bind", m.path("uname"), "/usr/bin/uname")
			}, "", "host beta (beta) is linux/arm64, and this program is for linux/amd64: it cannot run there",
		},
		"no ssh": {
			func(t *testing.T) { require.NoError(t, os.Remove(m.path("bin/ssh"))) }, "",
			"the program ssh is not in PATH: install an OpenSSH client",
		},
		"undeclared": {
			func(t *testing.T) {}, strings.Replace(machineNet, "R beta", "R gamma", 1),
			`mine.net:4:8: "gamma" is not a host of this file`,
		},
		"unused": {
			func(t *testing.T) {}, "host gamma ssh gamma\n" + machineNet, "mine.net:1:6: host gamma has no node",
		},
	} {
		t.Run(name, func(t *testing.T) {
			m.write("config", config)
			m.write("known", known)
			m.write("bin/ssh", ssh)
			require.NoError(t, os.Chmod(m.path("bin/ssh"), 0o700))
			m.write("mine.net", machineNet)
			if f.file != "" {
				m.write("mine.net", f.file)
			}
			f.arrange(t)
			code, text := m.run("net", "up", m.path("mine.net"))
			assert.NotZero(t, code, text)
			assert.Contains(t, text, f.want)
			t.Log(text)
			m.write("config", config)
			assert.NoDirExists(t, m.path("tidepool/mine"))
			for _, b := range []*bed{m.bed, m.far["alpha"].bed, m.far["beta"].bed} {
				require.Eventually(t, func() bool { return len(b.pids()) == 0 }, patience,
					20*time.Millisecond, "%v", b.pids())
			}
		})
	}
}
