package node

import (
	"net/netip"
	"slices"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/link"
	"github.com/tidepool-net/tidepool/internal/lnx"
)

// vigil is what the node knows of whether its neighbours are there. UDP has no carrier, so
// it is told from three things: that something came, that nothing came although something
// was sent, and that the network said that nobody has the port.
type vigil struct {
	udps  []*link.UDP // their devices
	wards []*ward
	next  clock.Time // when to look again
}

// ward is one neighbour.
type ward struct {
	device *link.UDP
	iface  int
	addr   netip.Addr
	to     lnx.HostPort // as the file has it
	state  control.NeighborState
	since  clock.Time
	heard  clock.Time // never: it was not
	known  bool       // it has been up
	asked  clock.Time // the first packet that it has not answered; never: there is none
	last   link.NeighborInfo
}

const (
	// watchEvery is how often the neighbours are looked at. What the network says of one
	// is heeded at once.
	watchEvery = time.Second
	// silentAfter is for how long a neighbour may leave what was sent to it unanswered.
	// RIP speakers are given as long as their routes live.
	silentAfter = 15 * time.Second
	// believed is how long after a packet it would have been refused: routers and kernels
	// send such errors once a second at least (RFC 1812 §4.3.2.8).
	believed = 3 * time.Second
)

// startVigil lists the neighbours on UDP links. Those of links without an address of the
// machine are known to whoever made them.
func (n *Node) startVigil() { n.keepWards(n.now()) }

// keepWards is startVigil for when links have changed: of neighbours that are where they were, what
// is known is kept.
func (n *Node) keepWards(now clock.Time) {
	old := n.vigil.wards
	n.vigil = vigil{next: n.vigil.next}
	for _, d := range n.devices {
		if u, ok := bare(d).(*link.UDP); ok {
			n.vigil.udps = append(n.vigil.udps, u)
		}
	}
	for _, nb := range n.cfg.LNX.Neighbors {
		i, err := n.Face(nb.Iface)
		if err != nil {
			continue
		}
		u, ok := bare(n.devices[n.ifaceDevice[i]]).(*link.UDP)
		if !ok {
			continue
		}
		w := &ward{
			device: u, iface: i, addr: nb.Addr, state: control.NeighborUnknown, since: now,
			to: nb.UDP,
		}
		k := slices.IndexFunc(old, func(o *ward) bool {
			return o.device == u && o.iface == i && o.addr == nb.Addr && o.to == nb.UDP
		})
		if k >= 0 {
			w = old[k]
		}
		n.vigil.wards = append(n.vigil.wards, w)
	}
	if len(n.vigil.wards) > 0 && n.vigil.next == clock.Never {
		n.vigil.next = now.Add(watchEvery)
	}
}

// keepVigil looks at the neighbours when it is time to, or when the network has said
// something, and reports whether it did. The loop's.
func (n *Node) keepVigil(now clock.Time) bool {
	look := n.vigil.next.Due(now)
	for _, u := range n.vigil.udps {
		look = u.Bounced() || look
	}
	if !look {
		return false
	}
	n.vigil.next = now.Add(watchEvery)
	for _, w := range n.vigil.wards {
		n.lookAt(now, w)
	}
	return true
}

// lookAt finds out what has become of one neighbour.
func (n *Node) lookAt(now clock.Time, w *ward) {
	info, ok := w.find()
	if !ok {
		return
	}
	if !n.stack.Up(w.iface) {
		w.last = info
		// Nothing comes and nothing goes: it is no worse for it when the link is back.
		w.state, w.since, w.asked = control.NeighborUnknown, now, clock.Never
		return
	}
	before := w.last.UDP
	n.weigh(now, w, info)
	if before.IsValid() && info.UDP != before {
		n.watchers.publish(control.NeighborChanged{
			Neighbor: n.describe(now, w), Was: w.state, From: before.String(),
		})
	}
}

// weigh draws the conclusions from what a neighbour's device knows now.
func (n *Node) weigh(now clock.Time, w *ward, info link.NeighborInfo) {
	before := w.last
	w.last = info
	if info.Refused > before.Refused {
		w.asked = clock.Never
	} else if info.Heard > before.Heard {
		w.heard, w.asked = now, clock.Never
	} else if info.Sent > before.Sent && w.asked == clock.Never {
		w.asked = now
	}
	n.settle(now, w, w.judge(now, &before, n.patience()))
}

