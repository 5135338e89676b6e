package e2e_test

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/control"
)

// hosts is a network whose hosts run programs.
type hosts struct {
	t      *testing.T
	net    *Network
	folder string
	state  string
}

func runHosts(t *testing.T, folder ...string) *hosts {
	t.Helper()
	needLink(t)
	h := &hosts{t: t, net: CopyNetwork(t, folder...), state: t.TempDir()}
	h.folder = h.net.Dir
	t.Cleanup(h.down)
	return h
}

func (h *hosts) down() {
	_ = Command("net", "down", "--all", "--state", h.state).Run() // the network may be down already
}

// in returns a command that runs a program as a host.
func (h *hosts) in(host string, program ...string) *exec.Cmd {
	args := []string{"in", "--state", h.state, h.folder + ":" + host, "--"}
	return Command(append(args, program...)...)
}

func (h *hosts) output(host string, program ...string) string {
	h.t.Helper()
	out, err := h.in(host, program...).Output()
	require.NoError(h.t, err, "%s", out)
	return string(out)
}

// serve starts a server as a host, and returns when it listens.
func (h *hosts) serve(host, at string) *exec.Cmd {
	h.t.Helper()
	self, err := os.Executable()
	require.NoError(h.t, err)
	c := h.in(host, self)
	c.Env = append(c.Env, serveEnv+"="+at)
	pipe, err := c.StdoutPipe()
	require.NoError(h.t, err)
	require.NoError(h.t, c.Start())
	h.t.Cleanup(func() {
		_ = c.Process.Kill() // the program may have exited
		_ = c.Wait()
	})
	line, err := bufio.NewReader(pipe).ReadString('\n')
	require.NoError(h.t, err)
	require.Equal(h.t, "listening <nil>\n", line)
	return c
}

// ctl runs a command of a node's shell.
func (h *hosts) ctl(words ...string) string {
	h.t.Helper()
	out, err := Command(append([]string{"ctl", "--state", h.state}, words...)...).CombinedOutput()
	require.NoError(h.t, err, string(out))
	return string(out)
}

// sockets returns a node's sockets.
func (h *hosts) sockets(host string) (list []control.Socket) {
	h.t.Helper()
	require.NoError(h.t, json.Unmarshal([]byte(h.ctl(host, "sockets", "-i", "--json")), &list))
	return list
}

// get runs an HTTP client as a host.
func (h *hosts) get(host, url string) (string, error) {
	self, err := os.Executable()
	require.NoError(h.t, err)
	c := h.in(host, self)
	c.Env = append(c.Env, getEnv+"="+url)
	out, err := c.CombinedOutput()
	return string(out), err
}

// An unmodified server runs as one host. A client that runs as another host reads from it through
// the network, by its name, and has the address of its own host. The first command starts the
// network.
func TestProgramsAsHosts(t *testing.T) {
	t.Parallel()
	h := runHosts(t, "nets", "a-b-c")
	h.serve("C", ":80")
	out, err := h.get("A", "http://c/")
	require.NoError(t, err, out)
	assert.Contains(t, out, "a page for 10.0.0.1:")

	// Programs of one host share a namespace; programs of two hosts do not.
	const namespace = "readlink /proc/self/ns/net"
	first := h.output("A", "sh", "-c", namespace)
	assert.Equal(t, first, h.output("a", "sh", "-c", namespace))
	assert.NotEqual(t, first, h.output("C", "sh", "-c", namespace))
	dir, err := os.Getwd()
	require.NoError(t, err)
	assert.Equal(t, dir+"\n", h.output("A", "pwd"))

	c := h.in("A", "sh", "-c", "kill -9 $$")
	assert.Error(t, c.Run())
	assert.Equal(t, 128+9, c.ProcessState.ExitCode())
	c = h.in("A", "no-such-program")
	text, _ := c.CombinedOutput()
	assert.Equal(t, 127, c.ProcessState.ExitCode())
	assert.Contains(t, string(text), "no-such-program: command not found")

	// A router's programs have all of its addresses.
	h.serve("B", ":80")
	for _, address := range []string{"10.0.0.2", "10.1.0.1"} {
		for _, host := range []string{"A", "B"} {
			out, err := h.get(host, "http://"+address+"/")
			require.NoError(t, err, out)
			assert.Contains(t, out, "a page for 10.")
		}
	}

	// The node lists the sockets in the kernel, and follows their connections.
	self, err := os.Executable()
	require.NoError(t, err)
	client := h.in("A", self)
	client.Env = append(client.Env, getEnv+"=http://c/wait")
	require.NoError(t, client.Start())
	var conn control.Socket
	require.Eventually(t, func() bool {
		list := h.sockets("C")
		i := slices.IndexFunc(list, func(s control.Socket) bool {
			return s.State == "ESTABLISHED" && s.Info.BytesAcked > 0
		})
		if i >= 0 {
			conn = list[i]
		}
		return i >= 0
	}, Soon, 20*time.Millisecond)
	assert.True(t, conn.Program)
	assert.Equal(t, "10.1.0.2:80", conn.Local.String())
	assert.Equal(t, "10.0.0.1", conn.Remote.Addr().String())
	assert.Positive(t, conn.Info.RTT)
	sid := strconv.Itoa(conn.SID)
	info := h.ctl("C", "info", sid)
	assert.Contains(t, info, "sid:"+sid+" program")
	assert.Contains(t, info, "limited:")
	assert.NotContains(t, info, "since:", "the kernel does not report it")
	c = Command("ctl", "--state", h.state, "C", "close", sid)
	refused, err := c.CombinedOutput()
	assert.Error(t, err)
	assert.Contains(t, string(refused), "only the program that opened it can use it")
	trace := Command("ctl", "--state", h.state, "C", "trace", sid)
	var ladder strings.Builder
	trace.Stdout = &ladder
	pipe, err := trace.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, trace.Start())
	line, err := bufio.NewReader(pipe).ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, line, "following connection "+sid)
	require.NoError(t, client.Process.Kill())
	_ = client.Wait()
	require.NoError(t, trace.Wait())
	assert.Contains(t, ladder.String(), "FIN")

	// A port in use by a program is not available to the node, and the reverse.
	assert.Contains(t, h.ctl("A", "fetch", "10.1.0.2:80"), "a page for 10.0.0.1:")
	h.ctl("C", "serve", "81")
	out, err = h.get("A", "http://c:81/")
	require.NoError(t, err, out)
	assert.NotContains(t, out, "a page for")
}

