package repl

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/control"
)

func routeCommand(e *env) *cobra.Command {
	return verbsOf(&cobra.Command{
		Use:   "route",
		Short: "add or delete static routes; look one up",
		Long: "Add or delete static routes, or look up the route that a packet to ADDR takes.\n" +
			"`routes` lists the routes in use.\n\n" +
			"PREFIX is like 10.1.0.0/16 or 2001:db8:1::/64, an address for one host, or\n" +
			"`default`, which is 0.0.0.0/0, or ::/0 if VADDR is an IPv6 address. A route\n" +
			"leads to a next hop on a link of this node, or nowhere: `blackhole` drops\n" +
			"packets, `unreachable` also reports to their senders that the host is\n" +
			"unreachable, and `prohibit` that the traffic is prohibited. A link-local next\n" +
			"hop has its interface as zone: fe80::2%if0. If there are several routes to a\n" +
			"prefix, the node uses the one with the smallest METRIC (default 0) whose\n" +
			"interface is up, and among equals the first. Without VADDR, del deletes all\n" +
			"routes to PREFIX.",
	}, &cobra.Command{
		Use:               "add PREFIX {via VADDR|blackhole|unreachable|prohibit} [METRIC]",
		Short:             "add a static route",
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: at(nil, words(append([]string{"via"}, dropKinds...)...)),
		RunE: func(c *cobra.Command, args []string) error {
			req, err := readRoute(args)
			if err != nil {
				return wrong(c, "%w", err)
			}
			return e.done(c, control.Order(c.Context(), e.op, req))
		},
	}, &cobra.Command{
		Use:               "del PREFIX [via VADDR]",
		Short:             "delete a static route",
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: at(nil, words("via")),
		RunE: func(c *cobra.Command, args []string) error {
			req, err := readRouteGone(args)
			if err != nil {
				return wrong(c, "%w", err)
			}
			return e.done(c, control.Order(c.Context(), e.op, req))
		},
	}, e.jsonFlag(&cobra.Command{
		Use:               "get ADDR",
		Short:             "show the route that a packet to ADDR takes",
		Args:              positional,
		ValidArgsFunction: at(e.neighborAddrs),
		RunE: func(c *cobra.Command, args []string) error {
			return routeTo(e, c, addrOf(args[0]))
		},
	}))
}

// routeTo prints the route to an address: the route in use with the longest matching prefix.
func routeTo(e *env, c *cobra.Command, addr netip.Addr) error {
	faces, err := ask(e, c, control.Interfaces{})
	if err != nil {
		return err
	}
	var links []string
	for i := range faces {
		if len(faces[i].IPv6) > 0 {
			links = append(links, faces[i].Name)
		}
	}
	if addr, err = control.Scope(addr, links); err != nil {
		return wrong(c, "%v: %w", addr, err)
	}
	for _, f := range faces {
		if f.Has(addr) {
			r := control.Route{
				Origin: control.OriginLocal, Iface: f.Name,
				Prefix: netip.PrefixFrom(addr, addr.BitLen()),
			}
			return e.answer(c, r, fmt.Sprintf("local %v dev %s", addr, f.Name))
		}
	}
	if addr.Zone() != "" && addr.IsLinkLocalUnicast() {
		r := control.Route{
			Origin: control.OriginLocal, Iface: addr.Zone(), Prefix: linkLocals,
		}
		return e.answer(c, r, fmt.Sprintf("%v dev %s", addr, r.Iface))
	}
	list, err := ask(e, c, control.Routes{})
	if err != nil {
		return err
	}
	best := -1
	for i, r := range list {
		if r.Prefix.Contains(addr) && (best < 0 || r.Prefix.Bits() > list[best].Prefix.Bits()) {
			best = i
		}
	}
	if best < 0 {
		return failed(c, fmt.Errorf("%v: no route to host", addr))
	}
	return e.answer(c, list[best], fmt.Sprintf("%v by ", addr)+
		fieldRoutes(list[best:best+1], faces))
}

// linkLocals is the prefix of link-local addresses, which every link has (RFC 4291 §2.5.6).
var linkLocals = netip.MustParsePrefix("fe80::/64")

// dropKinds are the keywords of routes that drop packets.
var dropKinds = []string{"blackhole", "unreachable", "prohibit"}

// These are errors in the arguments of a route.
var (
	errNoPrefix = errors.New("PREFIX is missing")
	errNoHop    = errors.New("expected via VADDR, blackhole, unreachable or prohibit after PREFIX")
	errNoVia    = errors.New("expected PREFIX, or PREFIX via VADDR")
)

// readRoute parses PREFIX, the next hop or the kind of the route, and a metric.
func readRoute(args []string) (req control.AddRoute, err error) {
	if len(args) == 0 {
		return req, errNoPrefix
	}
	prefix, args := args[0], args[1:]
	switch {
	case len(args) > 0 && slices.Contains(dropKinds, args[0]):
		req.Kind, args = control.RouteKind(args[0]), args[1:]
	case len(args) > 1 && args[0] == "via":
		if req.Via, err = readAddr(args[1]); err != nil {
			return req, err
		}
		args = args[2:]
	default:
		return req, errNoHop
	}
	if req.Prefix, err = readPrefix(prefix, req.Via); err != nil {
		return req, err
	}
	if len(args) > 0 {
		if req.Metric, err = strconv.Atoi(args[0]); err != nil || req.Metric < 0 {
			return req, fmt.Errorf("%q is not a metric of 0 or more", args[0])
		}
		args = args[1:]
	}
	if len(args) > 0 {
		return req, fmt.Errorf("unexpected argument: %q", args[0])
	}
	return req, nil
}

// readRouteGone parses PREFIX with an optional next hop.
func readRouteGone(args []string) (req control.DelRoute, err error) {
	if len(args) != 1 && (len(args) != 3 || args[1] != "via") {
		return req, errNoVia
	}
	if len(args) == 3 {
		if req.Via, err = readAddr(args[2]); err != nil {
			return req, err
		}
	}
	req.Prefix, err = readPrefix(args[0], req.Via)
	return req, err
}

// readPrefix parses a prefix, a host's address, or `default`. `default` has the next hop's family.
func readPrefix(word string, via netip.Addr) (netip.Prefix, error) {
	switch {
	case word == "default" && via.Is6():
		return netip.PrefixFrom(netip.IPv6Unspecified(), 0), nil
	case word == "default":
		return netip.PrefixFrom(netip.IPv4Unspecified(), 0), nil
	}
	addr, bits, sized := strings.Cut(word, "/")
	a, err := readAddr(addr)
	switch {
	case err != nil && !strings.ContainsAny(addr, ".:"):
		return netip.Prefix{}, fmt.Errorf(
			"%q is not a prefix like 10.1.0.0/16, an address or default", word)
	case err != nil:
		return netip.Prefix{}, err
	case a.Zone() != "":
		return netip.Prefix{}, fmt.Errorf("%q: a prefix has no zone", word)
	case !sized:
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(a.String() + "/" + bits)
	if err != nil {
		return p, fmt.Errorf("%q: the length of a prefix must be 0 to %d", word, a.BitLen())
	}
	return p, nil
}
