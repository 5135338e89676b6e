package node

import (
	"encoding/binary"
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

// maxObservers bounds how many there may be at once.
const maxObservers = 64

// Observe has an observer shown packets from now on.
func (t *Taps) Observe(o *observe.Observer) error {
	return t.node.Ask(func(*stack.Stack, clock.Time) error { return t.observe(o) })
}

// observe is Observe. The loop's.
func (t *Taps) observe(o *observe.Observer) error {
	if len(t.observers) >= maxObservers {
		return fmt.Errorf("%d at once: %w", maxObservers, control.ErrCapturing)
	}
	o.Begin(t.node.Time.Wall(t.node.Time.now()), len(t.node.cfg.Links), &t.backlog)
	t.observers = append(t.observers, o)
	t.retap()
	return nil
}

// observed reports whether packets have to be shown to anybody, or kept. The loop's.
func (t *Taps) observed() bool { return len(t.observers) > 0 || t.flights.segments > 0 }

// unobserve shows an observer nothing more. The loop's.
func (t *Taps) unobserve(o *observe.Observer) {
	i := slices.Index(t.observers, o)
	if i < 0 {
		return
	}
	t.observers = slices.Delete(t.observers, i, i+1)
	o.End()
	t.retap()
}

// LetGo is for an observer that wants to be shown nothing more.
func (t *Taps) LetGo(o *observe.Observer) {
	_ = t.node.Call(func(*stack.Stack, clock.Time) error { t.unobserve(o); return nil })
}

// exhibit shows a packet to all who look. The loop's.
func (t *Taps) exhibit(now clock.Time, s observe.Packet, pieces [][]byte) {
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

// show shows a packet to the observers that want it, and has its connection record it. One that
// left in this iteration and was then lost is only marked if it was shown already.
func (t *Taps) show(s *observe.Packet, header []byte, pieces [][]byte) {
	f := &t.facts
	f.Iface, f.Out, f.Length = t.node.FaceName(s.Iface), s.Out, s.Length
	f.Dropped = s.Dropped() != ""
	f.Look(header)
	asked := t.flights.segments > 0
	if asked {
		t.fly(f, s, header)
	}
	for i := 0; i < len(t.observers); i++ {
		o := t.observers[i]
		if !o.Sees(s.Iface) || !t.wants(o, f, s) || s.Late && o.Amend(s, pieces[0]) {
			continue
		}
		if o.Glances && !asked {
			asked = true
			t.glance(f, s)
		}
		if o.Put(s, header, pieces) {
			t.unobserve(o)
			i--
		}
	}
}

// wants reports whether a packet is for an observer.
func (t *Taps) wants(o *observe.Observer, f *capture.Facts, s *observe.Packet) bool {
	if o.Flow != nil {
		return t.follows(o, f, s)
	}
	return o.Filter.Match(f)
}

// glance looks at the connection of a segment; nil: no application has it.
func (t *Taps) glance(f *capture.Facts, s *observe.Packet) *Conn {
	k, ok := f.Flow(s.Out)
	if !ok {
		return nil
	}
	tuple := tcp.Tuple{LocalPort: k.LocalPort, RemotePort: k.RemotePort}
	binary.BigEndian.PutUint32(tuple.LocalAddr[:], k.Local)
	binary.BigEndian.PutUint32(tuple.RemoteAddr[:], k.Remote)
	c := t.node.stack.TCP().Find(tuple)
	if c == nil {
		return nil
	}
	s.Known, s.SID, s.Glance = true, -1, c.Glance()
	own, ok := c.Owner.(*Conn)
	if ok {
		s.SID = own.sid
	}
	return own
}

// Captures lists the observers. The loop's.
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

// Why a link drops a packet on purpose.
const (
	LostByLink    = "lost by the link"
	LinkQueueFull = "link's queue full"
)

func whyOf(r netem.Reason) string {
	if r == netem.Model {
		return LostByLink
	}
	return LinkQueueFull
}

// rewatch has the links that lose packets on purpose tell of it exactly while there are observers.
// The loop's.
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
			out.Watch(func(e *netem.Event) { t.beneath(i, true, e) })
			in.Watch(func(e *netem.Event) { t.beneath(i, false, e) })
		}
	}
}

// beneath shows a packet that a link drops.
func (t *Taps) beneath(i int, out bool, e *netem.Event) {
	if e.Kind != netem.Drop {
		return
	}
	// A node that closes has its links hand over at once what is due later.
	at := min(e.At, t.node.Time.now())
	s := observe.Packet{
		At: at, Iface: i, Out: out, Why: whyOf(e.Why), Late: out, Length: len(e.Data),
	}
	t.show(&s, e.Data, [][]byte{e.Data})
}
