package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// needRoot skips the test unless it can create network namespaces.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("skip: needs root")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("skip: needs iproute2")
	}
}

// export writes the ring network of nets/ in another format into a folder.
func export(t *testing.T, to, file string) (dir, path string) {
	t.Helper()
	dir = t.TempDir()
	path = filepath.Join(dir, file)
	out, err := Command("net", "export", Path("nets", "ring"), "--to", to, "-o", path).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return dir, path
}

// composed has the parts of a compose file that a container engine uses.
type composed struct {
	Services map[string]struct {
		Command  []string
		Networks map[string]struct {
			IPv4 string `yaml:"ipv4_address"`
		}
	}
	Configs map[string]struct{ Content string }
}

// up does what docker compose up does, but without containers: each service is a process in a
// network namespace with the address from the file. The namespaces are connected to one bridge.
func (c *composed) up(t *testing.T, dir string) {
	t.Helper()
	ip := func(args ...string) {
		out, err := exec.Command("ip", args...).CombinedOutput()
		require.NoError(t, err, "ip %s: %s", strings.Join(args, " "), out)
	}
	namespace := func(name string) string {
		name = fmt.Sprintf("tidepool-e2e-%d-%s", os.Getpid(), name)
		ip("netns", "add", name)
		t.Cleanup(func() { ip("netns", "del", name) })
		ip("-n", name, "link", "set", "lo", "up")
		return name
	}
	hub := namespace("hub")
	ip("-n", hub, "link", "add", "name", "hub", "type", "bridge")
	ip("-n", hub, "link", "set", "hub", "up")
	for name, service := range c.Services {
		ns, port := namespace(name), "to"+name
		ip("-n", hub, "link", "add", "name", port, "type", "veth", "peer", "name", "eth0", "netns", ns)
		ip("-n", hub, "link", "set", port, "master", "hub", "up")
		ip("-n", ns, "address", "add", service.Networks["links"].IPv4+"/16", "dev", "eth0")
		ip("-n", ns, "link", "set", "eth0", "up")

		text := strings.ReplaceAll(c.Configs[name].Content, "$$", "$")
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+".lnx"), []byte(text), 0o600))
		node := Command()
		node.Args = []string{"ip", "netns", "exec", ns, node.Path}
		for _, arg := range service.Command {
			arg = strings.Replace(arg, "/etc/tidepool/", dir+"/", 1)
			node.Args = append(node.Args, strings.Replace(arg, "/run/tidepool/", dir+"/", 1))
		}
		var err error
		node.Path, err = exec.LookPath("ip")
		require.NoError(t, err)
		node.Dir = dir
		require.NoError(t, node.Start())
		t.Cleanup(func() {
			assert.NoError(t, node.Process.Kill())
			_ = node.Wait() // the exit status is that of a kill
		})
	}
}

// at runs a command at a node whose socket is in the folder.
func at(dir, node string, args ...string) ([]byte, error) {
	return Command(append([]string{"ctl", filepath.Join(dir, node+".sock")}, args...)...).
		CombinedOutput()
}

// The services of a compose file form the network: A reaches B through the routers, and a file
// arrives.
func TestComposedNetworkCarriesFiles(t *testing.T) {
	needRoot(t)
	t.Parallel()
	dir, path := export(t, "compose", "compose.yaml")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var c composed
	require.NoError(t, yaml.Unmarshal(text, &c))
	require.Len(t, c.Services, 6)
	c.up(t, dir)

	require.Eventually(t, func() bool {
		_, err := at(dir, "A", "ping", "-c", "1", "10.5.0.2")
		return err == nil
	}, Soon, 100*time.Millisecond)

	sent := RandomFile(t, 1_000_000, 7)
	require.NoError(t, os.Link(sent, filepath.Join(dir, "sent")))
	received := make(chan error, 1)
	go func() {
		out, err := at(dir, "B", "recvfile", filepath.Join(dir, "received"), "9000")
		if err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
		received <- err
	}()
	require.Eventually(t, func() bool {
		out, _ := at(dir, "B", "sockets")
		return strings.Contains(string(out), "LISTEN")
	}, Soon, 50*time.Millisecond)
	out, err := at(dir, "A", "sendfile", filepath.Join(dir, "sent"), "10.5.0.2", "9000")
	require.NoError(t, err, "%s", out)
	require.NoError(t, <-received)
	assert.Equal(t, Digest(t, sent), Digest(t, filepath.Join(dir, "received")))
}

// The exported script runs in mininet, in a network namespace. The nodes reach each other.
func TestMininetRunsNetwork(t *testing.T) {
	needRoot(t)
	const python = "/usr/bin/python3" // Debian's Python, which has Debian's mininet
	if exec.Command(python, "-c", "import mininet.net").Run() != nil {
		t.Skip("skip: needs mininet")
	}
	t.Parallel()
	dir, path := export(t, "mininet", "ring.py")
	program := Command().Path
	// Mininet raises limits of the whole machine, unless it believes that it has already done that.
	const start = `import runpy, sys, mininet.net
mininet.net.Mininet.inited = True
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name='__main__')`
	run := exec.Command("unshare", "--net", python, "-c", start, path, program)
	run.Env = append(os.Environ(), "TMPDIR="+dir)
	run.SysProcAttr = sysProcAttr()
	run.Stdin = strings.NewReader("sh for i in $(seq 100); do " + program + " ctl " + dir +
		"/*/A.sock ping -c 1 10.5.0.2 && break; sleep 0.1; done\nlinks\n")
	out, err := run.CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Contains(t, string(out), "64 bytes from 10.5.0.2: icmp_seq=1 ttl=61")
	assert.Contains(t, string(out), "A-eth0<->R1-eth0 (OK OK)")
}
