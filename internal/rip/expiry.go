package rip

import (
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// expire makes a route unreachable, because its router has not refreshed it (RFC 2453 §3.8).
func (s *Speaker) expire(now clock.Time, r *route) {
	s.counters.Expired++
	g := r.via
	s.addEvent(Event{Kind: RouteExpired, Neighbor: g.Addr, Iface: g.Iface, Prefix: r.prefix})
	s.invalidate(now, r)
	if g.routes == 0 && s.isSilent(now, g) {
		s.addEvent(Event{Kind: NeighborSilent, Neighbor: g.Addr, Iface: g.Iface})
	}
}

// invalidate makes a route unreachable and starts the garbage-collection timer (RFC 2453 §3.8).
func (s *Speaker) invalidate(now clock.Time, r *route) {
	if s.cfg.HoldDown > 0 {
		r.heldUntil, r.lost = now.Add(s.cfg.HoldDown), r.cost
	}
	r.setVia(nil)
	r.cost, r.hop = Infinity, netip.Addr{}
	s.table.schedule(r, now.Add(s.cfg.Garbage))
	s.scheduleRequests(now)
	s.publish(now, r)
}

// scheduleRequests schedules requests to the neighbors after a route was lost. RFC 2453 §3.9.1:
// routers send requests "to fill in their routing tables as quickly as possible", which saves up to
// a period. A delay lets the withdrawal reach neighbors that still have the old route. The limit of
// one request per period bounds the load of a flapping link.
func (s *Speaker) scheduleRequests(now clock.Time) {
	tooSoon := s.requestedAt != clock.Never && now.Sub(s.requestedAt) < s.cfg.Periodic
	if s.started && s.requestAt == clock.Never && s.cfg.AskAfter > 0 && !tooSoon {
		s.requestAt = now.Add(s.cfg.AskAfter)
	}
}

// requestTables schedules a request to every neighbor if a route is still unreachable.
func (s *Speaker) requestTables(now clock.Time) {
	if s.table.garbage.head == nil {
		return
	}
	s.requestedAt = now
	for _, o := range s.outlets {
		o.request = o.port.up
	}
}
