package rip

import (
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Input takes a message that came from an address and, in RIPv2, a port by an
// interface. What is refused is counted by its reason, for its sender (RFC 2453 §3.9.2
// wants a valid neighbour) or for its form; Taken is none.
func (s *Speaker) Input(now clock.Time, from netip.AddrPort, iface int, payload []byte) Refusal {
	var r Refusal
	if s.cfg.Dialect == RIPv2 {
		r = s.input2(now, from, iface, payload)
	} else {
		r = s.inputCourse(now, from.Addr(), iface, payload)
	}
	if r == Taken {
		return r
	}
	if g := s.gateway(from.Addr(), iface); g != nil {
		g.refused++
	}
	s.tell(Event{Kind: MessageRefused, Neighbor: from.Addr(), Iface: iface, Reason: r})
	return s.refuse(r)
}

func (s *Speaker) inputCourse(
	now clock.Time, from netip.Addr, iface int, payload []byte,
) Refusal {
	g := s.gateway(from, iface)
	if g == nil {
		return RefusedStranger
	}
	if !g.port.up {
		return RefusedInterface
	}
	p, ok := ParsePacket(payload, s.parsed)
	if !ok {
		return RefusedForm
	}
	s.parsed = p.Entries
	s.hear(now, g)
	if p.Command == Request {
		// RFC 2453 §3.9.1: the whole table. The dialect has no other request, so
		// entries in one mean nothing.
		s.counters.RequestsIn++
		g.requests++
		if g.outlet != nil {
			g.outlet.full = true
		}
		return Taken
	}
	s.counters.ResponsesIn++
	g.responses++
	s.counters.EntriesIn += uint64(len(p.Entries) + p.Rejected)
	s.refused[RefusedMask] += uint64(p.Rejected)
	if o := g.outlet; o != nil && p.EntrySize == OldEntrySize {
		o.width = OldEntrySize
	} else if o != nil && p.EntrySize == EntrySize {
		o.width = s.cfg.EntrySize
	}
	for i := range p.Entries {
		e := &p.Entries[i]
		switch {
		case e.Cost > Infinity:
			s.refuse(RefusedMetric)
		case !isDestination(e.Prefix):
			s.refuse(RefusedMartian)
		default:
			e.NextHop = from
			s.learn(now, g, e)
		}
	}
	return Taken
}

// isDestination reports whether a route to p makes sense (RFC 2453 §3.9.2:
// "unicast; not net 0 or 127"). The default route does.
func isDestination(p netip.Prefix) bool {
	first := p.Addr().As4()[0]
	return p.Bits() == 0 || first != 0 && first != 127 && first < 224
}

// learn is RFC 2453 §3.9.2's case of one entry: router g reaches e.Prefix, and we
// would through e.NextHop at its cost and that of the link.
func (s *Speaker) learn(now clock.Time, g *gateway, e *Entry) {
	cost := min(int(e.Cost)+g.port.Cost, Infinity)
	r := s.table.find(e.Prefix)
	if r == nil {
		// RFC 2453 §3.9.2: a route that cannot be used is not worth adding.
		if cost == Infinity {
			return
		}
		if len(s.table.byPrefix) >= s.cfg.MaxRoutes {
			s.refuse(RefusedTableFull)
			return
		}
		r = s.table.add(e.Prefix)
	}
	same := r.via == g
	switch {
	case r.isOwn():
		// Nothing is nearer than a network of our own.
	case same && cost == Infinity:
		s.kill(now, r)
	case same && cost == r.cost && e.NextHop == r.hop && e.Tag == r.tag:
		s.table.schedule(r, now.Add(s.cfg.Timeout))
	case r.via == nil && r.heldUntil != clock.Never && now < r.heldUntil && cost >= r.lost:
		// In hold-down: it may be the old news on its way around.
	case same || cost < r.cost || cost == r.cost && s.isStale(now, r):
		r.setVia(g)
		r.cost, r.hop, r.tag, r.heldUntil = cost, e.NextHop, e.Tag, clock.Never
		s.table.schedule(r, now.Add(s.cfg.Timeout))
		s.publish(now, r)
	}
}

// isStale reports whether a learned route has gone unrefreshed for more than
// half of its time. RFC 2453 §3.9.2 then prefers another of the same cost; until
// then equal costs do not make the route go to and fro.
func (s *Speaker) isStale(now clock.Time, r *route) bool {
	return r.via != nil && r.due.Sub(now) < s.cfg.Timeout/2
}
