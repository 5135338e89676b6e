//go:build linux

package interop_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/operator"
)

// Addresses of a bed.
const (
	kernelIP = "10.8.0.2"
	hostIP   = "10.2.0.2"
	device   = "tide0"
)

// patience is far longer than any step takes, except a transfer.
const patience = 30 * time.Second

// Settings of the nodes. The RTO limits are those of Linux: the course's minimum of a millisecond
// is far below the kernel's delayed acknowledgment.
const timing = "tcp rto-min 200000\ntcp rto-max 120000000\n"

var files = map[string]string{
	"A": `interface tun0 10.8.0.1/24 tun:` + device + ` kernel ` + kernelIP + `
interface if0 10.0.0.1/24 127.0.0.1:5000
neighbor 10.0.0.2 at 127.0.0.1:5001 via if0
route 10.2.0.0/24 via 10.0.0.2
` + timing,
	"B": `interface if0 10.0.0.2/24 127.0.0.1:5001
interface if1 10.2.0.1/24 127.0.0.1:5002
neighbor 10.0.0.1 at 127.0.0.1:5000 via if0
neighbor 10.2.0.2 at 127.0.0.1:5003 via if1
routing rip
route 10.8.0.0/24 via 10.0.0.1
`,
	"C": `interface if0 10.2.0.2/24 127.0.0.1:5003
neighbor 10.2.0.1 at 127.0.0.1:5002 via if0
route 0.0.0.0/0 via 10.2.0.1
` + timing,
}

// bed is a network namespace in which the kernel is one end of a network of nodes.
type bed struct {
	family
	t       *testing.T
	name    string
	a, b, c *operator.Node
	dir     string // the test's files
	loss    float64
	extra   string // lines to append to the files of A and B
	plain   bool   // A's TUN device handles single packets
}

// beds counts the namespaces of this process.
var beds atomic.Int64

// sweep removes the namespaces that killed processes have left behind.
var sweep sync.Once

const sweepScript = `for ns in $(ip netns list | grep -o '^tidepool-[0-9]*-[0-9]*'); do
	pid=${ns#tidepool-}
	[ -d /proc/${pid%-*} ] || ip netns del $ns
done`

// newBed returns a bed whose router drops loss percent of the packets in each direction. The nodes
// named in pcaps capture to that file. extra is appended to the files of A and B. So an impairment
// of if0, the link between them, applies twice.
func newBed(t *testing.T, f family, loss float64, pcaps map[string]string, extra ...string) *bed {
	t.Helper()
	return (&bed{family: f, t: t, loss: loss, extra: strings.Join(extra, "")}).make(pcaps)
}

// make is like newBed, for a bed with some fields set.
func (b *bed) make(pcaps map[string]string) *bed {
	b.t.Helper()
	b.namespace()
	b.sysctl("net/ipv4/tcp_ecn", "1") // the kernel then requests ECN, too
	b.a = b.open("A", pcaps["A"])
	b.congestion("cubic") // a fixed one instead of this machine's default
	b.b, b.c = b.open("B", pcaps["B"]), b.open("C", pcaps["C"])
	b.setLoss(b.loss)
	return b
}

// congestion sets the route to C and the kernel's congestion control on it.
func (b *bed) congestion(name string) {
	b.t.Helper()
	b.must(b.command("ip", strings.Fields(
		b.text("route replace 10.2.0.0/24 via 10.8.0.1 congctl "+name))...))
}

// namespace creates the bed's network namespace.
func (b *bed) namespace() {
	t := b.t
	t.Helper()
	need(t)
	b.dir, b.name = t.TempDir(), fmt.Sprintf("tidepool-%d-%d", os.Getpid(), beds.Add(1))
	sweep.Do(func() { b.must(exec.Command("sh", "-c", sweepScript)) })
	b.must(exec.Command("ip", "netns", "add", b.name))
	t.Cleanup(func() { b.must(exec.Command("ip", "netns", "del", b.name)) })
	b.must(b.command("ip", "link", "set", "lo", "up"))
}

// way describes how the TUN device is used.
func (b *bed) way() string {
	if b.plain {
		return "plain"
	}
	return "auto"
}

// setLoss makes the router drop a share of the packets that it forwards.
func (b *bed) setLoss(percent float64) {
	b.t.Helper()
	testenv.Ask(b.t, b.b, control.SetLoss{Percent: percent})
}

// set changes a setting of C for new connections.
func (b *bed) set(key, value string) {
	b.t.Helper()
	testenv.Ask(b.t, b.c, control.Set{Key: key, Value: value})
}

