package node

import (
	"bytes"

	"github.com/tidepool-net/tidepool/internal/capture"
	"github.com/tidepool-net/tidepool/internal/netem"
)

// Why a link drops a packet on purpose.
const (
	lostByLink    = "lost by the link"
	linkQueueFull = "link's queue full"
)

func whyOf(r netem.Reason) string {
	if r == netem.Model {
		return lostByLink
	}
	return linkQueueFull
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
	s := sight{at: at, iface: i, out: out, why: whyOf(e.Why), late: out, length: len(e.Data)}
	f := &n.facts
	f.Iface, f.Out, f.Length, f.Dropped = n.faceName(i), out, s.length, true
	f.Look(e.Data)
	asked := n.recorded > 0
	if asked {
		n.fly(f, &s, head(e.Data))
	}
	for k := 0; k < len(n.observers); k++ {
		o := n.observers[k]
		if !o.sees(i) || !n.wants(o, f, &s) || out && o.amend(&s, e.Data) {
			continue
		}
		if o.glances && !asked {
			asked = true
			n.glance(f, &s)
		}
		if o.put(&s, e.Data, [][]byte{e.Data}) {
			n.unobserve(o)
			k--
		}
	}
}

// mostAmended bounds how far back in a turn a packet is looked for.
const mostAmended = 4096

// amend marks the packet that left in this turn and was then lost; false: there is none.
func (o *observer) amend(s *sight, data []byte) bool {
	list := o.turn.list
	for k := len(list) - 1; k >= max(0, len(list)-mostAmended); k-- {
		one := &list[k]
		seen := o.turn.data[one.begin:one.end]
		if one.out && one.iface == s.iface && one.why == "" && one.length == s.length &&
			bytes.Equal(head(seen), head(data[:min(len(data), len(seen))])) {
			one.why = s.why
			return true
		}
	}
	return false
}

// head is as much of a packet as tells it from others.
func head(packet []byte) []byte { return packet[:min(len(packet), capture.HeaderBytes)] }
