package tidepool

import "net/netip"

// Route is a route to a network. Of several routes to a prefix, packets use the one with the
// smallest metric whose interface is up, and of equal ones the first. There is no load balancing.
type Route struct {
	// Prefix is the destination network. 0.0.0.0/0 and ::/0 are the default routes.
	Prefix netip.Prefix
	// Via is the next hop's address, of Prefix's family. The zone of a link-local address is its
	// interface.
	Via netip.Addr
	// Metric is the route's cost. The smallest is preferred; 0 is the best.
	Metric int
	// Kind is empty for a route to a next hop. "blackhole" drops packets, "unreachable" drops them
	// and sends an ICMP host unreachable, "prohibit" drops them and sends an ICMP communication
	// administratively prohibited. Routes with a Kind have no Via.
	Kind string
}

// RouteInfo is a route in use.
type RouteInfo struct {
	Route
	// Interface is the name of the outgoing interface. Via is the zero Addr if the network is on
	// its link.
	Interface string
	// Origin is "local" for an interface's network, "static" or "rip". Of routes to one prefix, the
	// node prefers local routes to static ones, and static ones to RIP's.
	Origin string
}
