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

// Neighbors knows which neighbors are reachable. A UDP link has no carrier signal. The state of a
// neighbor follows from received packets, unanswered packets, and ICMP errors. Loop only.
type Neighbors struct {
	node *Node
	udps []*link.UDP // devices of the neighbors
	list []*neighbor
	next clock.Time // time of the next periodic check
}

// neighbor is a neighbor on a UDP link.
type neighbor struct {
	device     *link.UDP
	iface      int
	addr       netip.Addr
	to         HostPort // configured address
	state      control.NeighborState
	since      clock.Time
	lastPacket clock.Time // never if no packet has arrived
	known      bool       // the neighbor was up before
	unanswered clock.Time // time of the first unanswered packet, or never
	last       link.NeighborInfo
}

const (
	// checkEvery is the period of check. ICMP errors are processed at once.
	checkEvery = time.Second
	// silentAfter is how long a neighbor may leave packets unanswered.
	silentAfter = 15 * time.Second
	// icmpErrorValid is how long an ICMP error stays valid. Routers and kernels limit the rate of
	// these errors (RFC 1812 §4.3.2.8), Linux to about one a second.
	icmpErrorValid = 3 * time.Second
)

// rebuild updates the list of neighbors on UDP links. Neighbors that have not changed keep their
// state.
func (v *Neighbors) rebuild(now clock.Time) {
	n, old := v.node, v.list
	*v = Neighbors{node: n, next: v.next}
	for _, d := range n.Devices.list {
		if u, ok := unimpaired(d).(*link.UDP); ok {
			v.udps = append(v.udps, u)
		}
	}
	for _, nb := range n.cfg.Neighbors {
		i, err := n.Iface(nb.Iface)
		if err != nil {
			continue
		}
		u, ok := unimpaired(n.Devices.list[n.Devices.byIface[i]]).(*link.UDP)
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
		v.next = now.Add(checkEvery)
	}
}

// check updates the neighbors every checkEvery and after ICMP errors. It returns whether it did.
func (v *Neighbors) check(now clock.Time) bool {
	changed := v.next.Due(now)
	for _, u := range v.udps {
		changed = u.ICMPErrors() || changed
	}
	if !changed {
		return false
	}
	v.next = now.Add(checkEvery)
	for _, w := range v.list {
		v.checkOne(now, w)
	}
	return true
}

func (v *Neighbors) checkOne(now clock.Time, w *neighbor) {
	info, ok := w.info()
	if !ok {
		return
	}
	if !v.node.stack.Interfaces().Up(w.iface) {
		w.last = info
		// No packets pass meanwhile, so silence has no meaning when the link comes up again.
		w.state, w.since, w.unanswered = control.NeighborUnknown, now, clock.Never
		return
	}
	before := w.last.UDP
	v.update(now, w, info)
	if before.IsValid() && info.UDP != before {
		v.node.Watchers.Announce(control.NeighborChanged{
			Neighbor: v.describe(now, w), Was: w.state, From: before.String(),
		})
	}
}

// update updates a neighbor from the changes in the device's counters.
func (v *Neighbors) update(now clock.Time, w *neighbor, info link.NeighborInfo) {
	before := w.last
	w.last = info
	if info.Refused > before.Refused {
		w.unanswered = clock.Never
	} else if info.Heard > before.Heard {
		w.lastPacket, w.unanswered = now, clock.Never
	} else if info.Sent > before.Sent && w.unanswered == clock.Never {
		w.unanswered = now
	}
	v.setState(now, w, w.nextState(now, &before, v.patience()))
}

// info returns the device's counters for the neighbor.
func (w *neighbor) info() (link.NeighborInfo, bool) {
	for _, info := range w.device.Neighbors(w.iface) {
		if info.Addr == w.addr || slices.Contains(info.Others, w.addr) {
			return info, true
		}
	}
	return link.NeighborInfo{}, false
}

// nextState returns the neighbor's state, from the changes in the counters since the last check.
func (w *neighbor) nextState(
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
		return w.state // keep the state until a packet arrives
	case w.state == control.NeighborRefused || w.state == control.NeighborUnreachable:
		if w.unanswered != clock.Never && now.Sub(w.unanswered) >= icmpErrorValid {
			return control.NeighborUnknown // packets are no longer refused
		}
		return w.state
	case w.unanswered != clock.Never && now.Sub(w.unanswered) >= patience:
		return control.NeighborSilent
	case w.lastPacket != clock.Never:
		return control.NeighborUp
	}
	return control.NeighborUnknown
}

