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

// These are errors of static routes.
var (
	// ErrPrefix means that the prefix is invalid, or that its address has bits beyond its length.
	ErrPrefix = errors.New("invalid prefix")
	// ErrNextHop means that the next hop cannot be a neighbor, or is the node itself.
	ErrNextHop = errors.New("no such next hop")
	// ErrRouteExists means that the same static route exists.
	ErrRouteExists = errors.New("route already exists")
	// ErrNoSuchRoute means that no such static route exists.
	ErrNoSuchRoute = errors.New("no such route")
)

// Route is a static route. Of several routes to a prefix, the stack uses the one with the smallest
// metric among those whose interface is up. Of equal ones it uses the oldest.
type Route struct {
	Prefix netip.Prefix
	Via    netip.Addr // next hop, in an interface's network; invalid for the other kinds
	Metric int        // metric, which must not be negative
	Kind   ip.Kind
}

// statics are the static routes by prefix, the best one first.
type statics map[netip.Prefix][]Route

// Add adds a static route.
func (rt *Routing) Add(now clock.Time, r Route) error {
	if err := rt.check(r); err != nil {
		return err
	}
	list := rt.statics[r.Prefix]
	at := len(list)
	for i := range list {
		if list[i].Via == r.Via && list[i].Kind == r.Kind {
			return fmt.Errorf("%v: %w", r.Prefix, ErrRouteExists)
		}
		if r.Metric < list[i].Metric {
			at = min(at, i)
		}
	}
	rt.statics[r.Prefix] = slices.Insert(list, at, r)
	rt.install(now, r.Prefix)
	rt.changed()
	return nil
}

// Remove removes the static route to a prefix by a next hop, or all routes to the prefix if via is
// invalid.
func (rt *Routing) Remove(now clock.Time, p netip.Prefix, via netip.Addr) error {
	if err := checkPrefix(p); err != nil {
		return err
	}
	list := rt.statics[p]
	left := slices.DeleteFunc(slices.Clone(list), func(r Route) bool {
		return !via.IsValid() || r.Via == via
	})
	if len(left) == len(list) {
		return fmt.Errorf("%v: %w", p, ErrNoSuchRoute)
	}
	if rt.statics[p] = left; len(left) == 0 {
		delete(rt.statics, p)
	}
	rt.install(now, p)
	rt.changed()
	return nil
}

func (rt *Routing) check(r Route) error {
	if err := checkPrefix(r.Prefix); err != nil {
		return err
	}
	if r.Kind != ip.Forwarded {
		return nil
	}
	if r.Via.Is4() != r.Prefix.Addr().Is4() || !r.Via.IsValid() {
		return fmt.Errorf("%v: %w: must be an address of %v's family", r.Via, ErrNextHop, r.Prefix)
	}
	if _, own := rt.ifs.self(r.Via); own {
		return fmt.Errorf("%v: %w: it is an address of this node", r.Via, ErrNextHop)
	}
	i, ok := rt.ifs.onLink(r.Via)
	switch {
	case !ok:
		return fmt.Errorf("%v: %w: it is in no interface's network", r.Via, ErrNextHop)
	case rt.ifs.isNetBroadcast(i, v4Of(r.Via)):
		return fmt.Errorf("%v: %w: it is a broadcast address", r.Via, ErrNextHop)
	case !rt.ifs.present(i, r.Via):
		return fmt.Errorf("%v: %w: it is not on %s's link", r.Via, ErrNextHop,
			rt.ifs.list[i].Name)
	}
	return nil
}

func checkPrefix(p netip.Prefix) error {
	if !p.IsValid() || p.Addr().Is4In6() {
		return fmt.Errorf("%v: %w", p, ErrPrefix)
	}
	if p != p.Masked() {
		return fmt.Errorf("%v: %w: it has bits beyond its length; did you mean %v?",
			p, ErrPrefix, p.Masked())
	}
	return nil
}

// install puts the best usable static route to a prefix into the route table, or removes the
// prefix's static route if none is usable. RIP announces the change if it redistributes static
// routes.
func (rt *Routing) install(now clock.Time, p netip.Prefix) {
	usable, best := false, ip.Route{Prefix: p}
	for _, r := range rt.statics[p] {
		i := 0
		if r.Kind == ip.Forwarded {
			i, usable = rt.ifs.onLink(r.Via) // the route's interface may be deleted
			usable = usable && rt.ifs.list[i].up
		} else {
			usable = true
		}
		if usable {
			best = ip.Route{
				Prefix: p, NextHop: r.Via.WithZone(""), Iface: i, Origin: ip.Static,
				Kind: r.Kind, Cost: r.Metric,
			}
			rt.table.Insert(best)
			break
		}
	}
	if !usable {
		rt.table.Remove(p, ip.Static)
	}
	for _, rp := range rt.rips {
		rp.originate(now, best, usable)
	}
}

// reinstall calls install for every prefix with a route over interface i, which went up or down.
func (rt *Routing) reinstall(now clock.Time, i int) {
	var affected []netip.Prefix
	for p, list := range rt.statics {
		if slices.ContainsFunc(list, func(r Route) bool {
			out, ok := rt.ifs.onLink(r.Via)
			return ok && out == i
		}) {
			affected = append(affected, p)
		}
	}
	rt.installAll(now, affected)
}

func (rt *Routing) reinstallAll(now clock.Time) {
	rt.installAll(now, slices.Collect(maps.Keys(rt.statics)))
}

func (rt *Routing) installAll(now clock.Time, prefixes []netip.Prefix) {
	slices.SortFunc(prefixes, netip.Prefix.Compare)
	for _, p := range prefixes {
		rt.install(now, p)
	}
}
