package control

import "net/netip"

// Routes lists the routes in use, sorted by prefix.
type Routes struct{ Answer[[]Route] }

// Route is one route in use.
type Route struct {
	Origin  Origin       `json:"origin"`
	Prefix  netip.Prefix `json:"prefix"`
	NextHop netip.Addr   `json:"next_hop"` // next hop; zero: directly connected
	Iface   string       `json:"iface"`
	Cost    int          `json:"cost"` // hops for RIP, or the static route's metric
	Kind    RouteKind    `json:"kind,omitempty"`
}

// Origin is the source of a route, by its letter in the course's table.
type Origin string

// These are the origins of a route.
const (
	OriginLocal  Origin = "L"
	OriginRIP    Origin = "R"
	OriginStatic Origin = "S"
)

// RouteKind is what a route does with packets; empty: it forwards them.
type RouteKind string

// The kinds of routes that drop packets.
const (
	RouteBlackhole   RouteKind = "blackhole"   // drops packets without an ICMP error
	RouteUnreachable RouteKind = "unreachable" // drops packets and sends ICMP "unreachable" errors
	RouteProhibit    RouteKind = "prohibit"    // drops packets and sends ICMP "prohibited" errors
)

// AddRoute adds a static route. Of several routes to a prefix, the node uses the first one with the
// lowest metric among those whose interface is up.
type AddRoute struct {
	Answer[Nothing]
	Prefix netip.Prefix `json:"prefix"` // destination, without host bits
	Via    netip.Addr   `json:"via"`    // next hop on a link; zero for other kinds
	Metric int          `json:"metric,omitempty"`
	Kind   RouteKind    `json:"kind,omitempty"`
}

// DelRoute removes the static routes to a prefix.
type DelRoute struct {
	Answer[Nothing]
	Prefix netip.Prefix `json:"prefix"`
	Via    netip.Addr   `json:"via"` // next hop of the routes to remove; the zero Addr: all
}
