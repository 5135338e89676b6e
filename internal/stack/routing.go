package stack

import (
	"fmt"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// Routing is the routing table with its static routes, and the cache of decisions about packets.
type Routing struct {
	ifs   *Interfaces
	rip   *RIP
	tcp   *tcp.Host
	in    *incoming
	knobs *Knobs

	table    ip.Table
	statics  statics
	flows    flows
	forwards bool // the node is a router
}

// start installs the local and static routes and starts RIP.
func (rt *Routing) start(now clock.Time, static []Route) error {
	for i := range rt.ifs.list {
		rt.table.Insert(rt.localRoute(i))
	}
	for _, r := range static {
		if err := rt.Add(now, r); err != nil {
			return fmt.Errorf("stack: route: %w", err)
		}
	}
	return rt.rip.start(now, nil)
}

func (rt *Routing) localRoute(i int) ip.Route {
	return ip.Route{Prefix: rt.ifs.list[i].Addr.Masked(), Iface: i, Origin: ip.Local}
}

// hop returns the outgoing interface and next hop of a packet of the node's own.
func (rt *Routing) hop(dst netip.Addr) (ip.Hop, bool) {
	hop, ok := rt.table.Hop(dst)
	return hop, ok && hop.Kind == ip.Forwarded
}

// path returns the path to remote for TCP.
func (rt *Routing) path(remote netip.Addr) tcp.Path {
	to := v4Of(remote)
	if i, self := rt.ifs.self(to); self {
		return tcp.Path{Outlet: rt.ifs.loopback(), MTU: rt.ifs.list[i].MTU, Local: remote}
	}
	hop, ok := rt.hop(remote)
	if to.isSpecial() || ok && hop.OnLink && rt.ifs.all(hop.Iface, to) {
		return tcp.Path{Outlet: -1, NotHost: true} // RFC 1122 §4.2.3.10
	}
	if !ok || hop.OnLink && !rt.ifs.present(hop.Iface, remote) {
		return tcp.Path{Outlet: -1}
	}
	out := &rt.ifs.list[hop.Iface]
	return tcp.Path{
		Outlet: hop.Iface, MTU: out.MTU, Local: out.addr, DefaultMSS: out.DefaultMSS,
	}
}

// forget empties the cache of decisions.
func (rt *Routing) forget() { rt.flows = flows{} }

// changed empties the cache and makes connections look up their paths again.
func (rt *Routing) changed() {
	rt.forget()
	rt.tcp.Rerouted()
}

// SetForwarding makes the node a router, which forwards packets, or a host.
func (rt *Routing) SetForwarding(on bool) {
	rt.forwards = on
	rt.forget()
}

// Lookup returns the route of a packet to dst.
func (rt *Routing) Lookup(dst netip.Addr) (ip.Route, bool) { return rt.table.Lookup(dst) }

// outlet returns the default interface for packets to a multicast group or the limited broadcast:
// that of the route, or the first that is up.
func (rt *Routing) outlet(dst netip.Addr) (int, bool) {
	if hop, ok := rt.hop(dst); ok && rt.ifs.list[hop.Iface].up {
		return hop.Iface, true
	}
	for i := range rt.ifs.list {
		if rt.ifs.list[i].up {
			return i, true
		}
	}
	return 0, false
}

// MTUTo returns the MTU of the first link on the path to dst, or 0 if there is no route.
func (rt *Routing) MTUTo(dst netip.Addr) int {
	i, self := rt.ifs.Owns(dst)
	if !self {
		var err error
		if i, _, err = rt.way(dst); err != nil {
			return 0
		}
	}
	return rt.ifs.list[i].MTU
}

// LocalTo returns the source address for packets to dst, or the zero address if there is no route.
func (rt *Routing) LocalTo(dst netip.Addr) (local netip.Addr) {
	if _, self := rt.ifs.self(v4Of(dst)); self {
		return dst
	}
	if from, err := rt.sourceTo(dst); err == nil {
		return from
	}
	if route, ok := rt.table.Lookup(dst); ok {
		return rt.ifs.list[route.Iface].addr
	}
	return local
}

// inside returns an error for packets that would carry a source in 127/8 out of the node (RFC 1122
// §3.2.1.3 (g)).
func (rt *Routing) inside(src, dst netip.Addr) error {
	if _, self := rt.ifs.self(v4Of(dst)); v4Of(src).isLoopback() && !self {
		return fmt.Errorf("%v from %v: %w", dst, src, ErrNoRoute)
	}
	return nil
}

// way returns the interface and next hop for a packet of the node's own to another node or to a
// broadcast address.
func (rt *Routing) way(dst netip.Addr) (i int, hop netip.Addr, err error) {
	to := v4Of(dst)
	if to.isGroup() || to == limited {
		if i, ok := rt.outlet(dst); ok {
			return i, dst, nil
		}
	}
	h, ok := rt.hop(dst)
	switch {
	case !ok:
		return 0, hop, fmt.Errorf("%v: %w", dst, ErrNoRoute)
	case h.OnLink && !rt.ifs.present(h.Iface, dst) && !rt.ifs.broadcast(h.Iface, to):
		return h.Iface, hop, fmt.Errorf("%v is not on %s's link: %w", dst,
			rt.ifs.list[h.Iface].Name, ErrNoNeighbor)
	}
	return h.Iface, h.Next, nil
}

// Infos returns the routes in use, sorted by prefix.
func (rt *Routing) Infos() []control.Route {
	list := []control.Route{}
	for r := range rt.table.All() {
		info := control.Route{
			Origin: control.OriginLocal, Prefix: r.Prefix, NextHop: r.NextHop, Cost: r.Cost,
			Iface: rt.ifs.list[r.Iface].Name,
		}
		switch r.Origin {
		case ip.Local:
		case ip.Static:
			info.Origin = control.OriginStatic
		case ip.RIP:
			info.Origin = control.OriginRIP
		}
		if r.Kind != ip.Forwarded {
			info.Iface, info.Kind = "", control.RouteKind(r.Kind.String())
		}
		list = append(list, info)
	}
	return list
}

// sourceTo returns the source address for packets to dst.
func (rt *Routing) sourceTo(dst netip.Addr) (netip.Addr, error) {
	if _, self := rt.ifs.self(v4Of(dst)); self {
		return dst, nil
	}
	i, _, err := rt.way(dst)
	if err != nil {
		return netip.Addr{}, err
	}
	return rt.ifs.list[i].addr, nil
}
