package rip

import (
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// gateway is a router that we hear: one that is configured, or one that has spoken.
type gateway struct {
	Neighbor
	port       *port
	outlet     *outlet // to it alone, if it is configured; else nil
	configured bool
	heard      clock.Time
	version    uint8
	requests   uint64
	responses  uint64
	refused    uint64
	routes     int // that lead through it
	sequences  []sequence
}

// sequence is the last sequence number that came with one key.
type sequence struct {
	id   uint8
	last uint32
}

// gateway finds the router of that address on that interface, nil: it has not spoken.
func (s *Speaker) gateway(addr netip.Addr, iface int) *gateway {
	if !addr.Is4() {
		return nil
	}
	return s.gateways[gatewayKey(addr, iface)]
}

func gatewayKey(addr netip.Addr, iface int) uint64 {
	return uint64(word(addr.As4()))<<32 | uint64(uint32(iface))
}

// enlist makes the books of a router, nil: there are too many.
func (s *Speaker) enlist(now clock.Time, n Neighbor) *gateway {
	if len(s.gateways) >= maxGateways {
		for key, g := range s.gateways {
			if !g.configured && g.routes == 0 && s.isSilent(now, g) {
				delete(s.gateways, key)
			}
		}
		if len(s.gateways) >= maxGateways {
			return nil
		}
	}
	g := &gateway{Neighbor: n, port: s.ports[n.Iface]}
	s.gateways[gatewayKey(n.Addr, n.Iface)] = g
	return g
}

// isSilent reports whether nothing was heard of a router for as long as routes live.
func (s *Speaker) isSilent(now clock.Time, g *gateway) bool {
	return g.heard == clock.Never || now.Sub(g.heard) > s.cfg.Timeout
}

// hear notes that a router has spoken.
func (s *Speaker) hear(now clock.Time, g *gateway) {
	if s.isSilent(now, g) {
		s.tell(Event{Kind: NeighborHeard, Neighbor: g.Addr, Iface: g.Iface})
	}
	g.heard = now
	g.port.received++
}

// follows judges the sequence number of an authenticated message, and keeps it.
// RFC 4822 §2: it never goes back, key by key. One that has been silent for longer than
// routes live has been given up, and may have begun anew.
func (s *Speaker) follows(now clock.Time, g *gateway, a authentication) bool {
	if a.key == nil || a.key.Algorithm == Password {
		return true
	}
	if s.isSilent(now, g) {
		g.sequences = g.sequences[:0]
	}
	for i := range g.sequences {
		if q := &g.sequences[i]; q.id == a.key.ID {
			if a.sequence < q.last {
				return false
			}
			q.last = a.sequence
			return true
		}
	}
	// As many as the interface has keys, so bounded by the configuration.
	g.sequences = append(g.sequences, sequence{a.key.ID, a.sequence})
	return true
}

// setVia has a route lead through a router, nil: through none.
func (r *route) setVia(g *gateway) {
	if r.via != nil {
		r.via.routes--
	}
	if g != nil {
		g.routes++
	}
	r.via = g
}

// Lost says that nobody is at a neighbour's any more: what was learned from it is withdrawn
// now instead of when it expires. RFC 2453 §3.8 has only the timer because RIP's messages
// go unanswered; whoever drives us may know better. What it says next is learned again.
func (s *Speaker) Lost(now clock.Time, addr netip.Addr, iface int) {
	g := s.gateway(addr, iface)
	if g == nil {
		return
	}
	g.heard = clock.Never
	had := g.routes > 0
	for r := s.table.learned.head; r != nil; {
		next := r.next
		if r.via == g {
			s.kill(now, r)
		}
		r = next
	}
	if had {
		s.tell(Event{Kind: NeighborSilent, Neighbor: g.Addr, Iface: g.Iface})
	}
}

// Found says that somebody is at a neighbour's again. If RIP has not heard it since, it is asked
// for its table and told ours: its next update may be a period away.
func (s *Speaker) Found(addr netip.Addr, iface int) {
	g := s.gateway(addr, iface)
	if g == nil || g.heard != clock.Never || !s.started {
		return
	}
	for _, o := range s.outlets {
		if o.iface == iface && o.to.Addr() == addr && o.port.up {
			o.introduce()
		}
	}
}

// Inherit takes over what another Speaker of the same router knows, which is silent from now on:
// when the router goes on in another configuration, its routes need not be learned again. It is
// for before Start, when what is ours has been said. What was learned from who is no neighbour any
// more, and what was ours and is not, is withdrawn.
func (s *Speaker) Inherit(now clock.Time, old *Speaker) {
	s.watched, s.events = old.watched, old.events
	for key, g := range old.gateways {
		is := s.gateways[key]
		if is == nil && s.cfg.Dialect == RIPv2 && g.Iface < len(s.ports) &&
			s.ports[g.Iface].isOnLink(g.Addr) && !s.ports[g.Iface].listed {
			is = s.enlist(now, g.Neighbor)
		}
		if is != nil {
			is.heard, is.version, is.sequences = g.heard, g.version, g.sequences
		}
	}
	for _, r := range old.table.sorted() {
		s.inherit(now, r)
	}
}

// inherit takes one route over.
func (s *Speaker) inherit(now clock.Time, old *route) {
	r := s.table.find(old.prefix)
	if r == nil {
		r = s.table.add(old.prefix)
	}
	r.installed = old.installed
	if r.isOwn() {
		if r.installed && !r.unsaid { // the owner has the learned one yet
			r.unsaid = true
			s.changes = append(s.changes, r)
		}
		return
	}
	if old.via != nil {
		if g := s.gateway(old.via.Addr, old.via.Iface); g != nil && g.port.up {
			r.setVia(g)
			r.cost = min(old.cost-old.via.port.Cost+g.port.Cost, Infinity)
			r.tag, r.hop = old.tag, old.hop
			r.changedAt = old.changedAt
			s.table.schedule(r, old.due)
			if r.cost == Infinity || r.cost != old.cost || !r.installed {
				s.publish(now, r)
			}
			return
		}
	}
	r.cost = old.cost // what hold-down compares with
	s.kill(now, r)
}
