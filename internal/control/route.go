package control

import "net/netip"

// Routes lists the routes in use, sorted by prefix.
type Routes struct{ Answer[[]Route] }

// Route is one route in use.
type Route struct {
	Origin  Origin       `json:"origin"`
	Prefix  netip.Prefix `json:"prefix"`
	NextHop netip.Addr   `json:"next_hop"` // the zero Addr, "" in JSON: directly connected
	Iface   string       `json:"iface"`
	Cost    int          `json:"cost"` // hops for RIP; a static route's metric
	Kind    RouteKind    `json:"kind,omitempty"`
}

// Origin is the source of a route, by its letter in the course's table.
type Origin string

// The origins of a route.
const (
	OriginLocal  Origin = "L"
	OriginRIP    Origin = "R"
	OriginStatic Origin = "S"
)

// RouteKind is what a route does with packets; empty: it forwards them.
type RouteKind string

// The kinds of routes that drop packets.
const (
	RouteBlackhole   RouteKind = "blackhole"   // drops packets silently
	RouteUnreachable RouteKind = "unreachable" // drops packets and tells the sender
	RouteProhibit    RouteKind = "prohibit"    // the same, with "prohibited" as the reason
)

// AddRoute adds a static route. Of several routes to a prefix, the node uses the first one with the
// lowest metric among those whose interface is up.
type AddRoute struct {
	Answer[Nothing]
	Prefix netip.Prefix `json:"prefix"` // without host bits
	Via    netip.Addr   `json:"via"`    // on an interface's network; zero for other kinds
	Metric int          `json:"metric,omitempty"`
	Kind   RouteKind    `json:"kind,omitempty"`
}

// DelRoute removes the static routes to a prefix.
type DelRoute struct {
	Answer[Nothing]
	Prefix netip.Prefix `json:"prefix"`
	Via    netip.Addr   `json:"via"` // only the route through this next hop; the zero Addr: all
}
