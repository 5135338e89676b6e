package rip

import "github.com/tidepool-net/tidepool/internal/clock"

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
