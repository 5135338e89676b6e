package rip

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// External is a prefix from another source, such as a static route, that RIP announces.
type External struct {
	Prefix netip.Prefix
	// NextHop and Iface are the router of the prefix. RIPv2 and RIPng announce NextHop on its
	// own link, so that packets need not pass through us (RFC 2453 §4.4, RFC 2080 §2.1.1; there it
	// is a link-local address). The zero Addr: packets pass through
	// us.
	NextHop netip.Addr
	Iface   int
	// Tag is the route tag (RFC 2453 §4.2).
	Tag uint16
	// Metric is the announced metric, 1 to 15. Zero: as for our own networks.
	Metric int
}

// Farewell schedules a last update for an interface that is about to go down, with all prefixes at
// Infinity. Without it, neighbors would send to us until their routes time out. The caller sends it
// with Output, then calls SetLocal.
func (s *Speaker) Farewell(iface int) {
	for _, o := range s.outlets {
		if o.iface == iface && o.port.up {
			o.leaving, o.request, o.full = true, false, true
			o.sending = nil
		}
	}
}

// SetLocal sets whether the network p of an interface is up; iface -1 is an own network without an
// interface. If it goes down, the network and all routes learned through the interface are
// withdrawn at once. If it comes up, the neighbors there are asked for their tables. In RIPng an
// interface with only a link-local address has the zero Prefix.
func (s *Speaker) SetLocal(now clock.Time, p netip.Prefix, iface int, up bool) {
	if s.cfg.Dialect != RIPng || p.IsValid() {
		p = s.cfg.Dialect.mustPrefix(p)
	}
	s.hurry()
	if up {
		s.raisePort(iface)
	} else {
		s.dropPort(now, iface)
	}
	switch {
	case !p.IsValid():
		return
	case !up:
		s.disown(now, p, iface, true)
		return
	}
	o := own{iface: iface, local: true}
	if s.cfg.Dialect != Course {
		o.cost = 1
		if iface >= 0 && iface < len(s.ports) {
			o.cost = s.ports[iface].Cost // RFC 2453 §3.5: the cost of that network
		}
	}
	s.adopt(now, p, o)
}

// SetExternal starts or stops announcing a prefix from another source. A prefix has one External; a
// new one replaces it.
func (s *Speaker) SetExternal(now clock.Time, e External, up bool) {
	p := s.cfg.Dialect.mustPrefix(e.Prefix)
	if !up {
		s.disown(now, p, e.Iface, false)
		return
	}
	o := own{iface: e.Iface, cost: min(e.Metric, Infinity-1), tag: e.Tag, hop: e.NextHop}
	if o.cost == 0 && s.cfg.Dialect != Course {
		o.cost = 1
	}
	s.adopt(now, p, o)
}

// mustPrefix checks that a prefix belongs to the dialect's family.
func (d Dialect) mustPrefix(p netip.Prefix) netip.Prefix {
	if !p.IsValid() || p.Addr().Is6() != (d == RIPng) {
		panic(fmt.Sprintf("BUG: rip: %v is not a prefix of the dialect's family", p))
	}
	return p.Masked()
}

// raisePort introduces us to the neighbors on an interface that came up.
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

// dropPort cancels messages on an interface that went down, and kills the routes learned there.
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

// adopt adds a source of an own prefix. The cheapest source counts.
func (s *Speaker) adopt(now clock.Time, p netip.Prefix, o own) {
	r := s.table.find(p)
	if r == nil {
		r = s.table.add(p)
	}
	r.own = append(removeOwn(r.own, o.iface, o.local), o)
	s.settle(now, r)
}

// disown removes a source of an own prefix. Without a source the prefix is withdrawn.
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

// settle updates an own route from its best source.
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

// removeOwn removes a source from a list: an interface's, or the external one.
func removeOwn(list []own, iface int, local bool) []own {
	return slices.DeleteFunc(list, func(o own) bool {
		return o.local == local && (o.iface == iface || !local)
	})
}
