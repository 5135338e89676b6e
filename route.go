package tidepool

import "net/netip"

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
