package e2e_test

import (
	"encoding/json"
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/test/internal/peer"
)

// The course's demonstration: a dropped segment arrives late, and its data is put in the right
// place.
func TestCourseOutOfOrder(t *testing.T) {
	t.Parallel()
	a, b, c := line(t)
	mark := c.Mark()
	c.MustDo("a 9000")
	a.MustDo("c %s 9000", c.Addr())
	c.Await(mark, Soon, `^New connection on socket 0 => created new socket 1`)
	b.MustDo("drop 1")
	a.MustDo("s 0 aa")
	b.MustDo("drop 0")
	a.MustDo("s 0 bbcc")
	a.MustDo("s 0 ddeeff")
	assert.Equal(t, []string{"Read 12 bytes: aabbccddeeff"}, c.MustDo("r 1 12 y"))
}

// While the receiver does not read, the window closes. When it reads, the window opens again at
// once.
func TestWindowClosesAndReopens(t *testing.T) {
	t.Parallel()
	net := CopyNetwork(t, "nets", "a-b").StartAll()
	a, b := net.Node("A"), net.Node("B")
	mark := b.Mark()
	b.MustDo("accept 9000")
	a.MustDo("connect %s 9000", b.Addr())
	b.Await(mark, Soon, `^New connection on socket 0 => created new socket 1`)
	const size = 30 * megabyte
	a.Command("s 0 FILL w %d", size) // the shell waits until the send buffer has the last byte
	b.Eventually(Soon, "closed window", func() bool {
		return has(b.MustDo("window 1"), "receive window 0")
	})
	began := time.Now()
	for range size / megabyte {
		out := b.MustDo("recv 1 %d y", megabyte)
		require.Len(t, out, 1)
		assert.Len(t, strings.TrimRight(out[0], "w"), len("Read 1000000 bytes: "))
	}
	t.Logf("# %d bytes read in %v", size, time.Since(began))
	a.Fence()
	assert.Len(t, lines(a.Lines(0), "Sent 30000000 bytes"), 1)
}

// If the sender cancels a transfer, the receiver keeps the received part and reports it.
func TestCanceledTransfer(t *testing.T) {
	t.Parallel()
	a, b, c := line(t)
	b.MustDo("impair if1 out rate 40mbit") // the transfer must still run when it is canceled
	d := startTransfer(t, a, c, 50*megabyte, 9000)
	d.started(1)
	b.MustDo("lossyforward 100")
	a.MustDo("cancel 1")
	b.MustDo("lossyforward 0")
	assert.Contains(t, fails(t, a, Soon, "wait"), "stopped")
	receiver := fails(t, c, Soon+time.Minute, "wait")
	assert.Regexp(t, "reset|timed out", receiver)
	assert.Contains(t, receiver, d.target+".part")
	assert.Empty(t, a.Sockets())
}

// With --json, a session prints one document per line.
func TestSessionInJSON(t *testing.T) {
	t.Parallel()
	net := CopyNetwork(t, "nets", "a-b-c")
	r := node(t, "interfaces\nneighbors\nroutes\nsend 10.0.0.2 hello\nlossyforward 2\naccept 80\nsockets\n",
		"run", "--json", net.File("B"))
	assert.Zero(t, r.code, r.err)
	var received control.TestReceived
	for text := range strings.SplitSeq(strings.TrimSpace(r.out), "\n") {
		require.True(t, json.Valid([]byte(text)), "no JSON: %s", text)
		var event struct {
			Event string          `json:"event"`
			Data  json.RawMessage `json:"data"`
		}
		if json.Unmarshal([]byte(text), &event) == nil && event.Event == "test" {
			require.NoError(t, json.Unmarshal(event.Data, &received))
		}
	}
	assert.Equal(t, "hello", received.Text)
}

// All nodes must accept packets that few nodes send: with header options, or with a TTL of 1.
func TestUnusualValidPackets(t *testing.T) {
	t.Parallel()
	n, wire := startWithPeer(t)
	for ttl, text := range map[uint8]string{1: "the last hop", 255: "from afar"} {
		mark := n.Mark()
		wire.SendPacket(peer.Packet{
			TTL: ttl, Proto: peer.ProtoTest, Src: theirs, Dst: ours, Payload: []byte(text),
		})
		n.Await(mark, Soon, "Data: "+text+"$")
	}
	mark := n.Mark()
	wire.Send(peer.WithOptions(peer.Packet{
		TTL: 16, Proto: peer.ProtoTest, Src: theirs, Dst: ours, Payload: []byte("with options"),
	}, []byte{1, 1, 1, 0}))
	n.Await(mark, Soon, "Data: with options$")
}

var long = flag.Bool("long", false, "transfer 5 GB too")

// A transfer during which the sequence numbers wrap arrives intact. It takes some time and needs
// -long.
func TestSequenceNumbersWrap(t *testing.T) {
	if !*long {
		t.Skip("5 GB: go test ./test -long")
	}
	net := CopyNetwork(t, "nets", "a-b").StartAll()
	a, b := net.Node("A"), net.Node("B")
	file := RandomFile(t, 5000*megabyte, 9)
	d := startReceiver(t, a, b, file, 9000)
	d.send()
	d.done(patience)
}
