package node

import (
	"github.com/tidepool-net/tidepool/internal/netem"
	"github.com/tidepool-net/tidepool/internal/observe"
)

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
func (n *Node) rewatch() {
	for _, m := range n.impaired {
		if m == nil {
			continue
		}
		for _, i := range m.faces {
			out, in := m.device.Links(i)
			if !n.observed() {
				out.Watch(nil)
				in.Watch(nil)
				continue
			}
			out.Watch(func(e *netem.Event) { n.beneath(i, true, e) })
			in.Watch(func(e *netem.Event) { n.beneath(i, false, e) })
		}
	}
}

// beneath shows observers what became of a packet beneath the stack. One that has just been shown
// as it left is marked; else it is shown now.
func (n *Node) beneath(i int, out bool, e *netem.Event) {
	if e.Kind != netem.Drop {
		return
	}
	// A node that closes has its links hand over at once what is due later.
	at := min(e.At, n.now())
	s := observe.Packet{
		At: at, Iface: i, Out: out, Why: whyOf(e.Why), Late: out, Length: len(e.Data),
	}
	f := &n.facts
	f.Iface, f.Out, f.Length, f.Dropped = n.FaceName(i), out, s.Length, true
	f.Look(e.Data)
	asked := n.recorded > 0
	if asked {
		n.fly(f, &s, observe.Head(e.Data))
	}
	for k := 0; k < len(n.observers); k++ {
		o := n.observers[k]
		if !o.Sees(i) || !n.wants(o, f, &s) || out && o.Amend(&s, e.Data) {
			continue
		}
		if o.Glances && !asked {
			asked = true
			n.glance(f, &s)
		}
		if o.Put(&s, e.Data, [][]byte{e.Data}) {
			n.unobserve(o)
			k--
		}
	}
}