// patience returns how long a neighbor may stay silent.
func (v *Neighbors) patience() time.Duration {
	return cmp.Or(v.node.cfg.Patience, silentAfter)
}

// setState sets a neighbor's state and announces a change.
func (v *Neighbors) setState(now clock.Time, w *neighbor, state control.NeighborState) {
	n, was, since := v.node, w.state, w.since
	if state == was {
		return
	}
	w.state, w.since = state, now
	defer func() { w.known = w.known || state == control.NeighborUp }()
	for _, r := range n.stack.RIPs() {
		refused := state == control.NeighborRefused
		if refused && !n.cfg.KeepRefused {
			r.NeighborLost(now, w.iface, w.addr)
		}
		// The error may concern a packet that was sent before the neighbor started, and the node
		// may read it after the neighbor's first update. So RIP requests the neighbor's table once,
		// because the next update may be a period away.
		if refused || state == control.NeighborUp {
			r.NeighborFound(w.iface, w.addr)
		}
	}
	if state == control.NeighborUnknown ||
		was == control.NeighborUnknown && state == control.NeighborUp {
		return // the change is expected
	}
	n.Watchers.Announce(control.NeighborChanged{
		Neighbor: v.describe(now, w), Was: was, For: now.Sub(since), First: !w.known,
	})
}

func (v *Neighbors) describe(now clock.Time, w *neighbor) control.Neighbor {
	nb := control.Neighbor{
		Iface: v.node.IfaceName(w.iface), Addr: w.addr, State: w.state,
		Since: now.Sub(w.since), Heard: -1, In: w.last.Heard, Out: w.last.Sent,
	}
	list := v.node.cfg.Neighbors
	if i := slices.IndexFunc(list, func(o Neighbor) bool { return o.Addr == w.addr }); i >= 0 {
		nb.UDP, nb.Line = list[i].UDP.String(), list[i].Line
	}
	nb.UDP = v.udp(w.iface, w.addr, nb.UDP)
	if w.lastPacket != clock.Never {
		nb.Heard = now.Sub(w.lastPacket)
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

// find returns an interface's neighbor with that address, or nil if it is not on a UDP link.
func (v *Neighbors) find(i int, addr netip.Addr) *neighbor {
	for _, w := range v.list {
		if w.iface == i && w.addr == addr {
			return w
		}
	}
	return nil
}

// List lists the neighbors on links that are up. Loop only.
func (v *Neighbors) List(now clock.Time) []control.Neighbor {
	n := v.node
	list := []control.Neighbor{}
	for _, nb := range n.cfg.Neighbors {
		if i, err := n.Iface(nb.Iface); err == nil && n.stack.Interfaces().Up(i) {
			if w := v.find(i, nb.Addr); w != nil {
				v.checkOne(now, w)
				list = append(list, v.describe(now, w))
				continue
			}
			list = append(list, control.Neighbor{
				Iface: nb.Iface, Addr: nb.Addr, Heard: -1,
				UDP: v.udp(i, nb.Addr, nb.UDP.String()),
			})
		}
	}
	return append(list, v.kernels(now)...)
}

// kernels lists the kernel's ends of the TUN devices that are up: the addresses in the file, and
// those that neighbor discovery has found.
func (v *Neighbors) kernels(now clock.Time) []control.Neighbor {
	n := v.node
	var list []control.Neighbor
	for i := range n.cfg.Links {
		l := &n.cfg.Links[i]
		if l.TUN == nil || !n.stack.Interfaces().Up(i) {
			continue
		}
		face := control.Interface{Index: i, Name: n.IfaceName(i)}
		found := n.stack.Interfaces().Discovered(now, &face)
		for _, a := range l.TUN.Kernel {
			if !slices.ContainsFunc(found, func(o control.Neighbor) bool { return o.Addr == a }) {
				list = append(list, control.Neighbor{Iface: face.Name, Addr: a, Heard: -1})
			}
		}
		list = append(list, found...)
		for k := range list {
			list[k].UDP = cmp.Or(list[k].UDP, n.Devices.Underneath(i))
		}
	}
	return list
}

// udp returns the current UDP address of a neighbor.
func (v *Neighbors) udp(i int, addr netip.Addr, configured string) string {
	d, ok := v.node.Devices.Unimpaired(i).(realDevice)
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
