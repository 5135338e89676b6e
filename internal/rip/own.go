package rip

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// External is a prefix from another source that RIP announces, such as a static route.
type External struct {
	Prefix netip.Prefix
	// NextHop and Iface describe the router of the prefix. RIPv2 and RIPng announce NextHop on its
	// own link, so that packets need not pass through this router (RFC 2453 §4.4, RFC 2080 §2.1.1;
	// in RIPng it is a link-local address). If NextHop is the zero Addr, packets pass through this
	// router.
	NextHop netip.Addr
	Iface   int
	// Tag is the route tag (RFC 2453 §4.2).
	Tag uint16
	// Metric is the announced metric, 1 to 15. Zero means the metric of own networks.
	Metric int
}

// Withdraw schedules a last update for an interface that is about to go down, with all prefixes at
// Infinity. Without this update, neighbors would use this router until their routes time out. The
// caller sends it with Output, and then calls SetLocal.
func (s *Speaker) Withdraw(iface int) {
	for _, o := range s.outlets {
		if o.iface == iface && o.port.up {
			o.leaving, o.request, o.full = true, false, true
			o.sending = nil
		}
	}
}

// SetLocal sets whether the network p of an interface is up. The interface -1 stands for one of the
// router's networks without an interface. When a network goes down, the Speaker withdraws it and
// all routes learned through the interface at once. When it comes up, the Speaker requests the
// tables of its neighbors. In RIPng an interface with only a link-local address has the zero
// Prefix.
func (s *Speaker) SetLocal(now clock.Time, p netip.Prefix, iface int, up bool) {
	if s.cfg.Dialect != RIPng || p.IsValid() {
		p = s.cfg.Dialect.mustPrefix(p)
	}
	s.shortenDelay()
	if up {
		s.portUp(iface)
	} else {
		s.portDown(now, iface)
	}
	switch {
	case !p.IsValid():
		return
	case !up:
		s.removeSource(now, p, iface, true)
		return
	}
	o := own{iface: iface, local: true}
	if s.cfg.Dialect != Course {
		o.cost = 1
		if iface >= 0 && iface < len(s.ports) {
			o.cost = s.ports[iface].Cost // the cost of the interface's network (RFC 2453 §3.5)
		}
	}
	s.addSource(now, p, o)
}

// SetExternal starts or stops announcing a prefix from another source. Each prefix has at most one
// External: a new one replaces it.
func (s *Speaker) SetExternal(now clock.Time, e External, up bool) {
	p := s.cfg.Dialect.mustPrefix(e.Prefix)
	if !up {
		s.removeSource(now, p, e.Iface, false)
		return
	}
	o := own{iface: e.Iface, cost: min(e.Metric, Infinity-1), tag: e.Tag, hop: e.NextHop}
	if o.cost == 0 && s.cfg.Dialect != Course {
		o.cost = 1
	}
	s.addSource(now, p, o)
}

// mustPrefix panics unless a prefix belongs to the dialect's address family.
func (d Dialect) mustPrefix(p netip.Prefix) netip.Prefix {
	if !p.IsValid() || p.Addr().Is6() != (d == RIPng) {
		panic(fmt.Sprintf("BUG: rip: %v is not a prefix of the dialect's family", p))
	}
	return p.Masked()
}

// portUp schedules the first messages to the neighbors on an interface that came up.
func (s *Speaker) portUp(iface int) {
	if iface < 0 || iface >= len(s.ports) || s.ports[iface].up {
		return
	}
	s.ports[iface].up = true
	for _, o := range s.outlets {
		if o.iface == iface && s.started {
			o.scheduleInitial()
		}
	}
}

// portDown cancels the messages on an interface that went down, and invalidates the routes learned
// there.
func (s *Speaker) portDown(now clock.Time, iface int) {
	if iface < 0 {
		return
	}
	for _, o := range s.outlets {
		if o.iface == iface {
			o.cancel()
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
			s.invalidate(now, r)
		}
		r = next
	}
}

// addSource adds a source of an own prefix. The source with the lowest cost is used.
func (s *Speaker) addSource(now clock.Time, p netip.Prefix, o own) {
	r := s.table.find(p)
	if r == nil {
		r = s.table.add(p)
	}
	r.own = append(removeOwn(r.own, o.iface, o.local), o)
	s.selectSource(now, r)
}

// removeSource removes a source of an own prefix. If no source is left, it withdraws the prefix.
func (s *Speaker) removeSource(now clock.Time, p netip.Prefix, iface int, local bool) {
	r := s.table.find(p)
	if r == nil || !r.isOwn() {
		return
	}
	r.own = removeOwn(r.own, iface, local)
	if r.isOwn() {
		s.selectSource(now, r)
		return
	}
	s.invalidate(now, r)
}

// selectSource updates an own route from its best source.
func (s *Speaker) selectSource(now clock.Time, r *route) {
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

// removeOwn removes a source from a list: that of an interface, or the external one.
func removeOwn(list []own, iface int, local bool) []own {
	return slices.DeleteFunc(list, func(o own) bool {
		return o.local == local && (o.iface == iface || !local)
	})
}