// open starts a node of the bed.
func (b *bed) open(name, pcap string) *operator.Node {
	b.t.Helper()
	text := files[name]
	if name != "C" {
		text += b.extra
	}
	return b.openText(name, text, pcap)
}

// openText starts a node inside the namespace, with its sockets and devices.
func (b *bed) openText(name, text, pcap string) *operator.Node {
	b.t.Helper()
	cfg, err := lnx.Parse(name+".lnx", []byte(b.text(text)))
	require.NoError(b.t, err)
	var n *operator.Node
	require.NoError(b.t, b.inside(func() error {
		n, err = operator.Open(operator.Config{
			LNX: cfg, Pcap: pcap, Node: node.Config{Seed: 7, TUNOffload: b.way()},
		})
		return err
	}))
	b.t.Cleanup(func() { require.NoError(b.t, n.Close()) })
	return n
}

// inside runs do on a thread in the namespace.
func (b *bed) inside(do func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // the thread is never unlocked, so it exits with the goroutine
		fd, err := unix.Open("/var/run/netns/"+b.name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err == nil {
			err = unix.Setns(fd, unix.CLONE_NEWNET)
			unix.Close(fd)
		}
		if err == nil {
			err = do()
		}
		done <- err
	}()
	return <-done
}

// sysctl returns a sysctl of the namespace, after setting it if there is a value.
func (b *bed) sysctl(key string, value ...string) string {
	b.t.Helper()
	var now []byte
	require.NoError(b.t, b.inside(func() (err error) {
		path := filepath.Join("/proc/sys", key)
		if len(value) > 0 {
			err = os.WriteFile(path, []byte(value[0]), 0)
		} else {
			now, err = os.ReadFile(path)
		}
		return err
	}))
	return string(now)
}

// command returns a program to run in the namespace.
func (b *bed) command(name string, args ...string) *exec.Cmd {
	return b.commandFor(patience, name, args...)
}

func (b *bed) commandFor(limit time.Duration, name string, args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	b.t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, "ip",
		append([]string{"netns", "exec", b.name, name}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // socat and nginx have children
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd
}

// must runs a program and returns what it wrote to standard output.
func (b *bed) must(cmd *exec.Cmd) string {
	b.t.Helper()
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	require.NoError(b.t, cmd.Run(), "%v\n%s%s", cmd.Args, out.String(), complaint.String())
	return out.String()
}

// background is a running program.
type background struct {
	bed  *bed
	cmd  *exec.Cmd
	out  bytes.Buffer
	err  error
	done chan struct{}
}

// start starts a program. The test waits for it or stops it.
func (b *bed) start(cmd *exec.Cmd) *background {
	b.t.Helper()
	p := &background{bed: b, cmd: cmd, done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &p.out, &p.out
	require.NoError(b.t, cmd.Start(), "%v", cmd.Args)
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	b.t.Cleanup(func() { p.stop(syscall.SIGKILL) })
	return p
}

// wait waits until the program exits. Its exit status must be 0.
func (p *background) wait() {
	p.bed.t.Helper()
	<-p.done
	require.NoError(p.bed.t, p.err, "%v\n%s", p.cmd.Args, p.out.String())
}

// stop signals the program and its children and waits until they have exited.
func (p *background) stop(sig syscall.Signal) {
	select {
	case <-p.done:
	default:
		_ = syscall.Kill(-p.cmd.Process.Pid, sig) // the program may have exited
		<-p.done
	}
}

// path returns the path of a file of the test.
func (b *bed) path(name string) string { return filepath.Join(b.dir, name) }

// dial connects C to the kernel, and retries until a program listens.
func (b *bed) dial(port int) *node.Conn {
	b.t.Helper()
	return b.dialFrom(b.c, port)
}

// dialFrom is like dial, for another node.
func (b *bed) dialFrom(n *operator.Node, port int) *node.Conn {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), patience)
	defer cancel()
	for {
		c, err := n.Node.TCP.Dial(ctx, b.at(kernelIP, port))
		if err == nil {
			return c
		}
		require.ErrorIs(b.t, err, syscall.ECONNREFUSED)
	}
}

// listen opens a listener on C.
func (b *bed) listen(port int) *node.Listener {
	b.t.Helper()
	l, err := b.c.Node.TCP.Listen(b.at("0.0.0.0", port), 0)
	require.NoError(b.t, err)
	b.t.Cleanup(func() { _ = l.Close() }) // the test may have closed it
	return l
}