// find returns what the device knows of the neighbour.
func (w *ward) find() (link.NeighborInfo, bool) {
	for _, info := range w.device.Neighbors(w.iface) {
		if info.Addr == w.addr.As4() {
			return info, true
		}
	}
	return link.NeighborInfo{}, false
}

// judge tells a neighbour's state from what has happened since it was looked at before.
func (w *ward) judge(
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

// patience is for how long a neighbour may be silent.
func (n *Node) patience() time.Duration {
	if len(n.cfg.LNX.RIP.AdvertiseTo) > 0 && n.cfg.LNX.RIP.Timeout > 0 {
		return n.cfg.LNX.RIP.Timeout
	}
	return silentAfter
}

// settle enters a neighbour's state, and tells who wants to know if it is another one.
func (n *Node) settle(now clock.Time, w *ward, state control.NeighborState) {
	was, since := w.state, w.since
	if state == was {
		return
	}
	w.state, w.since = state, now
	defer func() { w.known = w.known || state == control.NeighborUp }()
	if state == control.NeighborRefused && !n.cfg.LNX.RIP.KeepRefused {
		n.stack.NeighborLost(now, w.iface, w.addr)
	}
	if state == control.NeighborUp {
		n.stack.NeighborFound(w.iface, w.addr)
	}
	if state == control.NeighborUnknown ||
		was == control.NeighborUnknown && state == control.NeighborUp {
		return // as it should be
	}
	n.watchers.publish(control.NeighborChanged{
		Neighbor: n.describe(now, w), Was: was, For: now.Sub(since), First: !w.known,
	})
}

// describe is a neighbour as its operator sees it.
func (n *Node) describe(now clock.Time, w *ward) control.Neighbor {
	nb := control.Neighbor{
		Iface: n.cfg.LNX.Interfaces[w.iface].Name, Addr: w.addr,
		UDP: n.neighborUDP(w.iface, w.addr.As4(), w.configured(n)), State: w.state,
		Since: now.Sub(w.since), Heard: -1, In: w.last.Heard, Out: w.last.Sent,
		Line: n.lineOf(w),
	}
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

// lineOf is where the file speaks of a neighbour.
func (n *Node) lineOf(w *ward) string {
	for i := range n.cfg.LNX.Neighbors {
		if nb := &n.cfg.LNX.Neighbors[i]; nb.Addr == w.addr {
			return n.cfg.LNX.Line(nb)
		}
	}
	return ""
}

// configured is the UDP address that the file has for a neighbour.
func (w *ward) configured(n *Node) string {
	for _, nb := range n.cfg.LNX.Neighbors {
		if nb.Addr == w.addr {
			return nb.UDP.String()
		}
	}
	return ""
}

// wardOf finds a neighbour's ward, nil: nobody keeps one.
func (n *Node) wardOf(i int, addr netip.Addr) *ward {
	for _, w := range n.vigil.wards {
		if w.iface == i && w.addr == addr {
			return w
		}
	}
	return nil
}

// Neighbors lists who is on the links that are up. The loop's.
func (n *Node) Neighbors(now clock.Time) []control.Neighbor {
	list := []control.Neighbor{}
	for _, nb := range n.cfg.LNX.Neighbors {
		if i, err := n.Face(nb.Iface); err == nil && n.stack.Up(i) {
			if w := n.wardOf(i, nb.Addr); w != nil {
				n.lookAt(now, w)
				list = append(list, n.describe(now, w))
				continue
			}
			list = append(list, control.Neighbor{
				Iface: nb.Iface, Addr: nb.Addr, Heard: -1,
				UDP: n.neighborUDP(i, nb.Addr.As4(), nb.UDP.String()),
			})
		}
	}
	return append(list, n.kernels()...)
}

// kernels lists the kernel's ends of the TUN devices that are up.
func (n *Node) kernels() []control.Neighbor {
	var list []control.Neighbor
	for i := range n.cfg.LNX.Interfaces {
		f := &n.cfg.LNX.Interfaces[i]
		if f.Tun != nil && f.Tun.Kernel.IsValid() && n.stack.Up(i) {
			list = append(list, control.Neighbor{
				Iface: f.Name, Addr: f.Tun.Kernel, UDP: UnderneathOf(f), Heard: -1,
			})
		}
	}
	return list
}

// neighborUDP returns where packets for a neighbour go now.
func (n *Node) neighborUDP(i int, addr [4]byte, configured string) string {
	d, ok := bare(n.devices[n.ifaceDevice[i]]).(realDevice)
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
