package control

import "net/netip"

// Routes asks for the routes in use, sorted by prefix; answer []Route.
type Routes struct{}

func (Routes) answers([]Route) {}

// Route is one route in use.
type Route struct {
	Origin  Origin       `json:"origin"`
	Prefix  netip.Prefix `json:"prefix"`
	NextHop netip.Addr   `json:"next_hop"` // the zero Addr, "" in json: on the link
	Iface   string       `json:"iface"`
	Cost    int          `json:"cost"` // hops for RIP; a static route's metric
	Kind    RouteKind    `json:"kind,omitempty"`
}

// Origin is where a route came from: its letter in the family's table.
type Origin string

// The origins of a route.
const (
	OriginLocal  Origin = "L"
	OriginRIP    Origin = "R"
	OriginStatic Origin = "S"
)

// RouteKind says what becomes of what a route is for; empty: it is passed on.
type RouteKind string

// The kinds of routes that lead nowhere.
const (
	RouteBlackhole   RouteKind = "blackhole"   // it is dropped
	RouteUnreachable RouteKind = "unreachable" // it is dropped, and its sender is told
	RouteProhibit    RouteKind = "prohibit"    // the same, and told that it is forbidden
)

// AddRoute adds a static route; answer Nothing. Of several to one prefix the one is used
// that has the smallest metric among those whose interface is up, and of equal ones the
// first.
type AddRoute struct {
	Prefix netip.Prefix `json:"prefix"` // without host bits
	Via    netip.Addr   `json:"via"`    // on an interface's network; of another kind none
	Metric int          `json:"metric,omitempty"`
	Kind   RouteKind    `json:"kind,omitempty"`
}

func (AddRoute) answers(Nothing) {}

// DelRoute takes the static routes to a prefix away; answer Nothing.
type DelRoute struct {
	Prefix netip.Prefix `json:"prefix"`
	Via    netip.Addr   `json:"via"` // only the one by this next hop; the zero Addr: all
}

func (DelRoute) answers(Nothing) {}
