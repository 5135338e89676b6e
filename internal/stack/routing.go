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
	rips  []*RIP
	tcp   *tcp.Host
	in    *incoming
	knobs *Knobs

	table   ip.Table
	statics statics
	flows   flows
}

// start installs the local and static routes and starts RIP.
func (rt *Routing) start(now clock.Time, static []Route) error {
	for i := range rt.ifs.list {
		rt.insertLocal(i)
	}
	for _, r := range static {
		if err := rt.Add(now, r); err != nil {
			return fmt.Errorf("stack: route: %w", err)
		}
	}
	for _, rp := range rt.rips {
		if err := rp.start(now, nil); err != nil {
			return err
		}
	}
	return nil
}

// insertLocal adds the routes to the networks of interface i.
func (rt *Routing) insertLocal(i int) {
	for _, p := range rt.ifs.list[i].networks {
		rt.table.Insert(ip.Route{Prefix: p, Iface: i, Origin: ip.Local})
	}
}

func (rt *Routing) removeLocal(i int) {
	for _, p := range rt.ifs.list[i].networks {
		rt.table.Remove(p, ip.Local)
	}
}

// hop returns the outgoing interface and next hop of one of the node's own packets.
func (rt *Routing) hop(dst netip.Addr) (ip.Hop, bool) {
	if !dst.Is4() && dst.IsLinkLocalUnicast() {
		i, ok := rt.ifs.onLink(dst)
		return ip.Hop{Iface: i, Next: dst.WithZone(""), OnLink: true}, ok
	}
	hop, ok := rt.table.Hop(dst)
	return hop, ok && hop.Kind == ip.Forwarded
}

func (rt *Routing) path(remote netip.Addr) tcp.Path {
	if i, self := rt.ifs.self(remote); self {
		return tcp.Path{Outlet: rt.ifs.loopback(), MTU: rt.ifs.list[i].MTU, Local: remote}
	}
	hop, ok := rt.hop(remote)
	if isSpecial(remote) || ok && hop.OnLink && rt.ifs.isNetBroadcast(hop.Iface, v4Of(remote)) {
		return tcp.Path{Outlet: -1, NotHost: true} // not a host (RFC 1122 §4.2.3.10)
	}
	if !ok || hop.OnLink && !rt.ifs.present(hop.Iface, remote) {
		return tcp.Path{Outlet: -1}
	}
	out := &rt.ifs.list[hop.Iface]
	return tcp.Path{
		Outlet: hop.Iface, MTU: out.MTU, Local: rt.ifs.Source(hop.Iface, remote),
		DefaultMSS: out.DefaultMSS,
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
	rt.ifs.router = on
	rt.forget()
}

// Lookup returns the route of a packet to dst.
func (rt *Routing) Lookup(dst netip.Addr) (ip.Route, bool) { return rt.table.Lookup(dst) }

// outlet returns the default interface for packets to a multicast group or the limited broadcast:
// the interface of the address's zone, that of the route, or the first interface that is up and has
// an address of the family.
func (rt *Routing) outlet(dst netip.Addr) (int, bool) {
	if dst.Zone() != "" {
		return rt.ifs.zone(dst)
	}
	if hop, ok := rt.hop(dst); ok && rt.ifs.list[hop.Iface].up {
		return hop.Iface, true
	}
	for i := range rt.ifs.list {
		if f := &rt.ifs.list[i]; f.up && f.hasFamily(dst) {
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
		if i, _, err = rt.nextHop(dst); err != nil {
			return 0
		}
	}
	return rt.ifs.list[i].MTU
}

// LocalTo returns the source address for packets to dst, or the zero address if there is no route.
func (rt *Routing) LocalTo(dst netip.Addr) (local netip.Addr) {
	if _, self := rt.ifs.self(dst); self {
		return dst
	}
	if from, err := rt.sourceTo(dst); err == nil {
		return from
	}
	if route, ok := rt.table.Lookup(dst); ok {
		return rt.ifs.Source(route.Iface, dst)
	}
	return local
}

// checkLoopback returns an error for packets that would carry a loopback source out of the node
// (RFC 1122 §3.2.1.3 (g), RFC 4291 §2.5.3).
func (rt *Routing) checkLoopback(src, dst netip.Addr) error {
	if src.IsLoopback() && !rt.ifs.isOwn(dst) {
		return fmt.Errorf("%v from %v: %w", dst, src, ErrNoRoute)
	}
	return nil
}

// nextHop returns the interface and next hop for a packet that this node sends to another node or
// to a broadcast address.
func (rt *Routing) nextHop(dst netip.Addr) (i int, hop netip.Addr, err error) {
	if isGroup(dst) {
		if i, ok := rt.outlet(dst); ok {
			return i, dst.WithZone(""), nil
		}
	}
	h, ok := rt.hop(dst)
	switch {
	case !ok:
		return 0, hop, fmt.Errorf("%v: %w", dst, ErrNoRoute)
	case h.OnLink && !rt.ifs.present(h.Iface, dst) && !rt.ifs.broadcast(h.Iface, v4Of(dst)):
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
	if _, self := rt.ifs.self(dst); self {
		return dst, nil
	}
	i, _, err := rt.nextHop(dst)
	if err != nil {
		return netip.Addr{}, err
	}
	return rt.ifs.Source(i, dst), nil
}
