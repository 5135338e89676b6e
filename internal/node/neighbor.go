package node

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/link"
)

// Neighbors is what the node knows of whether its neighbors are there. UDP has no carrier. So
// their state follows from three things: that something came, that nothing came although something
// was sent, and that the network said that no program has the port. All of it is the loop's.
type Neighbors struct {
	node *Node
	udps []*link.UDP // their devices
	list []*neighbor
	next clock.Time // when to look again
}

// neighbor is one of them.
type neighbor struct {
	device *link.UDP
	iface  int
	addr   netip.Addr
	to     HostPort // as configured
	state  control.NeighborState
	since  clock.Time
	heard  clock.Time // never: it was not
	known  bool       // it has been up
	asked  clock.Time // the first packet that it has not answered; never: there is none
	last   link.NeighborInfo
}

const (
	// watchEvery is how often the neighbors are looked at. What the network says of one
	// is heeded at once.
	watchEvery = time.Second
	// silentAfter is for how long a neighbor may leave what was sent to it unanswered.
	silentAfter = 15 * time.Second
	// believed is how long after a packet it would have been refused: routers and kernels
	// send such errors once a second at least (RFC 1812 §4.3.2.8).
	believed = 3 * time.Second
)

// renew lists the neighbors on UDP links. Of those that are where they were, what is known stays.
func (v *Neighbors) renew(now clock.Time) {
	n, old := v.node, v.list
	*v = Neighbors{node: n, next: v.next}
	for _, d := range n.Devices.list {
		if u, ok := bare(d).(*link.UDP); ok {
			v.udps = append(v.udps, u)
		}
	}
	for _, nb := range n.cfg.Neighbors {
		i, err := n.Face(nb.Iface)
		if err != nil {
			continue
		}
		u, ok := bare(n.Devices.list[n.Devices.byIface[i]]).(*link.UDP)
		if !ok {
			continue
		}
		w := &neighbor{
			device: u, iface: i, addr: nb.Addr, state: control.NeighborUnknown, since: now,
			to: nb.UDP,
		}
		k := slices.IndexFunc(old, func(o *neighbor) bool {
			return o.device == u && o.iface == i && o.addr == nb.Addr && o.to == nb.UDP
		})
		if k >= 0 {
			w = old[k]
		}
		v.list = append(v.list, w)
	}
	if len(v.list) > 0 && v.next == clock.Never {
		v.next = now.Add(watchEvery)
	}
}

// check looks at the neighbors when it is time to, or when the network has said something, and
// reports whether it did.
func (v *Neighbors) check(now clock.Time) bool {
	look := v.next.Due(now)
	for _, u := range v.udps {
		look = u.Bounced() || look
	}
	if !look {
		return false
	}
	v.next = now.Add(watchEvery)
	for _, w := range v.list {
		v.look(now, w)
	}
	return true
}

// look finds out what has become of one neighbor.
func (v *Neighbors) look(now clock.Time, w *neighbor) {
	info, ok := w.info()
	if !ok {
		return
	}
	if !v.node.stack.Interfaces().Up(w.iface) {
		w.last = info
		// Nothing comes and nothing goes: it is no worse for it when the link is back.
		w.state, w.since, w.asked = control.NeighborUnknown, now, clock.Never
		return
	}
	before := w.last.UDP
	v.weigh(now, w, info)
	if before.IsValid() && info.UDP != before {
		v.node.Watchers.Announce(control.NeighborChanged{
			Neighbor: v.describe(now, w), Was: w.state, From: before.String(),
		})
	}
}

// weigh draws the conclusions from what a neighbor's device knows now.
func (v *Neighbors) weigh(now clock.Time, w *neighbor, info link.NeighborInfo) {
	before := w.last
	w.last = info
	if info.Refused > before.Refused {
		w.asked = clock.Never
	} else if info.Heard > before.Heard {
		w.heard, w.asked = now, clock.Never
	} else if info.Sent > before.Sent && w.asked == clock.Never {
		w.asked = now
	}
	v.settle(now, w, w.judge(now, &before, v.patience()))
}

// info returns what the device knows of the neighbor.
func (w *neighbor) info() (link.NeighborInfo, bool) {
	for _, info := range w.device.Neighbors(w.iface) {
		if info.Addr == w.addr.As4() {
			return info, true
		}
	}
	return link.NeighborInfo{}, false
}

