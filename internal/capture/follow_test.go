package capture_test

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/capture"
)

// connection follows a connection between 10.0.0.1:33000 (left) and 10.1.0.2:80.
type connection struct {
	t *testing.T
	f capture.Follower
}

const (
	leftISS  = 4_294_967_000 // makes sequence numbers wrap
	rightISS = 500
)

// next returns the next segment, with relative numbers.
func (k *connection) next(sent, lost bool, l layers.TCP, n int) capture.Segment {
	k.t.Helper()
	h := header(6)
	l.SrcPort, l.DstPort = 33000, 80
	seq, ack := uint32(leftISS), uint32(rightISS)
	if !sent {
		h.SrcIP, h.DstIP = addrC, addrA
		l.SrcPort, l.DstPort = 80, 33000
		seq, ack = ack, seq
	}
	l.Seq += seq
	l.Ack += ack
	packet := build(k.t, h, &l, gopacket.Payload(make([]byte, n)))
	var facts capture.Facts
	facts.Parse(packet)
	s, ok := k.f.Follow(packet[:min(len(packet), capture.HeaderBytes)], &facts, sent, lost)
	require.True(k.t, ok)
	return s
}

func (k *connection) left(l layers.TCP, n int) capture.Segment { return k.next(true, false, l, n) }
func (k *connection) right(l layers.TCP, n int) capture.Segment {
	return k.next(false, false, l,
		n)
}

// open sends a handshake with window scaling.
func (k *connection) open() {
	k.t.Helper()
	k.left(layers.TCP{SYN: true, Window: 65535, Options: options()}, 0)
	k.right(layers.TCP{SYN: true, ACK: true, Ack: 1, Window: 65535, Options: options()}, 0)
	k.left(layers.TCP{ACK: true, Seq: 1, Ack: 1, Window: 512}, 0)
}

func marks(s capture.Segment) string { return strings.Join(s.Marks.Names(), ", ") }

func TestFollowHandshake(t *testing.T) {
	k := connection{t: t}
	s := k.left(layers.TCP{SYN: true, Window: 65535, Options: options()}, 0)
	assert.Equal(t, capture.Segment{
		Flags: "S", Window: 65535, MSS: 1360, Scale: 7, TSVal: 7, SACK: s.SACK,
		WireSeq: leftISS,
	}, s)
	assert.Equal(t, "retransmission", marks(k.left(layers.TCP{SYN: true}, 0)))
	s = k.right(layers.TCP{SYN: true, ACK: true, Ack: 1, Window: 65535, Options: options()}, 0)
	assert.Equal(t, []any{"S.", uint64(0), uint64(1), 65535}, []any{s.Flags, s.Seq, s.Ack, s.Window})
	s = k.left(layers.TCP{ACK: true, Seq: 1, Ack: 1, Window: 512}, 0)
	assert.Equal(t, 512, s.Window, "RFC 7323 §2.2: the second SYN had no window scale option")

	k = connection{t: t}
	k.open()
	s = k.left(layers.TCP{ACK: true, Seq: 1, Ack: 1, Window: 512}, 1000)
	assert.Equal(t, []any{".", uint64(1), uint64(1), 1000, 512 << 7, ""},
		[]any{s.Flags, s.Seq, s.Ack, s.Length, s.Window, marks(s)})
	assert.False(t, k.f.Over())
}

