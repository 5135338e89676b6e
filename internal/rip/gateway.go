package rip

import (
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// gateway is a router that is configured as a neighbor, or that has sent a message.
type gateway struct {
	Neighbor
	port       *port
	outlet     *outlet // destination of messages to this router alone; may be nil
	configured bool
	lastUpdate clock.Time
	version    uint8
	requests   uint64
	responses  uint64
	refused    uint64
	routes     int // number of routes through this router
	sequences  []sequence
}

// sequence is the last sequence number that a router has used with one key.
type sequence struct {
	id   uint8
	last uint32
}

// findOrAdd finds or adds a router. It returns nil if there are too many.
func (s *Speaker) findOrAdd(now clock.Time, n Neighbor) *gateway {
	if g := s.gateways[n]; g != nil {
		return g
	}
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
	s.gateways[n] = g
	return g
}

// isSilent reports whether a router has sent nothing for Timeout.
func (s *Speaker) isSilent(now clock.Time, g *gateway) bool {
	return g.lastUpdate == clock.Never || now.Sub(g.lastUpdate) > s.cfg.Timeout
}

// noteMessage records that a router has sent a message.
func (s *Speaker) noteMessage(now clock.Time, g *gateway) {
	if s.isSilent(now, g) {
		s.addEvent(Event{Kind: NeighborHeard, Neighbor: g.Addr, Iface: g.Iface})
	}
	g.lastUpdate = now
	g.port.received++
}

// checkSequence checks and records the sequence number of an authenticated message. RFC 4822 §2:
// the number never decreases for a key. A router that was silent for longer than Timeout may have
// restarted, so its numbers may start again.
func (s *Speaker) checkSequence(now clock.Time, g *gateway, a authentication) bool {
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
	// The interface's number of keys limits this list.
	g.sequences = append(g.sequences, sequence{a.key.ID, a.sequence})
	return true
}

// setVia sets the router of a route; nil means no router.
func (r *route) setVia(g *gateway) {
	if r.via != nil {
		r.via.routes--
	}
	if g != nil {
		g.routes++
	}
	r.via = g
}

// Lost reports that a neighbor's node has failed. The Speaker withdraws the neighbor's routes at
// once, and not when they expire. RIP alone detects a failure only by the timeout (RFC 2453 §3.8),
// because its messages are not acknowledged. Later messages of the neighbor are accepted again.
func (s *Speaker) Lost(now clock.Time, addr netip.Addr, iface int) {
	g := s.gateways[Neighbor{addr, iface}]
	if g == nil {
		return
	}
	g.lastUpdate = clock.Never
	had := g.routes > 0
	for r := s.table.learned.head; r != nil; {
		next := r.next
		if r.via == g {
			s.invalidate(now, r)
		}
		r = next
	}
	if had {
		s.addEvent(Event{Kind: NeighborSilent, Neighbor: g.Addr, Iface: g.Iface})
	}
}

// Found reports that a neighbor's node is running again. If no message has arrived since Lost, the
// Speaker requests the neighbor's table and sends its own, because the next update may be a period
// away.
func (s *Speaker) Found(addr netip.Addr, iface int) {
	g := s.gateways[Neighbor{addr, iface}]
	if g == nil || g.lastUpdate != clock.Never || !s.started {
		return
	}
	for _, o := range s.outlets {
		if o.iface == iface && o.port.up && (o.to.Addr() == addr || !o.port.neighborsOnly) {
			o.scheduleInitial()
		}
	}
}

// Inherit takes over the state of another Speaker of the same router, which must not send any more.
// After a change of configuration the routes then need not be learned again. Call it before Start,
// and after SetLocal and SetExternal. It withdraws routes of former neighbors and former own
// prefixes.
func (s *Speaker) Inherit(now clock.Time, old *Speaker) {
	s.watched, s.events = old.watched, old.events
	for key, g := range old.gateways {
		is := s.gateways[key]
		if is == nil && s.cfg.Dialect != Course && g.Iface < len(s.ports) &&
			s.ports[g.Iface].isOnLink(g.Addr) && !s.ports[g.Iface].neighborsOnly {
			is = s.findOrAdd(now, g.Neighbor)
		}
		if is != nil {
			is.lastUpdate, is.version, is.sequences = g.lastUpdate, g.version, g.sequences
		}
	}
	for _, r := range old.table.sorted() {
		s.inherit(now, r)
	}
}

// inherit takes over one route.
func (s *Speaker) inherit(now clock.Time, old *route) {
	r := s.table.find(old.prefix)
	if r == nil {
		r = s.table.add(old.prefix)
	}
	r.installed = old.installed
	if r.isOwn() {
		if r.installed && !r.pending { // the routing table still contains the learned route
			r.pending = true
			s.changes = append(s.changes, r)
		}
		return
	}
	if old.via != nil {
		if g := s.gateways[Neighbor{old.via.Addr, old.via.Iface}]; g != nil && g.port.up {
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
	r.cost = old.cost // hold-down compares with this cost
	s.invalidate(now, r)
}
