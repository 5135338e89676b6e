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
