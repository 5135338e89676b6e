package node

import (
	"fmt"
	"slices"

	"github.com/tidepool-net/tidepool/internal/capture"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/netem"
	"github.com/tidepool-net/tidepool/internal/observe"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// maxObservers limits the observers.
const maxObservers = 64

// Observe passes packets to o from now on.
func (t *Taps) Observe(o *observe.Observer) error {
	return t.node.Ask(func(*stack.Stack, clock.Time) error { return t.observe(o) })
}

// observe is like Observe. Loop only.
func (t *Taps) observe(o *observe.Observer) error {
	if len(t.observers) >= maxObservers {
		return fmt.Errorf("%w: at most %d observers at a time", control.ErrCapturing,
			maxObservers)
	}
	o.Begin(t.node.Time.Wall(t.node.Time.now()), len(t.node.cfg.Links), &t.backlog)
	t.observers = append(t.observers, o)
	t.updateTap()
	return nil
}

// observed reports whether packets must be passed to observers or recorded. Loop only.
func (t *Taps) observed() bool { return len(t.observers) > 0 || t.flights.segments > 0 }

// unobserve ends an observer. Loop only.
func (t *Taps) unobserve(o *observe.Observer) {
	i := slices.Index(t.observers, o)
	if i < 0 {
		return
	}
	t.observers = slices.Delete(t.observers, i, i+1)
	o.End()
	t.updateTap()
}

// Unobserve ends an observer.
func (t *Taps) Unobserve(o *observe.Observer) {
	_ = t.node.Call(func(*stack.Stack, clock.Time) error { t.unobserve(o); return nil })
}

// showPieces passes a packet to all observers. Loop only.
func (t *Taps) showPieces(now clock.Time, s observe.Packet, pieces [][]byte) {
	header := pieces[0]
	s.At = now
	for _, p := range pieces {
		s.Length += len(p)
	}
	if len(header) < len(t.header) && len(pieces) > 1 {
		header = t.header[:0]
		for _, p := range pieces {
			header = append(header, p[:min(len(p), len(t.header)-len(header))]...)
		}
	}
	t.show(&s, header, pieces)
}

// show passes a packet to the observers that want it, and records it. If an observer has already
// received the packet in this iteration, and a link lost it since, show only marks it as lost.
func (t *Taps) show(s *observe.Packet, header []byte, pieces [][]byte) {
	f := &t.facts
	f.Iface, f.Out, f.Length = t.node.IfaceName(s.Iface), s.Out, s.Length
	f.Dropped = s.Dropped() != ""
	f.Parse(header)
	asked := t.flights.segments > 0
	if asked {
		t.record(f, s, header)
	}
	for i := 0; i < len(t.observers); i++ {
		o := t.observers[i]
		if !o.Sees(s.Iface) || !t.wants(o, f, s) || s.Late && o.MarkDropped(s, pieces[0]) {
			continue
		}
		if o.WithState && !asked {
			asked = true
			t.lookUp(f, s)
		}
		if o.Put(s, header, pieces) {
			t.unobserve(o)
			i--
		}
	}
}

// wants reports whether a packet passes an observer's filter.
func (t *Taps) wants(o *observe.Observer, f *capture.Facts, s *observe.Packet) bool {
	if o.Flow != nil {
		return t.follows(o, f, s)
	}
	return o.Filter.Match(f)
}

// lookUp adds the state of the segment's connection to s. It returns the connection if it belongs
// to an application.
func (t *Taps) lookUp(f *capture.Facts, s *observe.Packet) *Conn {
	k, ok := f.Flow(s.Out)
	if !ok {
		return nil
	}
	c := t.node.stack.TCP().Find(tcp.Tuple{
		LocalAddr: k.Local.Addr(), LocalPort: k.Local.Port(),
		RemoteAddr: k.Remote.Addr(), RemotePort: k.Remote.Port(),
	})
	if c == nil {
		return nil
	}
	s.Known, s.SID, s.TraceInfo = true, -1, c.TraceInfo()
	own, ok := c.Owner.(*Conn)
	if ok {
		s.SID = own.sid
	}
	return own
}

// Captures lists the observers. Loop only.
func (t *Taps) Captures() []control.Capturing {
	list := []control.Capturing{}
	for _, o := range t.observers {
		about := o.About
		_, about.Missed = o.Counts()
		about.Packets = o.Shown()
		list = append(list, about)
	}
	return list
}

// These are the reasons for which a link drops packets.
const (
	LostByLink    = "lost by the link"
	LinkQueueFull = "link's queue full"
)

func reasonOf(r netem.Reason) string {
	if r == netem.Model {
		return LostByLink
	}
	return LinkQueueFull
}

// rewatch enables the links' reports of dropped packets while there are observers. Loop only.
func (t *Taps) rewatch() {
	for _, m := range t.node.Devices.impaired {
		if m == nil {
			continue
		}
		for _, i := range m.faces {
			out, in := m.device.Links(i)
			if !t.observed() {
				out.Watch(nil)
				in.Watch(nil)
				continue
			}
			out.Watch(func(e *netem.Event) { t.showDrop(i, true, e) })
			in.Watch(func(e *netem.Event) { t.showDrop(i, false, e) })
		}
	}
}

// showDrop passes a packet that a link drops to the observers.
func (t *Taps) showDrop(i int, out bool, e *netem.Event) {
	if e.Kind != netem.Drop {
		return
	}
	// When a node closes, its links deliver all packets at once, even those that are due later.
	at := min(e.At, t.node.Time.now())
	s := observe.Packet{
		At: at, Iface: i, Out: out, Why: reasonOf(e.Why), Late: out, Length: len(e.Data),
	}
	t.show(&s, e.Data, [][]byte{e.Data})
}
