package sim

import (
	"encoding/binary"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/checksum"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// Segment is a TCP segment that a host sent or received, for the graphs of tcptrace. Its
// numbers are offsets of the streams: 0 is the first byte, and they do not wrap.
type Segment struct {
	Time clock.Time
	// Sent is set for packets that the host sent, not for those it received.
	Sent  bool
	Tuple tcp.Tuple // from the host's side
	Flags tcp.Flags
	// Seq is the offset of the first of Len bytes; Ack of the next that the sender expects.
	Seq, Ack uint64
	Len      int
	// Window is the peer's to send in, in bytes.
	Window int
	// Again: what it carries, or something behind that, was in an earlier segment. If it is
	// sent, then once more; if it is received, segments may have overtaken each other.
	Again bool
	// SACK are the ranges of its option, lent for the call. The first may be a duplicate
	// (RFC 2883 §4).
	SACK []Range
	// Stamped: it carries time stamps.
	Stamped      bool
	TSVal, TSEcr uint32
}

// Range is a range of a stream's offsets, its end excluded.
type Range struct{ Start, End uint64 }

// maxTraced bounds the connections that a trace remembers; segments of others are not
// shown.
const maxTraced = 1 << 16

// Trace shows f each TCP segment that the host sends or receives from now on, but for
// those that it takes for damaged or passes on for others. The segment is lent for the
// call, in which f calls nothing of the host.
func (h *Host) Trace(f func(*Segment)) {
	h.Tap(NewTracer(func(addr netip.Addr) bool {
		_, own := h.stack.Interfaces().Owns(addr)
		return own
	}, f).Tap)
}

// Tracer makes segments of a host's packets.
type Tracer struct {
	owns  func(addr netip.Addr) bool
	show  func(*Segment)
	flows map[tcp.Tuple]*traced
	seg   Segment
	sack  [4]Range
}

// NewTracer returns a Tracer for the host that has some addresses. It shows segments to f as
// Host.Trace does.
func NewTracer(owns func(addr netip.Addr) bool, f func(*Segment)) *Tracer {
	return &Tracer{owns: owns, show: f, flows: map[tcp.Tuple]*traced{}}
}

// traced is the state of a connection.
type traced struct{ out, in direction }

// direction is one of a connection's two streams.
type direction struct {
	begun bool   // first is known
	seen  bool   // it has sent something
	first uint32 // the sequence number of the stream's first byte
	high  uint64 // the highest offset seen, behind a SYN or FIN too
	scale uint8  // of the windows that its sender offers
	asks  bool   // its SYN had the option: scales count if both have
}

// Tap is a stack.Tap. Whatever it is shown alive has an IP header that was verified.
func (t *Tracer) Tap(
	now clock.Time, _ int, dir stack.Direction, reason ip.DropReason, pieces [][]byte,
) {
	const flagsAndOffset, protocolAt, src, dst = 6, 9, 12, 16
	p := pieces[0]
	whole := binary.BigEndian.Uint16(p[flagsAndOffset:])&0x3fff == 0
	if reason != ip.DropNone || p[protocolAt] != ip.ProtoTCP || !whole {
		return
	}
	sent := dir == stack.Outbound
	tuple := tcp.Tuple{
		LocalAddr:  netip.AddrFrom4([4]byte(p[src:])),
		RemoteAddr: netip.AddrFrom4([4]byte(p[dst:])),
	}
	size := int(binary.BigEndian.Uint16(p[2:]))
	header := int(p[0]&15) * 4
	if header > len(p) {
		return // of a raw socket's
	}
	size, p = size-header, p[header:]
	sum := checksum.PseudoHeader(tuple.LocalAddr, tuple.RemoteAddr, ip.ProtoTCP, size)
	from, to, h, _, ok := tcp.ParseHeader(p)
	if !ok || !sent && !checksum.Verify(p[:size], sum) {
		return
	}
	tuple.LocalPort, tuple.RemotePort = from, to
	if !sent {
		tuple = reversed(tuple)
	}
	if !t.owns(tuple.LocalAddr) {
		return
	}
	if f := t.flow(tuple); f != nil {
		t.seg = Segment{Time: now, Sent: sent, Tuple: tuple, Flags: h.Flags, Len: size - h.Size()}
		t.tell(f, &h)
	}
}

func reversed(t tcp.Tuple) tcp.Tuple {
	return tcp.Tuple{
		LocalAddr: t.RemoteAddr, RemoteAddr: t.LocalAddr,
		LocalPort: t.RemotePort, RemotePort: t.LocalPort,
	}
}

// flow returns what is known of a connection, nil if there are too many.
func (t *Tracer) flow(tuple tcp.Tuple) *traced {
	f := t.flows[tuple]
	if f == nil && len(t.flows) < maxTraced {
		f = &traced{}
		t.flows[tuple] = f
	}
	return f
}

// tell completes the segment and shows it.
func (t *Tracer) tell(f *traced, h *tcp.Header) {
	s := &t.seg
	us, peer := &f.out, &f.in
	if !s.Sent {
		us, peer = peer, us
	}
	syn := s.Flags.Has(tcp.SYN)
	if syn && us.begun && us.first != h.Seq+1 {
		*f = traced{} // another connection between the same ends
	}
	if syn {
		us.begin(h.Seq + 1)
		us.scale, us.asks = h.Options.WindowScale, h.Options.HasWindowScale
	}
	us.begin(h.Seq)
	end := us.offset(h.Seq) + uint64(s.Len)
	if s.Flags.Has(tcp.FIN) {
		end++
	}
	s.Seq = us.offset(h.Seq)
	carries := s.Len > 0 || s.Flags&(tcp.SYN|tcp.FIN) != 0
	s.Again = carries && (s.Seq < us.high || syn && us.seen)
	us.seen = true
	us.high = max(us.high, end)
	if s.Flags.Has(tcp.ACK) {
		peer.begin(h.Ack)
		s.Ack = peer.offset(h.Ack)
	}
	s.Window = int(h.Window)
	if !syn && us.asks && peer.asks {
		s.Window <<= us.scale
	}
	s.SACK = t.sack[:0]
	for _, b := range h.Options.SACK[:h.Options.SACKCount] {
		s.SACK = append(s.SACK, Range{peer.offset(b.Start), peer.offset(b.End)})
	}
	s.Stamped, s.TSVal, s.TSEcr = h.Options.HasTimestamps, h.Options.TSVal, h.Options.TSEcr
	t.show(s)
}

// begin sets the stream's first sequence number, if it is not known.
func (d *direction) begin(first uint32) {
	if !d.begun {
		d.begun, d.first = true, first
	}
}

// offset converts a sequence number to the offset in the stream that is nearest to the last one.
func (d *direction) offset(seq uint32) uint64 {
	off := int64(d.high) + int64(int32(seq-d.first-uint32(d.high)))
	return uint64(max(0, off))
}