// TestMarks checks the marks of a connection whose sequence numbers wrap after the first segments.
func TestMarks(t *testing.T) {
	k := connection{t: t}
	k.open()
	win := uint16(512)
	data := func(seq uint32, n int) string {
		s := k.left(layers.TCP{ACK: true, Seq: seq, Ack: 1, Window: win}, n)
		assert.Equal(t, uint64(seq), s.Seq)
		return marks(s)
	}
	ack := func(number uint32, blocks ...uint32) capture.Segment {
		l := layers.TCP{ACK: true, Seq: 1, Ack: number, Window: win}
		if len(blocks) > 0 {
			var b []byte
			for _, x := range blocks {
				x += leftISS
				b = binary.BigEndian.AppendUint32(b, x)
			}
			l.Options = []layers.TCPOption{option(layers.TCPOptionKindSACK, b...)}
		}
		s := k.right(l, 0)
		assert.Equal(t, uint64(number), s.Ack)
		return s
	}
	assert.Empty(t, data(1, 1000))
	assert.Empty(t, data(1001, 1000))
	assert.Empty(t, data(2001, 1000))
	assert.Empty(t, marks(ack(1001)))
	s := ack(1001, 2001, 3001)
	assert.Equal(t, "dup ack", marks(s), "RFC 5681 §2")
	assert.Equal(t, 1, s.DupAck)
	assert.Equal(t, [][2]uint64{{2001, 3001}}, s.SACK)
	assert.Equal(t, 2, ack(1001, 2001, 3001).DupAck)
	assert.Equal(t, "retransmission", data(1001, 1000))
	assert.Empty(t, marks(ack(3001)))
	assert.Equal(t, "duplicate SACK", marks(ack(3001, 1001, 2001)), "RFC 2883 §4")

	win = 0
	assert.Equal(t, "zero window", marks(ack(3001)))
	win = 512
	assert.Equal(t, "window probe", data(3001, 1))
	assert.Equal(t, "window update", marks(ack(3001)))
	assert.Equal(t, "retransmission", data(3001, 1000))
	assert.Empty(t, marks(ack(4001)))
	assert.Equal(t, "keep-alive", data(4000, 0))

	// A segment that the left end drops when sending counts as sent. A segment that it drops on
	// arrival does not count.
	assert.Empty(t, marks(k.next(true, false, layers.TCP{ACK: true, Seq: 4001, Ack: 1, Window: 9},
		100)))
	assert.Empty(t, marks(k.next(false, true, layers.TCP{ACK: true, Seq: 1, Ack: 4001, Window: win},
		500)))
	assert.Equal(t, "gap", marks(k.right(layers.TCP{ACK: true, Seq: 501, Ack: 4001, Window: win}, 500)))
	assert.Equal(t, "fills a gap",
		marks(k.right(layers.TCP{ACK: true, Seq: 1, Ack: 4001, Window: win}, 500)))
	assert.Equal(t, "retransmission",
		marks(k.right(layers.TCP{ACK: true, Seq: 1, Ack: 4001, Window: win}, 500)))
	assert.Equal(t, "congestion echo",
		marks(k.right(layers.TCP{ACK: true, ECE: true, Seq: 1001, Ack: 4101, Window: win}, 0)),
		"RFC 3168 §6.1")
	assert.Equal(t, "window reduced",
		marks(k.left(layers.TCP{ACK: true, CWR: true, Seq: 4101, Ack: 1001, Window: win}, 10)))
}

func TestFollowToTheEnd(t *testing.T) {
	k := connection{t: t}
	k.open()
	k.left(layers.TCP{ACK: true, FIN: true, Seq: 1, Ack: 1}, 10)
	k.right(layers.TCP{ACK: true, Seq: 1, Ack: 12}, 0)
	k.right(layers.TCP{ACK: true, FIN: true, Seq: 1, Ack: 12}, 0)
	assert.False(t, k.f.Over())
	k.left(layers.TCP{ACK: true, Seq: 12, Ack: 2}, 0)
	assert.True(t, k.f.Over())

	k = connection{t: t}
	k.open()
	k.next(false, true, layers.TCP{RST: true, Seq: 1}, 0)
	assert.False(t, k.f.Over(), "the segment was dropped")
	k.right(layers.TCP{RST: true, Seq: 1}, 0)
	assert.True(t, k.f.Over())
}

// TestFollowFromTheMiddle checks that the first segment seen has number 1.
func TestFollowFromTheMiddle(t *testing.T) {
	k := connection{t: t}
	s := k.left(layers.TCP{ACK: true, Seq: 70000, Ack: 90000, Window: 9}, 100)
	assert.Equal(t, []any{uint64(1), uint64(1), ""}, []any{s.Seq, s.Ack, marks(s)})
	s = k.right(layers.TCP{ACK: true, Seq: 90000, Ack: 70100, Window: 9}, 10)
	assert.Equal(t, []any{uint64(1), uint64(101), ""}, []any{s.Seq, s.Ack, marks(s)})
}

func FuzzFollower(f *testing.F) {
	f.Add([]byte("\x02\x10\x00\x00\x01\x10\x00\x05\x05\x0a"))
	f.Fuzz(func(t *testing.T, script []byte) {
		var k capture.Follower
		packet := make([]byte, 60)
		packet[0], packet[9] = 0x45, 6
		for len(script) > 8 {
			copy(packet[24:], script[:8])
			packet[2], packet[3] = 0, 40+script[0]
			packet[32], packet[33] = script[1]|0x50, script[2]
			copy(packet[34:], script[3:])
			sent := script[0]&1 == 0
			var facts capture.Facts
			facts.Parse(packet)
			k.Follow(packet, &facts, sent, script[0]&2 == 0)
			script = script[4:]
		}
		k.Over()
	})
}