// Programs also have their host's IPv6 address, and the names of the network's hosts resolve to
// IPv6 addresses, too. In a network without IPv4 they have IPv6 only. An ICMP error from the
// network reaches the program.
func TestProgramsHaveIPv6(t *testing.T) {
	t.Parallel()
	// URLs and the addresses that the server sees, by network
	for network, clients := range map[string][][2]string{
		"dual-stack": {{"http://10.2.0.2/", "10.0.0.1:"}, {"http://b/", "[2001:db8::1]:"}},
		"ipv6-only":  {{"http://b/", "[2001:db8::1]:"}},
	} {
		h := runHosts(t, "nets", network)
		h.serve("B", ":80")
		for _, c := range clients {
			out, err := h.get("A", c[0])
			require.NoError(t, err, out)
			assert.Contains(t, out, "a page for "+c[1])
		}
		out, err := h.get("A", "http://[2001:db8:77::1]/")
		assert.Error(t, err)
		assert.Contains(t, out, "network is unreachable")
	}
}

// Programs get answers from their host's DNS server, even if their host is that server. Then the
// queries do not leave the programs' namespace.
func TestProgramsResolveNames(t *testing.T) {
	t.Parallel()
	h := runHosts(t, "nets", "a-b-c")
	h.net.Append("A", "dns server 10.1.0.2")
	h.net.Append("C", "dns server 10.1.0.2", "dns name C 10.1.0.2")
	for _, host := range []string{"A", "C"} {
		out, err := h.get(host, "udp://internal tcp://internal")
		require.NoError(t, err, out)
		assert.Contains(t, out, "C.internal.\nC.internal.\n", host)
	}
}

// If the network goes down while a program runs, the program keeps running without a network. After
// the next start, a new program has the new network.
func TestNetworkGoesDownUnderAProgram(t *testing.T) {
	t.Parallel()
	h := runHosts(t, "nets", "a-b")
	server := h.serve("B", ":80")
	out, err := h.get("A", "http://b/")
	require.NoError(t, err, out)
	h.down()
	require.NoError(t, server.Process.Signal(syscall.Signal(0)), "the program still runs")
	out, err = h.get("A", "http://b/")
	assert.Error(t, err, "the program of the old network serves nothing: %s", out)
	h.serve("B", ":80")
	out, err = h.get("A", "http://b/")
	require.NoError(t, err, out)
}

// An error about an unknown host lists the existing hosts.
func TestInErrors(t *testing.T) {
	t.Parallel()
	h := runHosts(t, "nets", "a-b")
	for arg, want := range map[string]string{
		h.folder + ":X":  `has no host "X": its hosts are A, B`,
		h.folder:         "must be NETWORK:HOST",
		"no-such:A":      "no such network",
		"./no-such:A":    "./no-such: no such file; give ",
		h.folder + "X:A": "X: no such file (did you mean " + filepath.Base(h.folder) + "?); give ",
	} {
		c := Command("in", "--state", h.state, arg, "--", "true")
		out, err := c.CombinedOutput()
		assert.Error(t, err)
		assert.Contains(t, string(out), want)
		assert.LessOrEqual(t, strings.Count(string(out), "\n"), 4, string(out))
	}
}
