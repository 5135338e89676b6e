// Package lnx reads the .lnx files that describe a node and its links. It reads the current grammar
// and the three older ones of the course, and returns a Config for a file in any of them. It
// reports all errors of a file at once, with their positions.
//
// Parse is the entry point: lexer.go splits the text into words, detect.go finds the grammar,
// grammar.go and old.go parse it, and check.go checks the result as a whole. A directive is
// declared once, with its form, its reader and its writer. setting.go makes the directives with one
// value. CheckNetwork compares the files of one network, and Config.Format writes a Config back as
// text.
package lnx

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Grammar is one of the grammars of .lnx files.
type Grammar uint8

// These are the grammars, newest first.
const (
	// GrammarNew is the grammar of directives, 2022 and later.
	GrammarNew Grammar = iota
	// Grammar2018 is "HOST PORT", then links: 2018 to 2022.
	Grammar2018
	// Grammar2013 is "HOST:PORT", then links: 2013 to 2017.
	Grammar2013
	// Grammar2012 has one link on each line, each with its own socket: up to 2012.
	Grammar2012
)

// String returns the years in which the grammar was in use.
func (g Grammar) String() string {
	switch g {
	case GrammarNew:
		return "new"
	case Grammar2018:
		return "2018-2022"
	case Grammar2013:
		return "2013-2017"
	case Grammar2012:
		return "to 2012"
	}
	return "grammar " + strconv.Itoa(int(g))
}

// Routing says where a node's routes come from.
type Routing uint8

// These are the kinds of routing.
const (
	// RoutingStatic is a host with the routes of its file. It is the default.
	RoutingStatic Routing = iota
	// RoutingNone is a host that reaches only its own links.
	RoutingNone
	// RoutingRIP is a router that runs the course's RIP, IP protocol 200.
	RoutingRIP
	// RoutingRIP2 is a router that runs RIPv2, UDP port 520, and RIPng on its IPv6 addresses.
	RoutingRIP2
	// RoutingRIPng is a router that runs only RIPng, UDP port 521.
	RoutingRIPng
	// RoutingBoth is a router that runs both the course's RIP and RIPng.
	RoutingBoth
)

// String returns the argument of the routing directive.
func (r Routing) String() string {
	switch r {
	case RoutingStatic:
		return "static"
	case RoutingNone:
		return "none"
	case RoutingRIP:
		return "rip"
	case RoutingRIP2:
		return "rip2"
	case RoutingRIPng:
		return "ripng"
	case RoutingBoth:
		return "rip ripng"
	}
	return "routing " + strconv.Itoa(int(r))
}

// Dialect returns the dialect that the node uses with neighbors of a's address family: RoutingRIP,
// RoutingRIP2 or RoutingRIPng. It returns RoutingNone if the node uses none.
func (r Routing) Dialect(a netip.Addr) Routing {
	switch {
	case r < RoutingRIP || a.Is6() && r == RoutingRIP || !a.Is6() && r == RoutingRIPng:
		return RoutingNone
	case a.Is6():
		return RoutingRIPng
	case r == RoutingBoth:
		return RoutingRIP
	}
	return r
}

// Config is the content of one file, which describes one node. Parse fills in all defaults, unless
// the comment of a field says otherwise.
type Config struct {
	// Name is the name of the file without folder and ".lnx".
	Name    string
	Grammar Grammar
	// Interfaces are the node's interfaces, in file order.
	Interfaces []Interface
	// Neighbors are the nodes at the other ends of the links, in file order.
	Neighbors []Neighbor
	// Routing says how the node learns its routes.
	Routing Routing
	// Routes are the static routes, in file order.
	Routes []Route
	RIP    RIP
	TCP    TCP
	ICMP   ICMP
	// IP configures how the node treats the packets that it receives.
	IP IP
	// Impair are the impair lines, in file order.
	Impair []ImpairLine
	// Forwards are the port forwards, in file order.
	Forwards []Forward
	// DNS configures the node's DNS server and its hosts.
	DNS DNS
	// NATs are the interfaces with network address translation, in file order.
	NATs []NAT
	// Forwarding is set on routers: nodes that run RIP, all nodes of the old grammars, nodes that
	// have a TUN device and another link, and nodes with a NAT.
	Forwarding bool
	// SharedSocket is set if one UDP socket serves all interfaces. All interfaces then have the
	// same UDP address, and the UDP source of a packet determines its link.
	SharedSocket bool
	// Notes are remarks on a valid file.
	Notes Errors

	file  string   // name passed to Parse, for the errors of CheckNetwork
	lines []string // the source lines, for the errors of CheckNetwork
}

