package icmp

import (
	"bytes"
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// NeighborState is the state of a neighbor (RFC 4861 §7.3.2).
type NeighborState uint8

// The states, in the order in which a full cache evicts neighbors.
const (
	Incomplete NeighborState = iota // its link-layer address is being resolved
	Stale                           // it may be unreachable; nothing is sent to it
	Delay                           // a packet was sent; an upper layer may confirm it
	Probe                           // it is solicited
	Reachable                       // it was reachable within the reachable time
)

// String returns the name of the state, as Linux prints it.
func (s NeighborState) String() string {
	return [...]string{"INCOMPLETE", "STALE", "DELAY", "PROBE", "REACHABLE"}[s]
}

// The constants of RFC 4861 §10.
const (
	reachableTime        = 30 * time.Second
	retransTimer         = time.Second
	delayFirstProbe      = 5 * time.Second
	maxMulticastSolicits = 3
	maxUnicastSolicits   = 3
)

// neighbor is an entry of the neighbor cache.
type neighbor struct {
	addr    netip.Addr
	state   NeighborState
	link    []byte     // nil: the link has no addresses, or the state is Incomplete
	router  bool       // its last message says so
	waiting []byte     // packet that waits for the address
	src     netip.Addr // source of that packet
	sent    int        // solicitations
	due     clock.Time // end of Delay, or of the wait for the answer to a solicitation
	until   clock.Time // end of Reachable
	used    clock.Time
}

// NeighborInfo is a snapshot of a neighbor.
type NeighborInfo struct {
	Addr   netip.Addr
	Link   []byte
	State  NeighborState
	Router bool
}

// Neighbors returns all neighbors.
func (i *Interface) Neighbors(now clock.Time) []NeighborInfo {
	list := make([]NeighborInfo, len(i.order))
	for k, n := range i.order {
		n.expire(now)
		list[k] = NeighborInfo{n.addr, n.link, n.state, n.router}
	}
	return list
}

// Resolve returns the link-layer address of a neighbor, to which packet is to be sent now. false:
// the address is being resolved (RFC 4861 §7.2.2). Output then returns a copy of the packet later.
// It replaces an older one that waits for the same neighbor.
func (i *Interface) Resolve(now clock.Time, hop netip.Addr, packet []byte) ([]byte, bool) {
	hop = hop.WithZone("")
	n := i.neighbors[hop]
	if n == nil {
		n = i.create(now, hop)
		n.src, _ = ends(packet)
		if i.cfg.Link != nil {
			n.waiting = bytes.Clone(packet)
			i.solicitNeighbor(now, n)
			return nil, false
		}
		n.state = Stale
	}
	n.expire(now)
	n.used = now
	if n.state == Incomplete {
		n.waiting = bytes.Clone(packet)
		return nil, false
	}
	if n.state == Stale {
		n.state, n.due = Delay, now.Add(delayFirstProbe)
		i.probe = clock.Earliest(i.probe, n.due)
	}
	return n.link, true
}

// Confirm reports that a neighbor forwards or receives packets: an upper layer received an answer
// to recent data through it (RFC 4861 §7.3.1).
func (i *Interface) Confirm(now clock.Time, hop netip.Addr) {
	if n := i.neighbors[hop.WithZone("")]; n != nil && n.state != Incomplete {
		i.confirm(now, n)
	}
}

func (i *Interface) confirm(now clock.Time, n *neighbor) {
	n.state, n.due = Reachable, clock.Never
	n.until = now.Add(i.between(i.reachable/2, i.reachable*3/2)) // RFC 4861 §6.3.2
}

// expire makes a neighbor stale whose reachable time has passed.
func (n *neighbor) expire(now clock.Time) {
	if n.state == Reachable && n.until.Due(now) {
		n.state = Stale
	}
}

// create adds a neighbor, whose state is Incomplete. A full cache evicts the one that was not used
// for the longest time, of those in the first state: packets to many addresses that do not exist
// evict each other (RFC 6583 §7.1).
func (i *Interface) create(now clock.Time, addr netip.Addr) *neighbor {
	if len(i.order) >= i.cfg.MaxNeighbors {
		i.info.Evicted++
		i.forget(slices.MinFunc(i.order, func(a, b *neighbor) int {
			return cmp.Or(cmp.Compare(a.state, b.state), cmp.Compare(a.used, b.used))
		}))
	}
	n := &neighbor{addr: addr, used: now}
	i.neighbors[addr] = n
	i.order = append(i.order, n)
	return n
}

func (i *Interface) forget(n *neighbor) {
	delete(i.neighbors, n.addr)
	i.order = slices.DeleteFunc(i.order, func(m *neighbor) bool { return m == n })
}

// learn records the link-layer address that a neighbor gave without being asked (RFC 4861 §6.2.6,
// §6.3.4 and §7.2.3), and returns the neighbor; nil: it is not known, and gave none.
func (i *Interface) learn(now clock.Time, addr netip.Addr, link []byte) *neighbor {
	n := i.neighbors[addr]
	if n == nil {
		if link == nil {
			return nil
		}
		n = i.create(now, addr)
	}
	if link != nil && (n.state == Incomplete || !same(n.link, link)) {
		i.resolved(n, link)
	}
	return n
}

// resolved sets the link-layer address of a neighbor, and sends the packet that waited for it.
func (i *Interface) resolved(n *neighbor, link []byte) {
	n.state, n.due, n.link = Stale, clock.Never, bytes.Clone(link)
	if n.waiting != nil {
		i.out = append(i.out, Outgoing{Dst: n.addr, Link: n.link, Packet: n.waiting})
		n.waiting = nil
	}
}

// hearSolicit answers a neighbor solicitation for an address of this node (RFC 4861 §7.2.3 and
// §7.2.4), or detects a duplicate address (RFC 4862 §5.4.3).
func (i *Interface) hearSolicit(now clock.Time, d *Discovery, src netip.Addr) {
	a := i.own(d.Target)
	if a == nil || a.tentative() {
		if a != nil && src.IsUnspecified() && !bytes.Equal(a.nonce, d.Nonce) {
			i.duplicate(now, a)
		}
		return
	}
	answer := Discovery{
		Type: TypeNeighborAdvert, Target: d.Target, TargetLink: i.cfg.Link,
		Router: i.cfg.Router, Solicited: true, Override: true,
	}
	to := src
	if src.IsUnspecified() {
		to, answer.Solicited = allNodes, false
	} else {
		i.learn(now, src, d.SourceLink)
	}
	var link []byte
	if n := i.neighbors[to]; n != nil {
		link = n.link
	}
	i.send(&answer, d.Target, to, link)
}

// hearAdvert processes a neighbor advertisement (RFC 4861 §7.2.5).
func (i *Interface) hearAdvert(now clock.Time, d *Discovery) {
	if a := i.own(d.Target); a != nil {
		if a.tentative() {
			i.duplicate(now, a) // RFC 4862 §5.4.4
		} else {
			i.info.Conflicts++
		}
		return
	}
	n := i.neighbors[d.Target]
	if n == nil || n.state == Incomplete && d.TargetLink == nil {
		return
	}
	n.expire(now)
	changed := !same(n.link, d.TargetLink)
	switch {
	case n.state == Incomplete:
		i.resolved(n, d.TargetLink)
	case changed && !d.Override:
		if n.state == Reachable {
			n.state = Stale
		}
		return
	case changed:
		i.resolved(n, d.TargetLink)
	}
	if d.Solicited {
		i.confirm(now, n)
	}
	if n.router && !d.Router {
		i.dropRouter(now, n.addr)
	} else if d.Solicited {
		i.setReachable(n.addr, true)
	}
	n.router = d.Router
}

// solicitNeighbor sends the next solicitation: to the group of the address while that is not
// resolved, then to the neighbor.
func (i *Interface) solicitNeighbor(now clock.Time, n *neighbor) {
	n.sent++
	n.due = now.Add(i.retransmit)
	i.probe = clock.Earliest(i.probe, n.due)
	src, ok := i.source(n.src)
	if !ok {
		return // no address is assigned yet
	}
	to := n.addr
	if n.state == Incomplete {
		to = SolicitedNode(n.addr)
	}
	i.send(&Discovery{Type: TypeNeighborSolicit, Target: n.addr, SourceLink: i.cfg.Link},
		src, to, n.link)
}

// advanceNeighbors does what is due for neighbors (RFC 4861 §7.3.3).
func (i *Interface) advanceNeighbors(now clock.Time) {
	if !i.probe.Due(now) {
		return
	}
	i.probe = clock.Never
	for _, n := range slices.Clone(i.order) {
		if n.due.Due(now) {
			i.advanceNeighbor(now, n)
		}
		i.probe = clock.Earliest(i.probe, n.due)
	}
}

func (i *Interface) advanceNeighbor(now clock.Time, n *neighbor) {
	most := maxUnicastSolicits
	if n.state == Incomplete {
		most = maxMulticastSolicits
	}
	if n.state == Delay {
		n.state, n.sent = Probe, 0
	}
	if n.sent < most {
		i.solicitNeighbor(now, n)
		return
	}
	n.due = clock.Never
	i.forget(n)
	if n.waiting != nil {
		i.out = append(i.out, Outgoing{Dst: n.addr, Packet: n.waiting, Unreachable: true})
	}
	i.setReachable(n.addr, false)
}
