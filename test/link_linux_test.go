package e2e_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
)

// getEnv names the environment variable that makes this program an HTTP client inside a network.
// The client prints the body of each URL in the variable, and the time taken in milliseconds.
const getEnv = "E2E_GET"

// serveEnv names the environment variable that makes this program an HTTP server at the address in
// the variable. The server also answers datagrams to that port.
const serveEnv = "E2E_SERVE"

func init() {
	if at := os.Getenv(serveEnv); at != "" {
		l, err := net.Listen("tcp", at)
		go serveDatagrams(at)
		fmt.Println("listening", err)
		_ = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = fmt.Fprintf(w, "a page for %s", r.RemoteAddr)
			if r.URL.Path == "/wait" {
				_ = http.NewResponseController(w).Flush() // the client sees an error
				<-r.Context().Done()
			}
		}))
		os.Exit(1)
	}
	urls := os.Getenv(getEnv)
	if urls == "" {
		return
	}
	for url := range strings.FieldsSeq(urls) {
		start := time.Now()
		if network, ok := strings.CutSuffix(url, "://internal"); ok {
			fmt.Println(nameServer(network))
			continue
		}
		if at, ok := strings.CutPrefix(url, "udp://"); ok {
			fmt.Println(askDatagram(at))
			continue
		}
		r, err := http.Get(url)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		_, _ = io.Copy(os.Stdout, r.Body)
		fmt.Printf("\n%d ms\n", time.Since(start).Milliseconds())
	}
	os.Exit(0)
}

// serveDatagrams answers each datagram with the address of its sender.
func serveDatagrams(at string) {
	c, err := net.ListenPacket("udp", at)
	for b := make([]byte, 1500); err == nil; {
		var from net.Addr
		if _, from, err = c.ReadFrom(b); err == nil {
			_, err = c.WriteTo(fmt.Appendf(nil, "a datagram from %v", from), from)
		}
	}
}

// askDatagram sends a datagram each second until an answer arrives, and returns the answer.
func askDatagram(at string) string {
	start := time.Now()
	c, err := net.Dial("udp", at)
	if err != nil {
		return err.Error()
	}
	for b := make([]byte, 1500); ; {
		if _, err := c.Write([]byte("?")); err != nil {
			return err.Error()
		}
		_ = c.SetReadDeadline(time.Now().Add(time.Second))
		n, err := c.Read(b)
		if err == nil {
			return string(b[:n])
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) > Soon {
			return err.Error()
		}
	}
}

// nameServer asks for the name server of the zone internal, over a protocol.
func nameServer(network string) string {
	r := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, at string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, at)
	}}
	list, err := r.LookupNS(context.Background(), "internal.")
	if err != nil {
		return err.Error()
	}
	return list[0].Host
}

// asNobody runs a command of the program as an ordinary user who may open /dev/net/tun, as on usual
// distributions. If the tests run as root, it does so in a mount namespace that has such a device.
func asNobody(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	if os.Geteuid() != 0 {
		return Command(args...)
	}
	const script = `mount -t tmpfs tmpfs /dev/net && mknod -m 666 /dev/net/tun c 10 200 &&
cp "$1" /dev/net/node && cp "$2" /dev/net/client && chmod 755 /dev/net /dev/net/node /dev/net/client &&
shift 2 && cd / &&
exec setpriv --reuid=65534 --regid=65534 --clear-groups /dev/net/node "$@"`
	self, err := os.Executable()
	require.NoError(t, err)
	for i := range args {
		if args[i] == self {
			args[i] = "/dev/net/client"
		}
	}
	c := Command()
	c.Args = append([]string{"unshare", "-m", "sh", "-c", script, "sh", c.Path, self}, args...)
	c.Path, err = exec.LookPath("unshare")
	require.NoError(t, err)
	return c
}

// needLink skips a test if ordinary users cannot create namespaces.
func needLink(t *testing.T) {
	t.Helper()
	if out, err := asNobody(t, "link", "--", "true").CombinedOutput(); err != nil {
		t.Skip("skip: needs user namespaces and /dev/net/tun:", string(out), err)
	}
}

