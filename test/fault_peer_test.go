package e2e_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	ci "github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/control"
)

func TestNoRouteToHost(t *testing.T) {
	t.Parallel()
	net := CopyNetwork(t, "nets", "a-b-c")
	net.Append("A", fastRetries)
	a, b, _ := startLine(t, net)
	t.Log("# the router knows at once")
	file := RandomFile(t, 10, 1)
	for _, command := range []string{
		"connect 99.0.0.1 80", "send 99.0.0.1 hello", "ping -c 1 99.0.0.1", "sendfile " + file + " 99.0.0.1 80",
	} {
		assert.Contains(t, fails(t, b, Soon, "%s", command), "no route to host", command)
	}
	t.Log("# the host has a default route, and learns it from the router by ICMP")
	began := time.Now()
	complaint := fails(t, a, Soon, "connect 99.0.0.1 80")
	assert.Regexp(t, "unreachable|no route", complaint)
	t.Logf("# after %v", time.Since(began))
	out, _ := a.Do("ping -c 1 -i 0.1 99.0.0.1")
	assert.True(t, has(out, "From "+a.Neighbors()[0].Addr.String()), "%q", out)
	assert.Empty(t, a.Sockets())
}

func TestConnectionRefused(t *testing.T) {
	t.Parallel()
	a, b, c := line(t)
	b.MustDo("lossyforward 0")
	began := time.Now()
	complaint := fails(t, a, Soon, "connect %s 81", c.Addr())
	assert.Contains(t, complaint, "connection refused")
	complaint = fails(t, a, Soon, "sendfile %s %s 81", RandomFile(t, 10, 1), c.Addr())
	assert.Contains(t, complaint, "connection refused")
	assert.Less(t, time.Since(began), 10*time.Second, "a reset needs no timeout")
	assert.Empty(t, a.Sockets())
}

// If the other end does not exist, connecting fails after the SYN's retries.
func TestConnectTimeout(t *testing.T) {
	t.Parallel()
	net := CopyNetwork(t, "nets", "a-b")
	net.Append("A", fastRetries)
	a := net.Start("A") // B is never started
	complaint := fails(t, a, patience, "connect 10.0.0.2 80")
	assert.Regexp(t, "timed out|unreachable", complaint)
	assert.Empty(t, a.Sockets())
}

func TestTCPPortInUse(t *testing.T) {
	t.Parallel()
	a := CopyNetwork(t, "nets", "a-b").Start("A")
	a.MustDo("accept 9000")
	target := t.TempDir() + "/target"
	for _, command := range []string{"accept 9000", "recvfile " + target + " 9000"} {
		assert.Contains(t, fails(t, a, Soon, "%s", command), "address already in use", command)
	}
	require.Len(t, a.Sockets(), 1)
	t.Log("# after close the port is free again")
	a.MustDo("close 0")
	a.MustDo("accept 9000")
	t.Log("# the target name of an unused receiver is free again")
	assert.NoFileExists(t, target)
	assert.NoFileExists(t, target+".part")
}

// Two nodes with one UDP port: the second reports the conflict and exits.
func TestUDPPortInUse(t *testing.T) {
	t.Parallel()
	net := CopyNetwork(t, "nets", "a-b")
	net.Start("A")
	out, err := Command("run", net.File("A")).CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(out), "address already in use")
	assert.NotContains(t, string(out), "goroutine")
}

// fastRetries keeps TCP's retries within the test's time limit.
const fastRetries = "tcp rto-max 100000"

// startSlowTransfer starts a transfer over a slow link, so that a test can interrupt it. It appends
// lines to the .lnx files of both ends.
func startSlowTransfer(t *testing.T, lines ...string) (net *Network, d *transfer) {
	t.Helper()
	net = CopyNetwork(t, "nets", "a-b-c")
	for _, line := range lines {
		net.Append("A", line)
		net.Append("C", line)
	}
	a, b, c := startLine(t, net)
	b.MustDo("impair if1 out rate 4mbit")
	d = startTransfer(t, a, c, 20*megabyte, 9000)
	d.started(1)
	return net, d
}

// resumeTransfer sends the rest of the same file. One of the nodes was restarted and knows nothing
// of the first part.
func resumeTransfer(t *testing.T, net *Network, d *transfer) {
	t.Helper()
	a, b, c := net.Node("A"), net.Node("B"), net.Node("C")
	awaitRoutes(t, a, c)
	b.MustDo("impair if1 off")
	mark := c.Mark()
	c.MustDo("recvfile %s 9000 --resume --json", d.target)
	said := c.Await(mark, Soon, `continues at byte (\d+): send with .sendfile --offset \d+`)
	back := a.Mark()
	mark = c.Mark()
	a.Command("sendfile %s %s 9000 --offset %s --json", d.file, address(c), said[1])
	sent := a.Transferred(back, d.file, patience)
	came := c.Transferred(mark, d.target, patience)
	digest := Digest(t, d.file)
	for _, end := range []control.Transfer{sent, came} {
		assert.Equal(t, said[1], strconv.FormatInt(end.Offset, 10))
		assert.Equal(t, int64(20*megabyte), end.Offset+end.Bytes)
		assert.Equal(t, digest, end.SHA256, "of the whole file")
	}
	assert.Positive(t, came.Offset)
	assert.Equal(t, digest, Digest(t, d.target))
	assert.NoFileExists(t, d.target+".part")
}

