package node

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/tidepool-net/tidepool/internal/capture"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// traceFlow is the connection that an observer follows, once there is one. The loop's.
type traceFlow struct {
	found bool
	key   capture.Flow // seen from the left end
	ours  bool         // which is this node's
	drops bool         // only what went no further
}

// follows reports whether a packet is of the connection that an observer follows; the first that
// its filter lets pass says which that is.
func (n *Node) follows(o *observer, f *capture.Facts, s *sight) bool {
	flow := o.flow
	if flow.drops && !f.Dropped {
		return false
	}
	if !flow.found {
		if !o.filter.Match(f) {
			return false
		}
		k, ok := f.Flow(true)
		if !ok {
			return false
		}
		_, src := n.stack.Owns(address(k.Local))
		_, dst := n.stack.Owns(address(k.Remote))
		if dst && !src {
			k, _ = f.Flow(false)
		}
		flow.found, flow.key, flow.ours = true, k, src || dst
	}
	if !flow.ours && s.out && !f.Dropped {
		return false // a packet that is passed on is shown twice
	}
	from, ok := f.Flow(true)
	to, _ := f.Flow(false)
	return ok && (from == flow.key || to == flow.key)
}

func address(a uint32) (b ip.Addr) {
	binary.BigEndian.PutUint32(b[:], a)
	return b
}

func endpoint(a uint32, port uint16) string {
	return netip.AddrPortFrom(netip.AddrFrom4(address(a)), port).String()
}

// trace follows a connection.
func (n *Node) trace(ctx context.Context, r *control.Trace) (control.Traced, error) {
	var done control.Traced
	o := &observer{
		iface: allFaces, snaplen: capture.HeaderBytes, limit: r.Count, glances: true,
		flow:  &traceFlow{drops: r.Drops},
		about: control.Capturing{Kind: "trace", Iface: "all", Filter: r.Filter},
	}
	var err error
	if o.filter, err = capture.ParseFilter(r.Filter); err != nil {
		return done, control.Also(err, control.ErrUsage)
	}
	t := tracer{node: n, flow: o.flow, tell: r.Segment, done: &done}
	var before pile
	callErr := n.call(func(clock.Time) {
		if r.Filter == "" {
			if err = n.followSocket(o, r.SID); err != nil {
				return
			}
			before = t.begin(r)
		}
		err = n.observe(o)
	})
	if err = firstError(callErr, err); err != nil {
		return done, controlError(err)
	}
	if r.Begun != nil {
		r.Begun()
	}
	t.tellAll(&before)
	err = o.watch(ctx, n, func(p *pile) error {
		if t.tellAll(p) {
			n.letGo(o) // it has ended, and so does watch
		}
		return nil
	})
	_, done.Missed = o.counts()
	return done, err
}

// begin has a tracer know where a socket's connection stands; before is what its recorder has. The
// loop's.
func (t *tracer) begin(r *control.Trace) (before pile) {
	s, _ := t.node.stack.Socket(r.SID)
	if s.Conn == nil {
		return before // the next that comes to a listener has everything before it
	}
	if c, ok := s.Conn.Owner.(*Conn); ok && r.Recorded {
		before = c.flight.pile()
	}
	if b, ok := s.Conn.Bearings(); ok {
		t.follower.Begin(capture.Start{Base: b.ISS, Next: b.Sent, Scale: b.RecvScale},
			capture.Start{Base: b.IRS, Next: b.Received, Scale: b.SendScale}, len(before.list) > 0)
	}
	return before
}

// followSocket has an observer follow the connection with that number, or the next that a
// listener gets. The loop's.
func (n *Node) followSocket(o *observer, sid int) error {
	s, ok := n.stack.Socket(sid)
	switch {
	case !ok:
		return fmt.Errorf("%d: %w", sid, control.ErrNoSuchSocket)
	case s.Listener != nil:
		o.about.Filter = fmt.Sprintf("tcp dst port %d and tcp[tcpflags] & (tcp-syn|tcp-ack) == "+
			"tcp-syn and in", s.Local().Port())
		o.filter, _ = capture.ParseFilter(o.about.Filter) // it is in order
		return nil
	case s.UDP != nil:
		return fmt.Errorf("%d is of UDP: %w", sid, control.ErrNotConnected)
	}
	local, remote := s.Local().Addr().As4(), s.Remote().Addr().As4()
	o.flow.found, o.flow.ours = true, true
	o.flow.key = capture.Flow{
		Local: binary.BigEndian.Uint32(local[:]), LocalPort: s.Local().Port(),
		Remote: binary.BigEndian.Uint32(remote[:]), RemotePort: s.Remote().Port(),
	}
	o.about.Filter = fmt.Sprintf("host %v and host %v and port %d and port %d", s.Local().Addr(),
		s.Remote().Addr(), s.Local().Port(), s.Remote().Port())
	return nil
}

// tracer tells of a connection's segments.
type tracer struct {
	node     *Node
	flow     *traceFlow // its key does not change once there are segments
	follower capture.Follower
	facts    capture.Facts
	last     clock.Time
	tell     func(control.TracedSegment)
	done     *control.Traced
	over     bool
}

// tellAll tells what is piled up, and whether the connection has ended.
func (t *tracer) tellAll(p *pile) (over bool) {
	for i := range p.list {
		s := &p.list[i]
		packet := p.data[s.begin:s.end]
		t.facts.Look(packet)
		from, _ := t.facts.Flow(true)
		sent := from == t.flow.key
		// What a node on the way drops, and what is dropped as it arrives, the receiver never sees.
		lost := s.dropped() != "" && (s.late || !t.flow.ours || !s.out)
		g, ok := t.follower.Follow(packet, &t.facts, sent, lost)
		if !ok {
			continue
		}
		if s.late {
			g.Marks, g.DupAck = 0, 0 // it was told of as it left
		}
		one := t.segment(s, &g, sent)
		if t.last != clock.Never {
			one.Since = s.at.Sub(t.last)
		}
		t.last = s.at
		t.done.Segments++
		if t.tell != nil {
			t.tell(one)
		}
		t.over = t.over || t.follower.Over()
	}
	return t.over
}

