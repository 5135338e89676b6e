package rip

import (
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Input takes a message that came from an address by an interface. It is false
// for one that was refused, for its sender (RFC 2453 §3.9.2 wants a valid
// neighbour) or for its form.
func (s *Speaker) Input(now clock.Time, from netip.Addr, iface int, payload []byte) bool {
	n := s.neighbor(from, iface)
	if n == nil {
		s.counters.Strangers++
		return false
	}
	p, ok := ParsePacket(payload, s.parsed)
	if !ok {
		s.counters.Malformed++
		return false
	}
	s.parsed = p.Entries
	if p.Command == Request {
		// RFC 2453 §3.9.1: the whole table. The dialect has no other request, so
		// entries in one mean nothing.
		s.counters.RequestsIn++
		n.full = true
		return true
	}
	s.counters.ResponsesIn++
	s.counters.EntriesIn += uint64(len(p.Entries) + p.Rejected)
	s.counters.BadEntries += uint64(p.Rejected)
	switch p.EntrySize {
	case OldEntrySize:
		n.entrySize = OldEntrySize
	case EntrySize:
		n.entrySize = s.cfg.EntrySize
	}
	for _, e := range p.Entries {
		if e.Cost > Infinity || !isDestination(e.Prefix) {
			s.counters.BadEntries++
			continue
		}
		s.learn(now, n, e.Prefix, min(int(e.Cost)+1, Infinity))
	}
	return true
}

// neighbor finds the configured neighbour of that address on that interface, if
// the interface is up.
func (s *Speaker) neighbor(addr netip.Addr, iface int) *neighbor {
	for _, n := range s.neighbors {
		if n.Addr == addr && n.Iface == iface && n.up {
			return n
		}
	}
	return nil
}

// isDestination reports whether a route to p makes sense (RFC 2453 §3.9.2:
// "unicast; not net 0 or 127"). The default route does.
func isDestination(p netip.Prefix) bool {
	first := p.Addr().As4()[0]
	return p.Bits() == 0 || first != 0 && first != 127 && first < 224
}

// learn is RFC 2453 §3.9.2's case of one entry: neighbour n reaches p, and we
// would through it at the given cost, the link to it included.
func (s *Speaker) learn(now clock.Time, n *neighbor, p netip.Prefix, cost int) {
	r := s.table.byPrefix[p]
	if r == nil {
		// RFC 2453 §3.9.2: a route that cannot be used is not worth adding.
		if cost == Infinity {
			return
		}
		if len(s.table.sorted) >= s.cfg.MaxRoutes {
			s.counters.TableFull++
			return
		}
		r = s.table.add(p)
	}
	switch {
	case r.isLocal():
		// Nothing is nearer than a network of our own.
	case r.via == n && cost == Infinity:
		s.kill(now, r)
	case r.via == n && cost == r.cost:
		s.table.schedule(r, now.Add(s.cfg.Timeout))
	case r.via == n || cost < r.cost || cost == r.cost && s.isStale(now, r):
		r.cost, r.via = cost, n
		s.table.schedule(r, now.Add(s.cfg.Timeout))
		s.publish(r)
	}
}

// isStale reports whether a learned route has gone unrefreshed for more than
// half of its time. RFC 2453 §3.9.2 then prefers another of the same cost; until
// then equal costs do not make the route go to and fro.
func (s *Speaker) isStale(now clock.Time, r *route) bool {
	return r.via != nil && r.due.Sub(now) < s.cfg.Timeout/2
}