// inside runs this program as an HTTP client inside a network, as an ordinary user.
func inside(t *testing.T, url string, args ...string) string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), Soon)
	defer cancel()
	c := asNobody(t, append(args, "--", self)...)
	c.Env = append(c.Env, getEnv+"="+url)
	context.AfterFunc(ctx, func() { _ = c.Process.Kill() })
	out, err := c.CombinedOutput()
	require.NoError(t, err, string(out))
	return string(out)
}

// page serves a page at all addresses of this machine, and returns its port.
func page(t *testing.T, text string) string {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, text)
	}))
	l, err := net.Listen("tcp4", ":0")
	require.NoError(t, err)
	s.Listener = l
	s.Start()
	t.Cleanup(s.Close)
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	return port
}

// A program behind a link reaches this machine's services at the gateway's address, and each round
// trip takes twice the link's delay. An ordinary user needs no privilege.
func TestLinkReachesTheMachine(t *testing.T) {
	t.Parallel()
	needLink(t)
	port := page(t, "a page")
	url := "http://100.64.0.1:" + port + "/"
	assert.Contains(t, inside(t, url, "link"), "a page")
	var ms int
	out := inside(t, url, "link", "delay", "100ms")
	_, err := fmt.Sscanf(out, "a page\n%d ms", &ms)
	require.NoError(t, err, out)
	assert.GreaterOrEqual(t, ms, 400, "the handshake, and the request and its answer")
	assert.Less(t, ms, 600+int(Soon.Milliseconds())/20)
}

// If the machine has an IPv6 address, a program behind a link has IPv6, too. It reaches the
// machine's loopback at the gateway's address, and the machine's other addresses, with TCP, UDP and
// ping. A link whose MTU is too small for IPv6 has IPv4 only.
func TestLinkHasIPv6(t *testing.T) {
	t.Parallel()
	needLink(t)
	self, err := os.Executable()
	require.NoError(t, err)
	const script = `ip link set lo up && ip -6 addr add fd77::1/64 dev lo || exit 3
` + serveEnv + `=[::]:80 "$2" & server=$!
while ! ` + getEnv + `=http://[::1]/ "$2"; do sleep 0.05; done >/dev/null
` + getEnv + `="http://[fdb6:2c0a:91e5::6440:1]/ http://[fd77::1]/" "$1" link delay 20ms -- "$2"
` + getEnv + `="udp://[fdb6:2c0a:91e5::6440:1]:80 udp://[fd77::1]:80" "$1" link -- "$2"
"$1" link delay 20ms -- ping -c 1 fd77::1
"$1" link --mtu 1000 -- ping -c 1 fd77::1
kill $server`
	c := exec.Command("unshare", "-rn", "sh", "-c", script, "sh", Command().Path, self)
	c.Env = Command().Env
	text, err := c.CombinedOutput()
	out := string(text)
	if c.ProcessState.ExitCode() == 3 {
		t.Skip("skip: needs iproute2 and IPv6:", out)
	}
	require.NoError(t, err, out)
	assert.Contains(t, out, "a page for [::1]:")
	assert.Contains(t, out, "a page for [fd77::1]:")
	assert.Contains(t, out, "a datagram from [::1]:")
	assert.Contains(t, out, "a datagram from [fd77::1]:")
	if _, err := exec.LookPath("ping"); err == nil {
		assert.Regexp(t, `64 bytes from fd77::1: icmp_seq=1 .* time=([4-9]\d|\d{3})`, out)
		assert.Equal(t, 1, strings.Count(out, "64 bytes"), "%s", out)
	}
}