// judge tells a neighbor's state from what has happened since it was looked at before.
func (w *neighbor) judge(
	now clock.Time, before *link.NeighborInfo, patience time.Duration,
) control.NeighborState {
	switch {
	case !w.last.UDP.IsValid():
		return control.NeighborUnresolved
	case w.last.Refused > before.Refused && w.last.Refusal == nil:
		return control.NeighborRefused
	case w.last.Refused > before.Refused:
		return control.NeighborUnreachable
	case w.last.Heard > before.Heard:
		return control.NeighborUp
	case w.last.Problem != nil:
		return control.NeighborUnreachable
	case w.state == control.NeighborSilent:
		return w.state // until it is heard
	case w.state == control.NeighborRefused || w.state == control.NeighborUnreachable:
		if w.asked != clock.Never && now.Sub(w.asked) >= believed {
			return control.NeighborUnknown // what is sent is no longer refused
		}
		return w.state
	case w.asked != clock.Never && now.Sub(w.asked) >= patience:
		return control.NeighborSilent
	case w.heard != clock.Never:
		return control.NeighborUp
	}
	return control.NeighborUnknown
}

// patience is for how long a neighbor may be silent.
func (v *Neighbors) patience() time.Duration {
	return cmp.Or(v.node.cfg.Patience, silentAfter)
}

// settle enters a neighbor's state, and announces a change to the watchers.
func (v *Neighbors) settle(now clock.Time, w *neighbor, state control.NeighborState) {
	n, was, since := v.node, w.state, w.since
	if state == was {
		return
	}
	w.state, w.since = state, now
	defer func() { w.known = w.known || state == control.NeighborUp }()
	if state == control.NeighborRefused && !n.cfg.KeepRefused {
		n.stack.RIP().NeighborLost(now, w.iface, w.addr)
	}
	if state == control.NeighborUp {
		n.stack.RIP().NeighborFound(w.iface, w.addr)
	}
	if state == control.NeighborUnknown ||
		was == control.NeighborUnknown && state == control.NeighborUp {
		return // as it should be
	}
	n.Watchers.Announce(control.NeighborChanged{
		Neighbor: v.describe(now, w), Was: was, For: now.Sub(since), First: !w.known,
	})
}

// describe is a neighbor as its operator sees it.
func (v *Neighbors) describe(now clock.Time, w *neighbor) control.Neighbor {
	nb := control.Neighbor{
		Iface: v.node.FaceName(w.iface), Addr: w.addr, State: w.state,
		Since: now.Sub(w.since), Heard: -1, In: w.last.Heard, Out: w.last.Sent,
	}
	list := v.node.cfg.Neighbors
	if i := slices.IndexFunc(list, func(o Neighbor) bool { return o.Addr == w.addr }); i >= 0 {
		nb.UDP, nb.Line = list[i].UDP.String(), list[i].Line
	}
	nb.UDP = v.udp(w.iface, w.addr.As4(), nb.UDP)
	if w.heard != clock.Never {
		nb.Heard = now.Sub(w.heard)
	}
	switch {
	case w.last.Lookup != nil:
		nb.Problem = "host " + w.last.Host + ": " + w.last.Lookup.Error()
	case w.last.Problem != nil:
		nb.Problem = w.last.Problem.Error()
	case w.state == control.NeighborUnreachable && w.last.Refusal != nil:
		nb.Problem = w.last.Refusal.Error()
	}
	return nb
}

// find returns the neighbor of an interface with that address; nil: it is on no UDP link.
func (v *Neighbors) find(i int, addr netip.Addr) *neighbor {
	for _, w := range v.list {
		if w.iface == i && w.addr == addr {
			return w
		}
	}
	return nil
}

// List lists the neighbors on the links that are up. The loop's.
func (v *Neighbors) List(now clock.Time) []control.Neighbor {
	n := v.node
	list := []control.Neighbor{}
	for _, nb := range n.cfg.Neighbors {
		if i, err := n.Face(nb.Iface); err == nil && n.stack.Interfaces().Up(i) {
			if w := v.find(i, nb.Addr); w != nil {
				v.look(now, w)
				list = append(list, v.describe(now, w))
				continue
			}
			list = append(list, control.Neighbor{
				Iface: nb.Iface, Addr: nb.Addr, Heard: -1,
				UDP: v.udp(i, nb.Addr.As4(), nb.UDP.String()),
			})
		}
	}
	return append(list, v.kernels()...)
}

// kernels lists the kernel's ends of the TUN devices that are up.
func (v *Neighbors) kernels() []control.Neighbor {
	n := v.node
	var list []control.Neighbor
	for i := range n.cfg.Links {
		l := &n.cfg.Links[i]
		if l.TUN != nil && l.TUN.Kernel.IsValid() && n.stack.Interfaces().Up(i) {
			list = append(list, control.Neighbor{
				Iface: n.FaceName(i), Addr: l.TUN.Kernel, UDP: l.String(), Heard: -1,
			})
		}
	}
	return list
}

// udp returns where packets for a neighbor go now.
func (v *Neighbors) udp(i int, addr [4]byte, configured string) string {
	d, ok := v.node.Devices.Bare(i).(realDevice)
	if !ok {
		return configured
	}
	for _, nb := range d.Neighbors(i) {
		if nb.Addr == addr && nb.UDP.IsValid() {
			return nb.UDP.String()
		}
	}
	return configured
}
