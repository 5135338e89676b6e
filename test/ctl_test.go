//go:build unix

package e2e_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func portText(port uint16) string { return strconv.Itoa(int(port)) }

// netListenUDP binds a UDP port of the loopback address.
func netListenUDP(port uint16) (*net.UDPConn, error) {
	return net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: int(port)})
}

// TestCtlAndHTTPAgree: ctl prints the same document that HTTP returns.
func TestCtlAndHTTPAgree(t *testing.T) {
	t.Parallel()
	r := newStateDir(t)
	r.must("net", "up", CopyNetwork(t, "nets", "a-b").Dir, "--name", "pair")
	r.must("ctl", "B", "accept", "7000")
	r.must("ctl", "A", "connect", "10.0.0.2", "7000")
	r.must("ctl", "A", "serve", "80")
	r.await("A", "TIME-WAIT, whose time runs", func() bool { // at the end that closes first
		r.must("ctl", "B", "http", "get", "http://10.0.0.1/")
		return strings.Contains(r.must("ctl", "A", "sockets", "-o"), "timewait")
	})
	var dialer net.Dialer
	client := &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", r.status().Nodes[0].Socket)
		},
	}}
	defer client.CloseIdleConnections()
	for _, what := range []string{"sockets", "interfaces", "routes"} {
		resp, err := client.Get("http://node/v1/nodes/A/" + what)
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		assert.JSONEq(t, r.must("ctl", "A", what, "--json"), string(body))
		assert.Equal(t, "application/json", resp.Header.Get("Content-Type"))
	}
}

// TestCtlExitStatus: 0 success, 1 failure, 2 usage error, 130 Ctrl-C, 143 SIGTERM. Only answers go
// to standard output.
func TestCtlExitStatus(t *testing.T) {
	t.Parallel()
	r := newStateDir(t)
	r.must("net", "up", CopyNetwork(t, "nets", "a-b").Dir, "--name", "pair")
	for _, tt := range []struct {
		words     string
		code      int
		out, talk string
	}{
		{"lr", 0, "LOCAL:if0", ""},
		{"ping -c 1 -W 30 10.0.0.2", 0, "1 received", ""},
		{"-- lr", 0, "LOCAL:if0", ""},
		{"lr --state " + filepath.Join(r.state, "none"), 1, "", "no network is up"},
		{"lr --state", 2, "", "flag needs an argument: --state"},
		{"--", 2, "", `no command "--"`},
		{"ping -c 1 -W 30 10.0.0.9", 1, "100% packet loss", "ping: 10.0.0.9: Destination Host Unreachable\n"},
		{"close 9", 1, "", "close: 9: no such socket"},
		{"close 9 --json", 1, `{"error":"close: 9: no such socket`, "close: 9: no such socket"},
		{"close 9 --jsno", 2, "", "unknown flag: --jsno"},
		{"window 9 --json", 1, `"status":1}`, "window: 9: no such socket"},
		{"connect x 1", 2, "", "give a name of the network, or an address"},
		{"connect", 2, "", "usage: connect ADDR PORT [--json]"},
		{"bogus", 2, "", `no command "bogus"`},
		{"sendfile none 10.0.0.2 1", 1, "", "no such file"},
		{"sendfile /none/at/all 10.0.0.2 1", 2, "", "--files DIR"},
		{"help", 0, "Sockets", ""},
	} {
		got := r.node(append([]string{"ctl", "A"}, strings.Fields(tt.words)...)...)
		assert.Equal(t, tt.code, got.code, tt.words)
		assert.Contains(t, got.out, tt.out, tt.words)
		assert.Contains(t, got.err, tt.talk, tt.words)
		if tt.out == "" {
			assert.Empty(t, got.out, tt.words)
		}
		if tt.talk == "" {
			assert.Empty(t, got.err, tt.words)
		}
	}
	for signal, code := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		// Without -c, ping in a script sends four requests, and might end before the signal
		// arrives.
		cmd := r.command("ctl", "A", "ping", "-i", "0.02", "-c", "1000000", "10.0.0.2")
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		lines := bufio.NewScanner(out)
		text := ""
		for lines.Scan() {
			text += lines.Text() + "\n"
			// only once: a second signal kills it
			if strings.Contains(lines.Text(), "icmp_seq=2 ") {
				require.NoError(t, cmd.Process.Signal(signal))
			}
		}
		require.Error(t, cmd.Wait())
		assert.Equal(t, code, cmd.ProcessState.ExitCode())
		assert.Contains(t, text, "ping statistics", "the statistics so far")
	}
	assert.True(t, r.status().Well(), "the network keeps running")
}