func TestReceiverIsKilled(t *testing.T) {
	t.Parallel()
	net, d := startSlowTransfer(t, fastRetries)
	net.Node("C").Kill()
	began := time.Now()
	complaint := fails(t, net.Node("A"), patience, "wait")
	t.Logf("# the sender knew after %v: %s", time.Since(began), complaint)
	assert.Contains(t, complaint, d.file)
	assert.Regexp(t, "timed out|unreachable", complaint)
	assert.Empty(t, net.Node("A").Sockets())
	assert.FileExists(t, d.target+".part")
}

func TestReceiverRestarts(t *testing.T) {
	t.Parallel()
	net, d := startSlowTransfer(t) // a busy machine may take seconds to start C
	net.Node("C").Kill()
	net.Start("C")
	// C has no such connection, so it sends a reset (RFC 9293 §3.5.1).
	complaint := fails(t, net.Node("A"), patience, "wait")
	assert.Contains(t, complaint, d.file)
	assert.Contains(t, complaint, "reset")
	t.Log("# the stored part is there; transfer the rest")
	resumeTransfer(t, net, d)
}

func TestSenderIsKilled(t *testing.T) {
	t.Parallel()
	ci.NeedLong(t) // the receiver's keepalive takes 30 s
	net, d := startSlowTransfer(t, fastRetries)
	net.Node("A").Kill()
	began := time.Now()
	complaint := fails(t, net.Node("C"), patience, "wait")
	t.Logf("# the receiver knew after %v: %s", time.Since(began), complaint)
	assert.Contains(t, complaint, d.target)
	assert.Regexp(t, "timed out|unreachable|reset", complaint)
	assert.Contains(t, complaint, ".part")
	assert.Empty(t, net.Node("C").Sockets())
	t.Log("# the sender restarts and sends the rest")
	net.Start("A")
	resumeTransfer(t, net, d)
}

// If a router is killed and restarted, a transfer is delayed but loses no byte.
func TestRouterRestarts(t *testing.T) {
	t.Parallel()
	net := CopyNetwork(t, "nets", "a-b-c")
	a, b, c := startLine(t, net)
	d := startTransfer(t, a, c, 20*megabyte, 9000)
	b.Kill()
	net.Start("B")
	d.done(patience)
}

func TestManyConnections(t *testing.T) {
	t.Parallel()
	count := 60
	if ci.Long() {
		count = 1000
	}
	net := CopyNetwork(t, "nets", "a-b").StartAll()
	a, b := net.Node("A"), net.Node("B")
	b.MustDo("accept 9000")
	addr := b.Addr()
	for range count {
		a.Command("connect %s 9000", addr)
	}
	a.FenceWithin(patience)
	b.Eventually(Soon, fmt.Sprintf("%d established connections", count), func() bool {
		return inState(b, "ESTABLISHED") == count
	})
	require.Equal(t, count, inState(a, "ESTABLISHED"))
	for sid := range count {
		a.Command("s %d hello %d", sid, sid)
	}
	for sid := range count {
		a.Command("close %d", sid)
	}
	a.FenceWithin(patience)
	b.Eventually(Soon, "all connections closed by the peer", func() bool {
		return inState(b, "CLOSE_WAIT") == count
	})
	for sid := 1; sid <= count; sid++ {
		b.Command("recv %d 100", sid)
		b.Command("close %d", sid)
	}
	b.FenceWithin(patience)
	b.Eventually(Soon, "end of all but the listener", func() bool { return len(b.Sockets()) == 1 })
	a.Eventually(Soon, "end of all but TIME_WAIT", func() bool {
		return len(a.Sockets()) == inState(a, "TIME_WAIT")
	})
	assert.Empty(t, Complaints(a.Lines(0)))
	assert.Empty(t, Complaints(b.Lines(0)))
	assert.Len(t, lines(b.Lines(0), "Read "), count)

	t.Log("# one after the other, over the same ports")
	for i := range 50 {
		file := RandomFile(t, int64(i), uint64(i))
		d := startReceiver(t, a, b, file, 9001)
		d.send()
		d.done(Soon)
	}
}

func inState(n *Node, state string) int {
	count := 0
	for _, s := range n.Sockets() {
		if s.State == state {
			count++
		}
	}
	return count
}
