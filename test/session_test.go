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
	"github.com/tidepool-net/tidepool/test/internal/nodes"
	"github.com/tidepool-net/tidepool/test/internal/peer"
)

// The course's own demonstration: what was dropped on the way comes late and in its place.
func TestOutOfOrderAsTheCourseShowsIt(t *testing.T) {
	t.Parallel()
	a, b, c := line(t)
	mark := c.Mark()
	c.MustDo("a 9000")
	a.MustDo("c %s 9000", c.Addr())
	c.Await(mark, nodes.Soon, `^New connection on socket 0 => created new socket 1`)
	b.MustDo("drop 1")
	a.MustDo("s 0 aa")
	b.MustDo("drop 0")
	a.MustDo("s 0 bbcc")
	a.MustDo("s 0 ddeeff")
	assert.Equal(t, []string{"Read 12 bytes: aabbccddeeff"}, c.MustDo("r 1 12 y"))
}

// Nobody reads, so the window closes; when somebody does, it opens at once.
func TestAWindowThatClosesAndOpens(t *testing.T) {
	t.Parallel()
	net := nodes.CopyNetwork(t, "nets", "a-b").StartAll()
	a, b := net.Node("A"), net.Node("B")
	mark := b.Mark()
	b.MustDo("accept 9000")
	a.MustDo("connect %s 9000", b.Addr())
	b.Await(mark, nodes.Soon, `^New connection on socket 0 => created new socket 1`)
	const size = 30 * megabyte
	a.Command("s 0 FILL w %d", size) // its shell waits until the last byte is in the send buffer
	b.Eventually(nodes.Soon, "closed window", func() bool {
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

// A transfer that its owner gives up: the other end keeps what came and says so.
func TestACanceledTransfer(t *testing.T) {
	t.Parallel()
	a, b, c := line(t)
	b.MustDo("impair if1 out rate 40mbit") // the transfer must still run when it is canceled
	d := deliver(t, a, c, 50*megabyte, 9000)
	d.started(1)
	b.MustDo("lossyforward 100")
	a.MustDo("cancel 1")
	b.MustDo("lossyforward 0")
	assert.Contains(t, fails(t, a, nodes.Soon, "wait"), "stopped")
	receiver := fails(t, c, nodes.Soon+time.Minute, "wait")
	assert.Regexp(t, "reset|timed out", receiver)
	assert.Contains(t, receiver, d.target+".part")
	assert.Empty(t, a.Sockets())
}

// With --json a whole session is documents, a line each.
func TestASessionInJSON(t *testing.T) {
	t.Parallel()
	net := nodes.CopyNetwork(t, "nets", "a-b-c")
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

// Packets that few send and all must take: options in the header, the last hop's TTL.
func TestPacketsThatAreOddButSound(t *testing.T) {
	t.Parallel()
	n, wire := besides(t)
	for ttl, text := range map[uint8]string{1: "the last hop", 255: "from afar"} {
		mark := n.Mark()
		wire.SendPacket(peer.Packet{
			TTL: ttl, Proto: peer.ProtoTest, Src: theirs, Dst: ours, Payload: []byte(text),
		})
		n.Await(mark, nodes.Soon, "Data: "+text+"$")
	}
	mark := n.Mark()
	wire.Send(peer.WithOptions(peer.Packet{
		TTL: 16, Proto: peer.ProtoTest, Src: theirs, Dst: ours, Payload: []byte("with options"),
	}, []byte{1, 1, 1, 0}))
	n.Await(mark, nodes.Soon, "Data: with options$")
}

var long = flag.Bool("long", false, "move 5 GB, too")

// More than the sequence numbers count crosses intact. It takes a while, so it has to be asked for.
func TestMoreThanTheSequenceNumbersCount(t *testing.T) {
	if !*long {
		t.Skip("5 GB: go test ./test -long")
	}
	net := nodes.CopyNetwork(t, "nets", "a-b").StartAll()
	a, b := net.Node("A"), net.Node("B")
	file := nodes.RandomFile(t, 5000*megabyte, 9)
	d := expect(t, a, b, file, 9000)
	d.send()
	d.done(patience)
}
