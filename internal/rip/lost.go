package rip

import (
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/clock"
)

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
