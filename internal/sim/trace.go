package sim

import (
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/capture"
	"github.com/tidepool-net/tidepool/internal/checksum"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// Segment is a TCP segment that a host sent or received, for the graphs of tcptrace. Its sequence
// numbers are offsets in the streams. They start at 0 for the first byte of data, and do not wrap.
type Segment struct {
	capture.Segment
	Time clock.Time
	// Sent is set for packets that the host sent.
	Sent bool
	Flow capture.Flow // the connection, as seen from the host
}

// maxTraced limits the connections that a trace remembers. The trace omits segments of other
// connections.
const maxTraced = 1 << 16

// Trace calls f with each TCP segment that the host sends or receives from now on, except corrupted
// and forwarded ones. The segment is valid only during the call, and f must not call the host.
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
	flows map[capture.Flow]*capture.Follower
	facts capture.Facts
	seg   Segment
}

// NewTracer returns a Tracer for a host. owns reports whether an address is the host's. The Tracer
// passes segments to f as Host.Trace does.
func NewTracer(owns func(addr netip.Addr) bool, f func(*Segment)) *Tracer {
	return &Tracer{owns: owns, show: f, flows: map[capture.Flow]*capture.Follower{}}
}

// Tap implements stack.Tap. The stack has verified the IP header of packets that were not dropped.
func (t *Tracer) Tap(
	now clock.Time, _ int, dir stack.Direction, reason ip.DropReason, pieces [][]byte,
) {
	p, sent := pieces[0], dir == stack.Outbound
	t.facts.Parse(p)
	flow, ok := t.facts.Flow(sent)
	segment := t.facts.Segment(p)
	if reason != ip.DropNone || !ok || segment == nil || !t.owns(flow.Local.Addr()) ||
		!sent && !intact(segment, flow) {
		return
	}
	f := t.flows[flow]
	if f == nil && len(t.flows) < maxTraced {
		f = &capture.Follower{}
		t.flows[flow] = f
	}
	if f == nil {
		return
	}
	s := &t.seg
	*s = Segment{Time: now, Sent: sent, Flow: flow}
	s.Segment, _ = f.Follow(p, &t.facts, sent, false)
	// A SYN takes a sequence number, but is not data.
	s.Seq, s.Ack = max(s.Seq, 1)-1, max(s.Ack, 1)-1
	for i, b := range s.SACK {
		s.SACK[i] = [2]uint64{max(b[0], 1) - 1, max(b[1], 1) - 1}
	}
	t.show(s)
}

// intact reports whether a whole segment has a correct checksum.
func intact(segment []byte, flow capture.Flow) bool {
	return checksum.Verify(segment, checksum.PseudoHeader(flow.Remote.Addr(), flow.Local.Addr(),
		ip.ProtoTCP, len(segment)))
}
