package stack

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/ip"
)

// Errors of static routes.
var (
	// ErrPrefix is a prefix that is none, or whose address says more than its length.
	ErrPrefix = errors.New("not the prefix of an IPv4 network")
	// ErrNextHop is a next hop that is on no interface's network, or that is the node's own.
	ErrNextHop = errors.New("no such next hop")
	// ErrRouteExists is a static route that is there already.
	ErrRouteExists = errors.New("there is such a route")
	// ErrNoSuchRoute is a static route that is not there.
	ErrNoSuchRoute = errors.New("no such route")
)

// Route is a static route. Of several to one prefix the one is used that has the
// smallest metric among those whose interface is up; of equal ones the one that was
// there first.
type Route struct {
	Prefix netip.Prefix
	Via    netip.Addr // the next hop, on an interface's network; of other kinds invalid
	Metric int        // 0 or more
	Kind   ip.Kind
}

// statics are the operator's routes by their prefix, the better ones first.
type statics map[netip.Prefix][]Route

// AddRoute adds a static route.
func (s *Stack) AddRoute(now clock.Time, r Route) error {
	if err := s.checkRoute(r); err != nil {
		return err
	}
	list := s.statics[r.Prefix]
	at := len(list)
	for i := range list {
		if list[i].Via == r.Via && list[i].Kind == r.Kind {
			return fmt.Errorf("%v: %w", r.Prefix, ErrRouteExists)
		}
		if r.Metric < list[i].Metric {
			at = min(at, i)
		}
	}
	s.statics[r.Prefix] = slices.Insert(list, at, r)
	s.install(now, r.Prefix)
	s.rerouted()
	return nil
}

// DelRoute takes the static routes to a prefix away: the one by a next hop, or all of
// them if via is invalid.
func (s *Stack) DelRoute(now clock.Time, p netip.Prefix, via netip.Addr) error {
	if err := checkPrefix(p); err != nil {
		return err
	}
	list := s.statics[p]
	left := slices.DeleteFunc(slices.Clone(list), func(r Route) bool {
		return !via.IsValid() || r.Via == via
	})
	if len(left) == len(list) {
		return fmt.Errorf("static route to %v: %w", p, ErrNoSuchRoute)
	}
	if s.statics[p] = left; len(left) == 0 {
		delete(s.statics, p)
	}
	s.install(now, p)
	s.rerouted()
	return nil
}

// checkRoute refuses what can be no static route of this node.
func (s *Stack) checkRoute(r Route) error {
	if err := checkPrefix(r.Prefix); err != nil {
		return err
	}
	if r.Kind != ip.Forwarded {
		return nil
	}
	if !r.Via.Is4() {
		return fmt.Errorf("%v: %w: not an IPv4 address", r.Via, ErrNextHop)
	}
	hop := r.Via.As4()
	if _, own := s.self(hop); own {
		return fmt.Errorf("%v: %w: it is this node", r.Via, ErrNextHop)
	}
	i, ok := s.onLink(r.Via)
	switch {
	case !ok:
		return fmt.Errorf("%v: %w: it is on no interface's network", r.Via, ErrNextHop)
	case s.all(i, hop):
		return fmt.Errorf("%v: %w: it is all hosts of a network", r.Via, ErrNextHop)
	case !s.present(i, hop):
		return fmt.Errorf("%v: %w: it is not on %s's link", r.Via, ErrNextHop,
			s.interfaces[i].Name)
	}
	return nil
}

func checkPrefix(p netip.Prefix) error {
	if !p.IsValid() || !p.Addr().Is4() {
		return fmt.Errorf("%v: %w", p, ErrPrefix)
	}
	if p != p.Masked() {
		return fmt.Errorf("%v: %w: bits are set behind its length; did you mean %v?",
			p, ErrPrefix, p.Masked())
	}
	return nil
}

// onLink finds the interface on whose network an address is: of several networks that
// hold it the smallest. At the other end of a point-to-point link, which is a network of
// one address, is whoever is named there.
func (s *Stack) onLink(a netip.Addr) (int, bool) {
	best, bits := 0, -1
	for i := range s.interfaces {
		if slices.Contains(s.interfaces[i].Neighbors, a) {
			return i, true
		}
		if p := s.interfaces[i].Addr; p.Masked().Contains(a) && p.Bits() > bits {
			best, bits = i, p.Bits()
		}
	}
	return best, bits >= 0
}

// install brings the best static route to a prefix that can be used now into the route
// table, or takes the one that was there out, and has RIP say so where it is to.
func (s *Stack) install(now clock.Time, p netip.Prefix) {
	usable, best := false, ip.Route{Prefix: p}
	for _, r := range s.statics[p] {
		i := 0
		if r.Kind == ip.Forwarded {
			i, usable = s.onLink(r.Via) // its interface may be no more
			usable = usable && s.interfaces[i].up
		} else {
			usable = true
		}
		if usable {
			best = ip.Route{
				Prefix: p, NextHop: r.Via, Iface: i, Origin: ip.Static,
				Kind: r.Kind, Cost: r.Metric,
			}
			s.routes.Insert(best)
			break
		}
	}
	if !usable {
		s.routes.Remove(p, ip.Static)
	}
	s.originate(now, best, usable)
}

// reinstall is install for every prefix with a route that leads over interface i, which
// has come up or gone down.
func (s *Stack) reinstall(now clock.Time, i int) {
	var affected []netip.Prefix
	for p, list := range s.statics {
		if slices.ContainsFunc(list, func(r Route) bool {
			out, ok := s.onLink(r.Via)
			return ok && out == i
		}) {
			affected = append(affected, p)
		}
	}
	s.installAll(now, affected)
}

// reinstallAll is install for every prefix.
func (s *Stack) reinstallAll(now clock.Time) {
	s.installAll(now, slices.Collect(maps.Keys(s.statics)))
}

func (s *Stack) installAll(now clock.Time, prefixes []netip.Prefix) {
	slices.SortFunc(prefixes, netip.Prefix.Compare)
	for _, p := range prefixes {
		s.install(now, p)
	}
}