// ecnNames are the IP header's two bits (RFC 3168 §5).
var ecnNames = [4]string{"", "ect1", "ect0", "ce"}

func (t *tracer) segment(s *sight, g *capture.Segment, sent bool) control.TracedSegment {
	one := tracedSegment(&t.flow.key, g)
	one.At, one.SID, one.Iface, one.Sent = t.node.wall(s.at), -1, t.node.faceName(s.iface), sent
	one.Drop, one.Missed = s.dropped(), s.missed
	if s.known && t.flow.ours {
		c := &s.glance
		one.SID = s.sid
		one.Moment = control.Moment{
			State: stack.StateName(c.State), Recovery: c.Recovery, Congestion: c.Congestion,
			Cwnd: c.Cwnd, Ssthresh: c.Ssthresh, Pipe: c.Pipe, SendMSS: c.MSS, RTT: c.RTT,
		}
	}
	return one
}

// tracedSegment is what the segment itself says.
func tracedSegment(k *capture.Flow, g *capture.Segment) control.TracedSegment {
	one := control.TracedSegment{
		Left: endpoint(k.Local, k.LocalPort), Right: endpoint(k.Remote, k.RemotePort),
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

// endTraces lets those go that follow a connection which is gone. The loop's.
func (n *Node) endTraces(c *tcp.Conn) {
	if len(n.observers) == 0 {
		return
	}
	t := c.Tuple()
	key := capture.Flow{
		Local: binary.BigEndian.Uint32(t.LocalAddr[:]), LocalPort: t.LocalPort,
		Remote: binary.BigEndian.Uint32(t.RemoteAddr[:]), RemotePort: t.RemotePort,
	}
	for _, o := range slices.Backward(n.observers) {
		if o.flow != nil && o.flow.found && o.flow.key == key {
			n.unobserve(o)
		}
	}
}

// samplePeriod is how often samples are told unless it is said.
const samplePeriod = 100 * time.Millisecond

// samples tells of a connection's state.
func (n *Node) samples(ctx context.Context, r *control.Samples) (control.Sampled, error) {
	var done control.Sampled
	c, err := n.conn(r.SID)
	if err != nil {
		return done, err
	}
	f := newFindings[control.Sample]()
	w := &sampling{found: &f, every: r.Every, sid: r.SID}
	if r.Every == 0 {
		w.every = samplePeriod
	}
	callErr := n.call(func(clock.Time) {
		if c.gone {
			err = fmt.Errorf("%d: %w", r.SID, control.ErrClosed)
			return
		}
		c.probes.watchers = append(c.probes.watchers, w)
		c.reprobe()
	})
	if err = firstError(callErr, err); err != nil {
		return done, controlError(err)
	}
	if r.Begun != nil {
		r.Begun()
	}
	f.each(ctx, n, func(s control.Sample) {
		done.Samples++
		if r.Sample != nil {
			r.Sample(s)
		}
	})
	_ = n.call(func(clock.Time) { c.unsample(w) }) // a node that is closed tells nothing
	f.mu.Lock()
	defer f.mu.Unlock()
	done.Missed = f.missed
	return done, nil
}

// sampling is somebody who looks at a connection's samples. The loop's.
type sampling struct {
	found *findings[control.Sample]
	every time.Duration
	sid   int
	last  control.Sample
	at    clock.Time
	gap   uint64
}

// note tells of a sample if it is time, or if something has happened.
func (w *sampling) note(n *Node, s *tcp.Sample) {
	if w.at != clock.Never && s.Time < w.at.Add(w.every) && w.last.Recovery == s.Recovery &&
		w.last.Retransmits == s.Retransmits && w.last.Timeouts == s.Timeouts &&
		w.last.State == stack.StateName(s.State) {
		return
	}
	w.at = s.Time
	w.last = control.Sample{
		At: n.wall(s.Time), SID: w.sid, State: stack.StateName(s.State), Recovery: s.Recovery,
		Congestion: s.Congestion, Cwnd: s.Cwnd, Ssthresh: s.Ssthresh, Pipe: s.Pipe,
		SendWindow: s.SendWindow, RecvWindow: s.RecvWindow, MSS: s.SendMSS,
		RoundTrips: control.RoundTrips{
			RTT: s.SRTT, RTTVar: s.RTTVar, MinRTT: s.MinRTT, LatestRTT: s.LatestRTT, RTO: s.RTO,
		},
		Acked: s.Una, Sent: s.Nxt, Received: s.RcvNxt,
		DeliveryRate: uint64(s.DeliveryRate) * 8, PacingRate: uint64(s.PacingRate) * 8,
		Retransmits: s.Retransmits, Timeouts: s.Timeouts, TailProbes: s.TailProbes,
		Limited: s.Limited.String(), LimitedFor: s.Time.Sub(s.LimitedSince),
		NotSent: s.UnsentBytes, Unread: s.RxUnread, Missed: w.gap,
	}
	if w.found.add(w.last) {
		w.gap = 0
	} else {
		w.gap++
	}
}

// unsample lets somebody go.
func (c *Conn) unsample(w *sampling) {
	for i, other := range c.probes.watchers {
		if other == w {
			c.probes.watchers = append(c.probes.watchers[:i], c.probes.watchers[i+1:]...)
			close(w.found.ended)
			c.reprobe()
			return
		}
	}
}
