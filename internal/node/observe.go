package node

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tidepool-net/tidepool/internal/capture"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/observe"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// maxObservers bounds how many there may be at once.
const maxObservers = 64

// observing is who is shown packets. The loop's.
type observing struct {
	flights
	observers []*observe.Observer
	backlog   observe.Backlog
	header    [capture.HeaderBytes]byte
	facts     capture.Facts
}

// Observe has an observer shown packets from now on.
func (n *Node) Observe(o *observe.Observer) error {
	return n.Ask(func(*stack.Stack, clock.Time) error { return n.observe(o) })
}

// observe is Observe. The loop's.
func (n *Node) observe(o *observe.Observer) error {
	if len(n.observers) >= maxObservers {
		return fmt.Errorf("%d at once: %w", maxObservers, control.ErrCapturing)
	}
	o.Begin(n.Wall(n.now()), len(n.cfg.LNX.Interfaces), &n.backlog)
	n.observers = append(n.observers, o)
	n.retap()
	return nil
}

// observed reports whether packets have to be shown to anybody, or kept. The loop's.
func (r *observing) observed() bool { return len(r.observers) > 0 || r.recorded > 0 }

// unobserve shows an observer nothing more. The loop's.
func (n *Node) unobserve(o *observe.Observer) {
	i := slices.Index(n.observers, o)
	if i < 0 {
		return
	}
	n.observers = slices.Delete(n.observers, i, i+1)
	o.End()
	n.retap()
}

// LetGo is for an observer that wants to be shown nothing more.
func (n *Node) LetGo(o *observe.Observer) {
	_ = n.Call(func(*stack.Stack, clock.Time) error { n.unobserve(o); return nil })
}

// Stopped is closed when the loop has ended, which then shows nothing to anybody.
func (n *Node) Stopped() <-chan struct{} { return n.stopped }

// exhibit shows a packet to all who look. The loop's.
func (n *Node) exhibit(now clock.Time, s observe.Packet, pieces [][]byte) {
	header := pieces[0]
	s.At = now
	for _, p := range pieces {
		s.Length += len(p)
	}
	if len(header) < len(n.header) && len(pieces) > 1 {
		header = n.header[:0]
		for _, p := range pieces {
			header = append(header, p[:min(len(p), len(n.header)-len(header))]...)
		}
	}
	f := &n.facts
	f.Iface, f.Out, f.Length = n.FaceName(s.Iface), s.Out, s.Length
	f.Dropped = s.Dropped() != ""
	f.Look(header)
	asked := n.recorded > 0
	if asked {
		n.fly(f, &s, header)
	}
	for i := 0; i < len(n.observers); i++ {
		o := n.observers[i]
		if !o.Sees(s.Iface) || !n.wants(o, f, &s) {
			continue
		}
		if o.Glances && !asked {
			asked = true
			n.glance(f, &s)
		}
		if o.Put(&s, header, pieces) {
			n.unobserve(o)
			i--
		}
	}
}

// Faces are the interfaces that there are and were, by their number. Nobody changes them.
func (n *Node) Faces() []lnx.Interface { return n.File().Interfaces }

// FaceName is an interface's name; what the node sends to itself crosses lo.
func (n *Node) FaceName(i int) string {
	if list := n.File().Interfaces; i >= 0 && i < len(list) {
		return list[i].Name
	}
	return observe.SelfFace
}

// Face finds an interface by name or by number.
func (n *Node) Face(name string) (int, error) {
	list := n.Faces()
	var names []string
	for i := range list {
		if list[i].Name == name && name != "" {
			return i, nil
		}
		if list[i].Name != "" {
			names = append(names, list[i].Name)
		}
	}
	if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(list) && list[i].Name != "" {
		return i, nil
	}
	return 0, fmt.Errorf("%q: %w: there %s", name, control.ErrNoSuchInterface, listed(names))
}

// listed lists some of the interfaces.
func listed(names []string) string {
	const most = 8
	switch {
	case len(names) == 1:
		return "is " + names[0]
	case len(names) > most:
		return "are " + strings.Join(names[:most], ", ") + " and more"
	}
	return "are " + strings.Join(names, ", ")
}

// wants reports whether a packet is for an observer.
func (n *Node) wants(o *observe.Observer, f *capture.Facts, s *observe.Packet) bool {
	if o.Flow != nil {
		return n.follows(o, f, s)
	}
	return o.Filter.Match(f)
}

// glance looks at the connection that a segment is for; nil: it is none of an application's.
func (n *Node) glance(f *capture.Facts, s *observe.Packet) *Conn {
	k, ok := f.Flow(s.Out)
	if !ok {
		return nil
	}
	t := tcp.Tuple{LocalPort: k.LocalPort, RemotePort: k.RemotePort}
	binary.BigEndian.PutUint32(t.LocalAddr[:], k.Local)
	binary.BigEndian.PutUint32(t.RemoteAddr[:], k.Remote)
	c := n.stack.TCP().Find(t)
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

// settleSights has what was seen in this turn be taken. The loop's.
func (n *Node) settleSights() {
	for _, o := range n.observers {
		o.Settle()
	}
}

// Captures lists the observers. The loop's.
func (n *Node) Captures() []control.Capturing {
	list := []control.Capturing{}
	for _, o := range n.observers {
		about := o.About
		_, about.Missed = o.Counts()
		about.Packets = o.Shown()
		list = append(list, about)
	}
	return list
}
