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

// These are the states, in the order in which a full cache evicts neighbors.
const (
	Stale     NeighborState = iota // the neighbor may be unreachable; nothing is sent to it
	Delay                          // a packet was sent; an advertisement may confirm the neighbor
	Probe                          // the neighbor is being solicited
	Reachable                      // the neighbor answered within the reachable time
)

// String returns the name of the state, as Linux prints it.
func (s NeighborState) String() string {
	return [...]string{"STALE", "DELAY", "PROBE", "REACHABLE"}[s]
}

// These are the constants of RFC 4861 §10.
const (
	reachableTime      = 30 * time.Second
	retransTimer       = time.Second
	delayFirstProbe    = 5 * time.Second
	maxUnicastSolicits = 3
)

// neighbor is an entry of the neighbor cache. Neighbors have no link-layer addresses to resolve, so
// the state of an entry is never INCOMPLETE.
type neighbor struct {
	addr   netip.Addr
	state  NeighborState
	router bool       // the neighbor's last message says that it is a router
	src    netip.Addr // source of the first packet to the neighbor
	sent   int        // number of solicitations sent
	due    clock.Time // end of Delay, or of the wait for the answer to a solicitation
	until  clock.Time // end of the state Reachable
	used   clock.Time
}

// NeighborInfo is a snapshot of a neighbor.
type NeighborInfo struct {
	Addr   netip.Addr
	State  NeighborState
	Router bool
}

// Neighbors returns all neighbors.
func (i *Interface) Neighbors(now clock.Time) []NeighborInfo {
	list := make([]NeighborInfo, len(i.order))
	for k, n := range i.order {
		n.expire(now)
		list[k] = NeighborInfo{n.addr, n.state, n.router}
	}
	return list
}

// Sent reports that a packet was sent to a neighbor. If nothing shows that the neighbor can be
// reached, it is probed later (RFC 4861 §7.3.3).
func (i *Interface) Sent(now clock.Time, hop netip.Addr, packet []byte) {
	hop = hop.WithZone("")
	n := i.neighbors[hop]
	if n == nil {
		n = i.create(hop)
		n.src, _ = ends(packet)
	}
	n.expire(now)
	n.used = now
	if n.state == Stale {
		n.state, n.due = Delay, now.Add(delayFirstProbe)
		i.probe = clock.Earliest(i.probe, n.due)
	}
}

// confirm records that a neighbor has answered a solicitation.
func (i *Interface) confirm(now clock.Time, n *neighbor) {
	n.state, n.due = Reachable, clock.Never
	n.until = now.Add(i.randomBetween(i.reachable/2, i.reachable*3/2)) // RFC 4861 §6.3.2
}

// expire changes a neighbor to Stale if its reachable time has passed.
func (n *neighbor) expire(now clock.Time) {
	if n.state == Reachable && n.until.Due(now) {
		n.state = Stale
	}
}

// create adds a neighbor, whose state is Stale. A full cache evicts one of the neighbors in the
// lowest state, the one that was not used for the longest time. So packets to many addresses that
// do not exist evict each other's entries (RFC 6583 §7.1).
func (i *Interface) create(addr netip.Addr) *neighbor {
	if len(i.order) >= maxNeighbors {
		i.forget(slices.MinFunc(i.order, func(a, b *neighbor) int {
			return cmp.Or(cmp.Compare(a.state, b.state), cmp.Compare(a.used, b.used))
		}))
	}
	n := &neighbor{addr: addr}
	i.neighbors[addr] = n
	i.order = append(i.order, n)
	return n
}

func (i *Interface) forget(n *neighbor) {
	delete(i.neighbors, n.addr)
	i.order = slices.DeleteFunc(i.order, func(m *neighbor) bool { return m == n })
}

// handleSolicit answers a neighbor solicitation for an address of this node (RFC 4861 §7.2.3 and
// §7.2.4), or detects a duplicate address (RFC 4862 §5.4.3).
func (i *Interface) handleSolicit(now clock.Time, d *Discovery, src netip.Addr) {
	a := i.own(d.Target)
	if a == nil || a.tentative() {
		if a != nil && src.IsUnspecified() && !bytes.Equal(a.nonce, d.Nonce) {
			i.duplicate(now, a)
		}
		return
	}
	answer := Discovery{
		Type: TypeNeighborAdvert, Target: d.Target, Router: i.cfg.Router, Solicited: true,
		Override: true,
	}
	to := src
	if src.IsUnspecified() {
		to, answer.Solicited = allNodes, false
	}
	i.send(&answer, d.Target, to)
}

// handleAdvert processes a neighbor advertisement (RFC 4861 §7.2.5).
func (i *Interface) handleAdvert(now clock.Time, d *Discovery) {
	if a := i.own(d.Target); a != nil {
		if a.tentative() {
			i.duplicate(now, a) // RFC 4862 §5.4.4
		}
		return
	}
	n := i.neighbors[d.Target]
	if n == nil {
		return
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

// solicitNeighbor sends the next solicitation to a neighbor.
func (i *Interface) solicitNeighbor(now clock.Time, n *neighbor) {
	n.sent++
	n.due = now.Add(i.retransmit)
	i.probe = clock.Earliest(i.probe, n.due)
	if src, ok := i.source(n.src); ok { // if there is no source, no address is assigned yet
		i.send(&Discovery{Type: TypeNeighborSolicit, Target: n.addr}, src, n.addr)
	}
}

// advanceNeighbors runs the timers of neighbors (RFC 4861 §7.3.3).
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
	if n.state == Delay {
		n.state, n.sent = Probe, 0
	}
	if n.sent < maxUnicastSolicits {
		i.solicitNeighbor(now, n)
		return
	}
	n.due = clock.Never
	i.forget(n)
	i.setReachable(n.addr, false)
}
