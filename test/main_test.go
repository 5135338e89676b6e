// Package e2e_test tests whole nodes. It starts node processes with the .lnx files of nets/, types
// commands into their shells, transfers files between them, injects faults, and connects them to
// the small peers of internal/peer, which imitate other people's nodes.
//
// transfer_test.go tests file transfers; ring, network and offload test routing and links; fault_*
// test failures; peer_* test the imitated nodes; shell, validate and demo test the program's other
// commands. nodes_* build the program once, copy .lnx files to free UDP ports, start nodes with
// their shells on pipes, type commands and wait for the answers. They never sleep: every wait has a
// line or a condition, and a time limit. Tests with 100 MB are skipped with -short. Under the race
// detector, which also checks the nodes, they transfer less data.
package e2e_test

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "tidepool-e2e")
	if err == nil {
		defer os.RemoveAll(dir)
		err = Build(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	// The tests spend most of their time waiting for processes and timeouts.
	if err := flag.Set("test.parallel", "32"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// line starts the network of three nodes and waits until its ends have routes to each other.
func line(t *testing.T, folder ...string) (a, b, c *Node) {
	t.Helper()
	if len(folder) == 0 {
		folder = []string{"nets", "a-b-c"}
	}
	return startLine(t, CopyNetwork(t, folder...))
}

func startLine(t *testing.T, n *Network, args ...string) (a, b, c *Node) {
	t.Helper()
	n.StartAll(args...)
	a, b, c = n.Node("A"), n.Node("B"), n.Node("C")
	awaitRoutes(t, a, c)
	for _, end := range []*Node{a, c} {
		b.AwaitRoute(end.Addr())
	}
	return a, b, c
}

// awaitRoutes waits until two nodes have a route to each other.
func awaitRoutes(t *testing.T, a, b *Node) {
	t.Helper()
	a.AwaitRoute(b.Addr())
	b.AwaitRoute(a.Addr())
}

// fails runs a command that must fail with exactly one error line, and returns that line.
func fails(t *testing.T, n *Node, within time.Duration, format string, args ...any) string {
	t.Helper()
	mark := n.Mark()
	n.Command(format, args...)
	n.Command("wait")
	n.FenceWithin(within)
	complaints := Complaints(n.Lines(mark))
	require.Len(t, complaints, 1, "one error line in %q", n.Lines(mark))
	return complaints[0]
}

// transfer is a file transfer between two nodes.
type transfer struct {
	t            *testing.T
	from, to     *Node
	sent, came   Mark
	file, target string
	port         int
}

// startTransfer transfers a file of random bytes, and returns once both ends have started.
func startTransfer(t *testing.T, from, to *Node, size int64, port int) *transfer {
	t.Helper()
	d := startReceiver(t, from, to, RandomFile(t, size, uint64(size)+uint64(port)), port)
	d.send()
	return d
}

// startReceiver starts only the receiver.
func startReceiver(t *testing.T, from, to *Node, file string, port int) *transfer {
	t.Helper()
	d := &transfer{
		t: t, from: from, to: to, sent: from.Mark(), came: to.Mark(), file: file,
		target: filepath.Join(t.TempDir(), "received"), port: port,
	}
	to.Receive(d.target, port)
	return d
}

func (d *transfer) send() {
	d.t.Helper()
	d.from.Command("sendfile %s %s %d --json", d.file, address(d.to), d.port)
}

// over reports whether the receiver has reported the end.
func (d *transfer) over() bool { return len(lines(d.to.Lines(d.came), d.target)) > 0 }

// done waits for both ends, and compares the received file with the original.
func (d *transfer) done(within time.Duration) {
	d.t.Helper()
	sent := d.from.Transferred(d.sent, d.file, within)
	came := d.to.Transferred(d.came, d.target, within)
	info, err := os.Stat(d.file)
	require.NoError(d.t, err)
	digest := Digest(d.t, d.file)
	assert.Equal(d.t, info.Size(), sent.Bytes, "bytes sent")
	assert.Equal(d.t, info.Size(), came.Bytes, "bytes received")
	assert.Equal(d.t, digest, sent.SHA256, "the sender's SHA-256")
	assert.Equal(d.t, digest, came.SHA256, "the receiver's SHA-256")
	assert.Equal(d.t, digest, Digest(d.t, d.target), "the received file's SHA-256")
	assert.NoFileExists(d.t, d.target+".part")
	d.t.Logf("%d bytes %s → %s: %.1f MB/s, rtt %v, mss %d, %d retransmits, %d RTOs, %d tail probes, "+
		"%d window probes", sent.Bytes, d.from.Name, d.to.Name, sent.MBPerS, sent.RTT, sent.MSS,
		sent.Retransmits, sent.Timeouts, sent.TailProbes, sent.WindowProbes)
	require.NoError(d.t, os.Remove(d.target))
}

// started waits until the first bytes have arrived. On a busy machine, the file may be complete by
// then.
func (d *transfer) started(atLeast int64) {
	d.t.Helper()
	d.to.Eventually(Soon, "first bytes of "+d.target, func() bool {
		info, err := os.Stat(d.target + ".part")
		if errors.Is(err, fs.ErrNotExist) {
			info, err = os.Stat(d.target)
		}
		return err == nil && info.Size() >= atLeast
	})
}

func address(n *Node) netip.Addr { return n.Addr() }

// has reports whether one of the lines contains a text.
func has(lines []string, text string) bool { return strings.Contains(strings.Join(lines, "\n"), text) }
