package rip

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// External is a prefix that the owner of the routing table has from elsewhere and RIP
// announces: a static route, say.
type External struct {
	Prefix netip.Prefix
	// NextHop is who leads there and Iface where it is. On that link RIPv2 names it, so
	// that nobody makes the detour over us (RFC 2453 §4.4). The zero Addr: we lead there.
	NextHop netip.Addr
	Iface   int
	// Tag tells where the route is from (RFC 2453 §4.2).
	Tag uint16
	// Metric is what it is announced at, 1 to 15. Zero: as a network of ours.
	Metric int
}

// Farewell owes the neighbours on an interface that is about to go down a last
// update, in which nothing can be reached through us. Without it they would
// send to us until their routes time out. The caller fetches it with Output,
// then says SetLocal.
func (s *Speaker) Farewell(iface int) {
	for _, o := range s.outlets {
		if o.iface == iface && o.port.up {
			o.leaving, o.request, o.full = true, false, true
			o.sending = nil
		}
	}
}

// SetLocal says that the network p of interface iface is up or down; -1 is for
// a network of ours that no interface has. Down, the network is withdrawn, and
// all that was learned through the interface dies with it, at once. Up again,
// the neighbours there are asked for what they know.
func (s *Speaker) SetLocal(now clock.Time, p netip.Prefix, iface int, up bool) {
	p = mustPrefix(p)
	s.hurry()
	if !up {
		s.dropPort(now, iface)
		s.disown(now, p, iface, true)
		return
	}
	s.raisePort(iface)
	o := own{iface: iface, local: true}
	if s.cfg.Dialect == RIPv2 {
		o.cost = 1
		if iface >= 0 && iface < len(s.ports) {
			o.cost = s.ports[iface].Cost // RFC 2453 §3.5: the cost of that network
		}
	}
	s.adopt(now, p, o)
}

// SetExternal announces a prefix that is not an interface's, or no longer. There is one
// reason of that kind for a prefix: another takes its place.
func (s *Speaker) SetExternal(now clock.Time, e External, up bool) {
	p := mustPrefix(e.Prefix)
	if !up {
		s.disown(now, p, e.Iface, false)
		return
	}
	o := own{iface: e.Iface, cost: min(e.Metric, Infinity-1), tag: e.Tag, hop: e.NextHop}
	if o.cost == 0 && s.cfg.Dialect == RIPv2 {
		o.cost = 1
	}
	s.adopt(now, p, o)
}

func mustPrefix(p netip.Prefix) netip.Prefix {
	if !p.IsValid() || !p.Addr().Is4() {
		panic(fmt.Sprintf("BUG: rip: %v is not an IPv4 prefix", p))
	}
	return p.Masked()
}

// raisePort introduces us to the neighbours on an interface that has come up.
func (s *Speaker) raisePort(iface int) {
	if iface < 0 || iface >= len(s.ports) || s.ports[iface].up {
		return
	}
	s.ports[iface].up = true
	for _, o := range s.outlets {
		if o.iface == iface && s.started {
			o.introduce()
		}
	}
}

// dropPort forgets what is owed on an interface that went down, and kills what was
// learned there.
func (s *Speaker) dropPort(now clock.Time, iface int) {
	if iface < 0 {
		return
	}
	for _, o := range s.outlets {
		if o.iface == iface {
			o.silence()
		}
	}
	s.answers = slices.DeleteFunc(s.answers, func(o *outlet) bool { return o.iface == iface })
	s.replies = slices.DeleteFunc(s.replies, func(r reply) bool { return r.outlet.iface == iface })
	if iface < len(s.ports) {
		s.ports[iface].up = false
	}
	for r := s.table.learned.head; r != nil; {
		next := r.next
		if r.via.Iface == iface {
			s.kill(now, r)
		}
		r = next
	}
}

// adopt makes a prefix ours for one more reason. Of several the cheapest counts.
func (s *Speaker) adopt(now clock.Time, p netip.Prefix, o own) {
	r := s.table.find(p)
	if r == nil {
		r = s.table.add(p)
	}
	r.own = append(removeOwn(r.own, o.iface, o.local), o)
	s.settle(now, r)
}

// disown takes a reason away; without any the prefix is withdrawn.
func (s *Speaker) disown(now clock.Time, p netip.Prefix, iface int, local bool) {
	r := s.table.find(p)
	if r == nil || !r.isOwn() {
		return
	}
	r.own = removeOwn(r.own, iface, local)
	if r.isOwn() {
		s.settle(now, r)
		return
	}
	s.kill(now, r)
}

// settle has a route that is ours be what the best reason makes of it.
func (s *Speaker) settle(now clock.Time, r *route) {
	slices.SortStableFunc(r.own, func(a, b own) int { return cmp.Compare(a.cost, b.cost) })
	best := r.own[0]
	s.table.unschedule(r)
	if r.via == nil && r.cost == best.cost && r.tag == best.tag && r.hop == best.hop {
		return
	}
	r.setVia(nil)
	r.cost, r.tag, r.hop = best.cost, best.tag, best.hop
	s.publish(now, r)
}

// removeOwn takes a reason off a list: an interface's, or the one from elsewhere.
func removeOwn(list []own, iface int, local bool) []own {
	return slices.DeleteFunc(list, func(o own) bool {
		return o.local == local && (o.iface == iface || !local)
	})
}