// TestSystemDaemon: a node tells the service manager when it is ready and when it ends. It logs one
// line for each event, without timestamps if the journal adds them.
func TestSystemDaemon(t *testing.T) {
	t.Parallel()
	r := newStateDir(t)
	at := filepath.Join(r.state, "notify")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: at, Net: "unixgram"})
	require.NoError(t, err)
	defer manager.Close()
	next := func() string {
		require.NoError(t, manager.SetReadDeadline(time.Now().Add(Soon)))
		text := make([]byte, 64)
		n, err := manager.Read(text)
		require.NoError(t, err)
		return string(text[:n])
	}
	socket := filepath.Join(r.state, "A.sock")
	file := CopyNetwork(t, "nets", "a-b").File("A")
	cmd := r.command("run", "--daemon", "--socket", socket, file)
	cmd.Env = append(cmd.Env, "NOTIFY_SOCKET="+at, "JOURNAL_STREAM=8:1")
	var log strings.Builder
	cmd.Stderr = &log
	require.NoError(t, cmd.Start())
	assert.Equal(t, "READY=1", next())
	assert.Contains(t, r.must("attach", socket), "") // the node already answers
	assert.Contains(t, r.must("ctl", socket, "send", "10.0.0.1", "to myself"), "Sent 29 bytes")
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	assert.Equal(t, "STOPPING=1", next())
	require.Error(t, cmd.Wait())
	assert.Equal(t, 143, cmd.ProcessState.ExitCode())
	assert.NoFileExists(t, socket)
	assert.Regexp(t, `(?m)^level=INFO msg=up node=A pid=\d+ version=`, log.String())
	assert.Regexp(t, `(?m)^level=INFO msg=test node=A text=".*Data: to myself"$`, log.String())
	assert.Contains(t, log.String(), "level=INFO msg=stopping node=A reason=terminated\n")
}

// TestEventsAreLines: ctl prints every event as a line of JSON, until the node exits.
func TestEventsAreLines(t *testing.T) {
	t.Parallel()
	r := newStateDir(t)
	r.must("net", "up", CopyNetwork(t, "nets", "a-b").Dir, "--name", "pair")
	cmd := r.command("ctl", "B", "events", "--json")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := make(chan string, 64)
	go func() {
		defer close(lines)
		in := bufio.NewScanner(out)
		for in.Scan() {
			lines <- in.Text()
		}
	}()
	// ctl may not watch the node's events yet, so send test packets until it prints one.
	var got string
	r.await("B", "an event", func() bool {
		r.must("ctl", "A", "send", "10.0.0.2", "wave")
		for {
			select {
			case got = <-lines:
				if strings.Contains(got, `"event":"test"`) {
					return true
				}
			default:
				return false
			}
		}
	})
	var event struct {
		Data struct {
			Src, Text string
		}
	}
	require.NoError(t, json.Unmarshal([]byte(got), &event))
	assert.Equal(t, "wave", event.Data.Text)
	assert.Equal(t, "10.0.0.1", event.Data.Src)
	require.NoError(t, syscall.Kill(r.pid("B"), syscall.SIGKILL))
	for range lines {
	}
	require.Error(t, cmd.Wait())
	assert.Equal(t, 1, cmd.ProcessState.ExitCode())
}

// TestConcurrentSessions: with two sessions on one node, each sees the effects of the other.
func TestConcurrentSessions(t *testing.T) {
	t.Parallel()
	r := newStateDir(t)
	r.must("net", "up", CopyNetwork(t, "nets", "a-b").Dir, "--name", "pair")
	first, second := r.attach("A"), r.attach("A")
	first.say("accept 7000")
	assert.Equal(t, "Created listen socket with ID 0", first.next())
	second.say("sockets --json")
	assert.Contains(t, second.next(), `"state":"LISTEN"`)
	second.say("window 5")
	assert.Contains(t, second.next(), "no such socket")
	first.quit(0)
	second.say("routes --json")
	assert.Contains(t, second.next(), `"origin":"L"`)
	second.quit(1) // exit status of the failed command
	assert.True(t, r.status().Well())
}

// session is an attached shell whose input is a pipe.
type session struct {
	r     *stateDir
	in    io.WriteCloser
	lines chan string
	wait  func() int
}

func (r *stateDir) attach(node string) *session {
	r.t.Helper()
	cmd := r.command("attach", node, "--keep-going")
	in, err := cmd.StdinPipe()
	require.NoError(r.t, err)
	read, write, err := os.Pipe()
	require.NoError(r.t, err)
	cmd.Stdout, cmd.Stderr = write, write
	require.NoError(r.t, cmd.Start())
	require.NoError(r.t, write.Close())
	a := &session{r: r, in: in, lines: make(chan string, 64)}
	go func() {
		defer close(a.lines)
		defer read.Close()
		scan := bufio.NewScanner(read)
		for scan.Scan() {
			a.lines <- scan.Text()
		}
	}()
	a.wait = func() int {
		_ = cmd.Wait() // the exit status is checked in quit
		return cmd.ProcessState.ExitCode()
	}
	return a
}

func (a *session) say(line string) {
	a.r.t.Helper()
	_, err := io.WriteString(a.in, line+"\n")
	require.NoError(a.r.t, err)
}

// next returns the next line of output.
func (a *session) next() string { return <-a.lines }

// quit ends the input and checks the session's exit status.
func (a *session) quit(code int) {
	a.r.t.Helper()
	require.NoError(a.r.t, a.in.Close())
	for range a.lines {
	}
	assert.Equal(a.r.t, code, a.wait())
}