// Interface is one virtual network interface.
type Interface struct {
	// Name is the interface's name. In the old grammars the names are if0, if1, ….
	Name string
	// Addr is the IPv4 address with the prefix length of its subnet. A length of 32 makes a
	// point-to-point link, whose neighbor may have any address. If Addr is the zero Prefix, the
	// interface has only IPv6.
	Addr netip.Prefix
	// IPv6 are the IPv6 addresses, with the prefix lengths of their subnets.
	IPv6 []netip.Prefix
	// UDP is the address that the interface binds. It is zero if Tun is set.
	UDP HostPort
	// MTU is the maximum size of an IP packet. Zero means 1400.
	MTU int
	// Tun is the kernel device that replaces the UDP link; nil: a UDP link.
	Tun *Tun
	// Impair are the impairments of the link in both directions.
	Impair Impairments
	RIP    RIPLink
	// Pos is where the file names the interface.
	Pos Pos

	addrAt, udpAt Pos
}

// Addrs returns all addresses, IPv4 first.
func (i *Interface) Addrs() []netip.Prefix {
	if !i.Addr.IsValid() {
		return i.IPv6
	}
	return append([]netip.Prefix{i.Addr}, i.IPv6...)
}

// Has reports whether a is one of the interface's addresses.
func (i *Interface) Has(a netip.Addr) bool {
	return slices.ContainsFunc(i.Addrs(), func(p netip.Prefix) bool { return p.Addr() == a })
}

// on returns the interface's address whose subnet contains a.
func (i *Interface) on(a netip.Addr) (netip.Prefix, bool) {
	for _, p := range i.Addrs() {
		if p.Contains(a.WithZone("")) {
			return p, true
		}
	}
	return netip.Prefix{}, false
}

// Tun is a TUN device, which connects the node to the kernel.
type Tun struct {
	// Device is the device's name.
	Device string
	// Kernel are the addresses for the kernel's end, at most one of each family. If there are none,
	// the node does not change the kernel's end.
	Kernel []netip.Addr
	// Routes are the prefixes that the kernel routes through the node.
	Routes []netip.Prefix
	// Auto means that routers on the device give the node IPv6 addresses and a default route.
	// Advertise means that the node announces the interface's IPv6 networks to hosts on the device.
	Auto, Advertise bool
}

// End returns the words after the device in the file.
func (t *Tun) End() (text string) {
	if t == nil {
		return ""
	}
	for n, a := range t.Kernel {
		text += []string{" kernel ", " "}[min(n, 1)] + a.String()
	}
	for n, p := range t.Routes {
		text += []string{" routes ", " "}[min(n, 1)] + p.String()
	}
	return text
}

// Impairments says how a link impairs packets. The zero value impairs none.
type Impairments struct {
	// Loss is the share of packets dropped.
	Loss Share
	// Duplicate is the share of packets delivered twice.
	Duplicate Share
	// Reorder is the share of packets that overtake those before them.
	Reorder Share
	// Corrupt is the share of packets in which one bit is flipped.
	Corrupt Share
	// Delay is the delay of every packet.
	Delay time.Duration
	// Jitter is the maximum difference from Delay in either direction. It is at most Delay.
	Jitter time.Duration
	// RateBitsPerSec is the rate of the link; 0: unlimited.
	RateBitsPerSec int64
}

// Neighbor is a node at the other end of a link.
type Neighbor struct {
	// Addr is the neighbor's virtual address.
	Addr netip.Addr
	// UDP is the UDP address that the node sends the neighbor's packets to.
	UDP HostPort
	// Iface is the name of the local interface on the link.
	Iface string
	// Pos is where the file names the address.
	Pos Pos

	udpAt, ifaceAt Pos
}

// Pos is a position in a file. Lines and columns count from 1. A column is one character; a tab
// counts as one. The zero Pos stands for the whole file.
type Pos struct{ Line, Col int }

// HostPort is a UDP address. Its host may be a name. The zero value means no address.
type HostPort struct {
	// Host is an address or a host name.
	Host string
	// Port is never 0 in a parsed file.
	Port uint16
}

// String returns HOST:PORT, or [HOST]:PORT for an IPv6 address.
func (h HostPort) String() string {
	host := h.Host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host + ":" + strconv.Itoa(int(h.Port))
}

// AddrPort returns the address if the host is an IP address or localhost, which is 127.0.0.1. All
// other names must be resolved.
func (h HostPort) AddrPort() (netip.AddrPort, bool) {
	host := h.Host
	if host == "localhost" {
		host = "127.0.0.1"
	}
	addr, err := netip.ParseAddr(host)
	return netip.AddrPortFrom(addr, h.Port), err == nil
}

// Key returns the same text for all spellings of an address.
func (h HostPort) Key() string {
	if addr, ok := h.AddrPort(); ok {
		return addr.String()
	}
	return h.String()
}

// Interface returns the interface of that name.
func (c *Config) Interface(name string) (*Interface, bool) {
	for i := range c.Interfaces {
		if c.Interfaces[i].Name == name {
			return &c.Interfaces[i], true
		}
	}
	return nil, false
}