// The delays of ten nested links add up.
func TestTenNestedLinks(t *testing.T) {
	testenv.NeedLong(t) // starts twenty processes, each with its namespaces
	t.Parallel()
	needLink(t)
	port := page(t, "a page")
	args := []string{"link", "delay", "5ms"}
	for range 9 {
		name := "/dev/net/node"
		if os.Geteuid() != 0 {
			name = Command().Path
		}
		args = append(args, "--", name, "link", "delay", "5ms")
	}
	var ms int
	out := inside(t, "http://100.64.0.1:"+port+"/", args...) // address of the outermost gateway
	_, err := fmt.Sscanf(out, "a page\n%d ms", &ms)
	require.NoError(t, err, out)
	assert.GreaterOrEqual(t, ms, 200, "the handshake, and the request and its answer")
}

// The exit status, signals and the working directory are passed through. Processes that the program
// leaves are stopped.
func TestLinkPassesThrough(t *testing.T) {
	t.Parallel()
	needLink(t)
	dir := t.TempDir()
	c := Command("link", "--", "sh", "-c", "pwd; sleep 1000 & exit 7")
	c.Dir = dir
	out, err := c.CombinedOutput()
	assert.Equal(t, 7, c.ProcessState.ExitCode(), err)
	assert.Contains(t, string(out), dir+"\n")
	assert.Contains(t, string(out), "stopping what the program left: s")

	c = Command("link", "--", "no-such-program")
	out, _ = c.CombinedOutput()
	assert.Equal(t, 127, c.ProcessState.ExitCode())
	assert.Contains(t, string(out), "no-such-program: command not found")

	const script = `trap "exit 9" TERM; echo ready; while :; do sleep 0.01; done`
	c, done := startInside(t, script)
	require.NoError(t, c.Process.Signal(syscall.SIGTERM))
	done()
	assert.Equal(t, 9, c.ProcessState.ExitCode(), "SIGTERM is the program's")
	c, done = startInside(t, script)
	require.NoError(t, c.Process.Kill())
	done() // the program holds the pipe open until it has ended
}

// startInside starts a script behind a link, and returns when the script has printed a line. done
// waits until its processes have closed their output.
func startInside(t *testing.T, script string) (c *exec.Cmd, done func()) {
	t.Helper()
	c = Command("link", "--", "sh", "-c", script)
	pipe, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	require.NoError(t, pipe.(*os.File).SetReadDeadline(time.Now().Add(patience)))
	out := bufio.NewReader(pipe)
	_, err = out.ReadString('\n')
	require.NoError(t, err)
	return c, func() {
		_, err := io.Copy(io.Discard, out)
		assert.NoError(t, err)
		_ = c.Wait() // the test checks the exit status
	}
}

// A capture of a link contains the program's packets.
func TestLinkCapture(t *testing.T) {
	t.Parallel()
	needLink(t)
	port := page(t, "a page")
	file := filepath.Join(t.TempDir(), "link.pcapng")
	self, err := os.Executable()
	require.NoError(t, err)
	c := Command("link", "--pcap", file, "delay", "10ms", "--", self)
	c.Env = append(c.Env, getEnv+"=http://100.64.0.1:"+port+"/")
	out, err := c.CombinedOutput()
	require.NoError(t, err, string(out))
	shown, err := Command("trace", file).CombinedOutput()
	require.NoError(t, err, string(shown))
	assert.Contains(t, string(shown), "100.64.0.1")
}

// mm-link with a trace and a queue carries a page, and its logs can be read.
func TestMahimahiLink(t *testing.T) {
	t.Parallel()
	needLink(t)
	port, dir := page(t, "a page"), t.TempDir()
	trace, log := filepath.Join(dir, "up.trace"), filepath.Join(dir, "up.log")
	require.NoError(t, os.WriteFile(trace, []byte("1\n2\n3\n"), 0o644))
	self, err := os.Executable()
	require.NoError(t, err)
	c := Command("mm-delay", "5", "mm-link", trace, trace, "--uplink-queue=droptail",
		"--uplink-queue-args=packets=100", "--uplink-log="+log, self)
	c.Env = append(c.Env, getEnv+"=http://100.64.0.1:"+port+"/")
	out, err := c.CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Contains(t, string(out), "a page")
	text, err := Command("lab", "log", log).CombinedOutput()
	require.NoError(t, err, string(text))
	assert.Contains(t, string(text), "up link")
}
