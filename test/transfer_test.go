package e2e_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	ci "github.com/tidepool-net/tidepool/internal/ci/testenv"
)

const (
	megabyte = 1_000_000
	// patience is the time limit of a transfer.
	patience = 4 * time.Minute
)

// sizes returns the sizes of the files in each direction. In a short run, the largest is smaller.
func sizes() []int64 {
	if ci.Long() {
		return []int64{0, 1, megabyte, 100 * megabyte}
	}
	return []int64{0, 1, megabyte, 5 * megabyte}
}

// Files are transferred with both grammars, in both directions at the same time.
func TestFilesCrossALossyNetwork(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{"nets/a-b-c", "nets/old/a-b-c"} {
		for _, loss := range []int{0, 2, 10} {
			t.Run(fmt.Sprintf("%s at %d%%", folder, loss), func(t *testing.T) {
				t.Parallel()
				a, b, c := line(t, filepath.FromSlash(folder))
				b.MustDo("lossyforward %d", loss)
				for i, size := range sizes() {
					t.Logf("# %d bytes each way", size)
					right := startTransfer(t, a, c, size, 9000+i)
					left := startTransfer(t, c, a, size, 9100+i)
					right.done(patience)
					left.done(patience)
				}
				drops := b.Dropped()["lossy forward"]
				if loss == 0 {
					assert.Zero(t, drops)
				} else {
					assert.NotZero(t, drops)
				}
			})
		}
	}
}

// The short forms of the transfer commands work, and both ends print the expected output.
func TestTransferOutput(t *testing.T) {
	t.Parallel()
	n := CopyNetwork(t, "nets", "a-b").StartAll()
	a, b := n.Node("A"), n.Node("B")
	file := RandomFile(t, 12_345, 1)
	target := filepath.Join(t.TempDir(), "with blank")
	mark := b.Mark()
	b.MustDo("rf %q 9000", target)
	out := a.MustDo("sf %s %s 9000", file, b.Addr())
	if !has(out, "total bytes") {
		out = a.MustDo("wait")
	}
	digest := Digest(t, file)
	require.True(t, has(out, "Sent 12345 total bytes"), "%q", out)
	assert.True(t, has(out, digest), "the sender's SHA-256: %q", out)
	assert.True(t, has(out, "MB/s"), "%q", out)
	b.MustDo("wait")
	came := b.Lines(mark)
	assert.True(t, has(came, "Received 12345 total bytes"), "%q", came)
	assert.True(t, has(came, digest), "the receiver's SHA-256: %q", came)
	assert.Equal(t, digest, Digest(t, target))
}

// A script waits for its transfers before it ends.
func TestEndOfInputWaitsForTransfers(t *testing.T) {
	t.Parallel()
	n := CopyNetwork(t, "nets", "a-b").StartAll()
	a, b := n.Node("A"), n.Node("B")
	d := startTransfer(t, a, b, 2*megabyte, 9000)
	assert.Zero(t, a.Quit(patience))
	assert.Zero(t, b.Quit(patience))
	assert.Equal(t, Digest(t, d.file), Digest(t, d.target))
}

// Sockets transfer texts and FILL data, with half-closes in both directions.
func TestSocketsInTheShell(t *testing.T) {
	t.Parallel()
	n := CopyNetwork(t, "nets", "a-b").StartAll()
	a, b := n.Node("A"), n.Node("B")
	mark := b.Mark()
	require.Equal(t, []string{"Created listen socket with ID 0"}, b.MustDo("a 9000"))
	require.Equal(t, []string{"Created new socket with ID 0"}, a.MustDo("c %s 9000", b.Addr()))
	b.Await(mark, Soon, `^New connection on socket 0 => created new socket 1`)

	assert.Equal(t, []string{"Sent 12 bytes"}, a.MustDo("s 0 hello  world"))
	assert.Equal(t, []string{"Read 12 bytes: hello  world"}, b.MustDo("r 1 100"))
	assert.Equal(t, []string{"Sent 5 bytes"}, b.MustDo("send 1 there"))
	assert.Equal(t, []string{"Read 5 bytes: there"}, a.MustDo("recv 0 5 y"))
	a.MustDo("s 0 FILL z 100000")
	out := b.MustDo("recv 1 100000 y")
	require.Len(t, out, 1)
	assert.Len(t, out[0], len("Read 100000 bytes: ")+100_000)

	t.Log("# the states of an orderly close, at both ends")
	a.MustDo("shutdown 0 write")
	b.Eventually(Soon, "CLOSE_WAIT", func() bool { return stateOf(b, 1) == "CLOSE_WAIT" })
	assert.Equal(t, "FIN_WAIT_2", stateOf(a, 0))
	assert.Equal(t, []string{"Sent 7 bytes"}, b.MustDo("s 1 goodbye"))
	assert.Equal(t, []string{"Read 7 bytes: goodbye"}, a.MustDo("r 0 100"))
	b.MustDo("close 1")
	a.Eventually(Soon, "TIME_WAIT or gone", func() bool {
		s := stateOf(a, 0)
		return s == "TIME_WAIT" || s == ""
	})
	b.Eventually(Soon, "LAST_ACK passed", func() bool { return stateOf(b, 1) == "" })
}

// stateOf returns a socket's state, or "" if it does not exist.
func stateOf(n *Node, sid int) string {
	for _, s := range n.Sockets() {
		if s.SID == sid {
			return s.State
		}
	}
	return ""
}
