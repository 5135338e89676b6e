package tidepool

import (
	"context"
	"net/netip"
	"syscall"

	"github.com/tidepool-net/tidepool/internal/control"
)

// Route is the way to a network. Of several to one prefix the one is used that has the
// smallest metric among those whose interface is up, and of equal ones the first: packets
// are not spread over them.
type Route struct {
	// Prefix is the network; 0.0.0.0/0 is all that no other route leads to.
	Prefix netip.Prefix
	// Via is the neighbor's address.
	Via netip.Addr
	// Metric prefers one route to another, the smaller the better; 0 is the best.
	Metric int
	// Kind is empty for a route by a neighbor. A route that is "blackhole" has packets
	// dropped, one that is "unreachable" has their senders told as well, and one that is
	// "prohibit" told that it is forbidden; none of them has a Via.
	Kind string
}

// AddRoute adds a static route while the node runs. A prefix with host bits, or a
// neighbor that is on no interface's network, is EINVAL or ENETUNREACH of package
// syscall; a route to that prefix by that neighbor that is there already is EEXIST.
func (n *Node) AddRoute(r Route) error {
	_, err := n.inner().Do(context.Background(), control.AddRoute{
		Prefix: r.Prefix, Via: r.Via, Metric: r.Metric, Kind: control.RouteKind(r.Kind),
	})
	return err
}

// DelRoute takes the static route to a prefix by a neighbor away, or all to the prefix
// if via is the zero Addr. One that is not there is ESRCH of package syscall.
func (n *Node) DelRoute(p netip.Prefix, via netip.Addr) error {
	_, err := n.inner().Do(context.Background(), control.DelRoute{Prefix: p, Via: via})
	return err
}

// RouteInfo is a route in use.
type RouteInfo struct {
	Route
	// Interface is the name of the one that packets leave by; Via is the zero Addr if
	// the network is on its link.
	Interface string
	// Origin is "local" for an interface's network, "static" or "rip", from near to
	// far: of routes to one prefix the one of the nearest origin is used.
	Origin string
}

// Routes lists the routes in use, sorted by prefix. A RIP route's metric is its hops.
func (n *Node) Routes() ([]RouteInfo, error) {
	if n.node == nil {
		return nil, syscall.EINVAL
	}
	answer, err := control.Ask(context.Background(), n.node.Operator(), control.Routes{})
	if err != nil {
		return nil, err
	}
	list := make([]RouteInfo, len(answer))
	for i, r := range answer {
		list[i] = RouteInfo{
			Route: Route{
				Prefix: r.Prefix, Via: r.NextHop, Metric: r.Cost, Kind: string(r.Kind),
			},
			Interface: r.Iface, Origin: "rip",
		}
		switch r.Origin {
		case control.OriginLocal:
			list[i].Origin = "local"
		case control.OriginStatic:
			list[i].Origin = "static"
		case control.OriginRIP:
		}
	}
	return list, nil
}
