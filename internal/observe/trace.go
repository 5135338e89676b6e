package observe

import (
	"context"

	"github.com/tidepool-net/tidepool/internal/capture"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
)

func (h *Host) trace(ctx context.Context, r control.Trace) (control.Traced, error) {
	var done control.Traced
	o := &Observer{
		Iface: AllIfaces, Snaplen: capture.HeaderBytes, Limit: r.Count, WithState: true,
		Flow:  &Flow{Drops: r.Drops},
		About: control.Capturing{Kind: "trace", Iface: "all", Filter: r.Filter},
	}
	var err error
	if o.Filter, err = capture.ParseFilter(r.Filter); err != nil {
		return done, control.Also(err, control.ErrUsage)
	}
	t := tracer{host: h, flow: o.Flow, tell: r.Segment, done: &done}
	var from Beginning
	if r.Filter == "" {
		from, err = h.taps.ObserveSocket(o, r.SID, r.Recorded)
	} else {
		err = h.taps.Observe(o)
	}
	if err != nil {
		return done, err
	}
	if r.Begun != nil {
		r.Begun()
	}
	if from.Known {
		t.follower.Begin(from.Local, from.Remote, len(from.Before.List) > 0)
	}
	t.tellAll(&from.Before)
	err = o.Watch(ctx, h.taps, func(p *Batch) error {
		if t.tellAll(p) {
			h.taps.Unobserve(o) // the connection is closed; this makes Watch return
		}
		return nil
	})
	_, done.Missed = o.Counts()
	return done, err
}

// tracer reports a connection's segments.
type tracer struct {
	host     *Host
	flow     *Flow
	follower capture.Follower
	facts    capture.Facts
	last     clock.Time
	tell     func(control.TracedSegment)
	done     *control.Traced
	over     bool
}

// tellAll reports the packets of a batch, and returns whether the connection is closed.
func (t *tracer) tellAll(p *Batch) (over bool) {
	for i := range p.List {
		s := &p.List[i]
		packet := p.Bytes(s)
		// A filter needs the zone of link-local addresses.
		t.facts.Iface = t.host.node.IfaceName(s.Iface)
		t.facts.Parse(packet)
		from, _ := t.facts.Flow(true)
		sent := from == t.flow.Key
		// The receiver never sees a segment that a router or the link drops, or that the receiving
		// host drops on arrival.
		lost := s.Dropped() != "" && (s.Late || !t.flow.Ours || !s.Out)
		g, ok := t.follower.Follow(packet, &t.facts, sent, lost)
		if !ok {
			continue
		}
		if s.Late {
			g.Marks, g.DupAck = 0, 0 // these were reported when the segment was sent
		}
		one := t.segment(s, &g, sent)
		if t.last != clock.Never {
			one.Since = s.At.Sub(t.last)
		}
		t.last = s.At
		t.done.Segments++
		if t.tell != nil {
			t.tell(one)
		}
		t.over = t.over || t.follower.Over()
	}
	return t.over
}

// ecnNames names the values of the IP header's ECN field (RFC 3168 §5).
var ecnNames = [4]string{"", "ect1", "ect0", "ce"}

func (t *tracer) segment(s *Packet, g *capture.Segment, sent bool) control.TracedSegment {
	one := tracedSegment(&t.flow.Key, g)
	one.At, one.Iface = t.host.clock.Wall(s.At), t.host.node.IfaceName(s.Iface)
	one.SID, one.Sent = -1, sent
	one.Drop, one.Missed = s.Dropped(), s.Missed
	if s.Known && t.flow.Ours {
		one.SID, one.Connection = s.SID, s.Moment()
	}
	return one
}

// tracedSegment returns the properties of the segment itself.
func tracedSegment(k *capture.Flow, g *capture.Segment) control.TracedSegment {
	one := control.TracedSegment{
		Left: k.Local.String(), Right: k.Remote.String(),
		Flags: g.Flags, Seq: g.Seq, WireSeq: g.WireSeq, Ack: g.Ack, Length: g.Length,
		Window: g.Window,
		MSS:    g.MSS, Scale: g.Scale, TSVal: g.TSVal, TSEcr: g.TSEcr, ECN: ecnNames[g.ECN],
		DupAck: g.DupAck,
	}
	for _, b := range g.SACK {
		one.SACK = append(one.SACK, control.Range{Begin: b[0], End: b[1]})
	}
	for _, name := range g.Marks.Names() {
		one.Marks = append(one.Marks, control.Mark(name))
	}
	return one
}
