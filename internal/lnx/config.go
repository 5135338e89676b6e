// Package lnx reads the .lnx files that describe a node and its links: the
// current grammar and the three older ones of the same family, all into one
// Config. It reports every mistake of a file at once, each with its position.
//
// Parse is the entry point: lexer.go cuts the text into words, detect.go finds
// the grammar, grammar.go and old.go read it, and check.go checks the result as
// a whole. A directive is declared once, with its form, its reader and its
// writer: setting.go has the directives of one word. CheckNetwork compares the
// files of one network, and Config.Format writes a Config back as text.
package lnx

import (
	"net/netip"
	"strconv"
	"time"
)

// Grammar says which of the family's grammars a file was written in.
type Grammar uint8

// The grammars, newest first.
const (
	// GrammarNew is the grammar of directives, 2022 and later.
	GrammarNew Grammar = iota
	// Grammar2018 is "HOST PORT", then links: 2018 to 2022.
	Grammar2018
	// Grammar2013 is "HOST:PORT", then links: 2013 to 2017.
	Grammar2013
	// Grammar2012 is a link a line, each with its own socket: to 2012.
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

// The kinds of routing that a file can ask for.
const (
	// RoutingStatic is a host with the routes of its file; the default.
	RoutingStatic Routing = iota
	// RoutingNone is a host that knows its own links only.
	RoutingNone
	// RoutingRIP is a router that speaks the course's RIP, IP protocol 200.
	RoutingRIP
	// RoutingRIP2 is a router that speaks RIPv2, UDP port 520.
	RoutingRIP2
)

// String returns the word that the routing directive takes.
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
	}
	return "routing " + strconv.Itoa(int(r))
}

// Config is what one file says about one node. Parse fills every default in,
// so its reader needs to know none but the ones named here.
type Config struct {
	// Name is the file's name without folder and ".lnx".
	Name string
	// Grammar is the grammar that the file was written in.
	Grammar Grammar
	// Interfaces are the node's links, in file order.
	Interfaces []Interface
	// Neighbors are the nodes at the other ends, in file order.
	Neighbors []Neighbor
	// Routing says where routes come from.
	Routing Routing
	// Routes are the static routes, in file order.
	Routes []Route
	// RIP is how RIP is spoken, if it is.
	RIP RIP
	// TCP is how TCP behaves.
	TCP TCP
	// ICMP is what ICMP answers.
	ICMP ICMP
	// IP is which packets IP takes.
	IP IP
	// Impair are the impair lines, in file order.
	Impair []ImpairLine
	// Forwards are the ways to the machine's own network, in file order.
	Forwards []Forward
	// Forwarding is set on routers: RIP speakers, all nodes of the old grammars, and
	// those with a TUN device beside another link.
	Forwarding bool
	// SharedSocket is set when one UDP socket serves all interfaces, which then
	// name the same UDP address. A packet's UDP source then determines its link.
	SharedSocket bool
	// Notes are remarks on a file that is valid all the same.
	Notes Errors

	file  string   // as given to Parse, for the errors of CheckNetwork
	lines []string // the source, for the same
}

// Interface is one virtual network card.
type Interface struct {
	// Name is the interface's name; the old grammars name none, so if0, if1, ….
	Name string
	// Addr is the virtual address with the length of its subnet's prefix. A
	// length of 32 makes a point-to-point link, whose neighbour may have any
	// address.
	Addr netip.Prefix
	// UDP is the address that the interface binds; zero when Tun is set.
	UDP HostPort
	// MTU is the largest IP packet; 0: 1400.
	MTU int
	// Tun is the kernel device behind the interface; nil: a UDP link.
	Tun *Tun
	// Impair is what the link does to packets; zero: nothing.
	Impair Impairments
	// RIP is how RIP is spoken there.
	RIP RIPLink
	// Pos is where the file names the interface.
	Pos Pos

	addrAt, udpAt Pos
}

// Tun is a TUN device that leads to the kernel.
type Tun struct {
	// Device is the kernel's name for it.
	Device string
	// Kernel is the address to give to the kernel's end. An invalid one leaves that end as it is.
	Kernel netip.Addr
	// Routes are the prefixes that the kernel is to route through the node.
	Routes []netip.Prefix
}

// Impairments is what a link does to the packets that cross it. The zero value
// does nothing.
type Impairments struct {
	// Loss is the share of packets dropped.
	Loss Share
	// Duplicate is the share of packets delivered twice.
	Duplicate Share
	// Reorder is the share of packets that overtake those before them.
	Reorder Share
	// Corrupt is the share of packets in which a bit is turned.
	Corrupt Share
	// Delay is how long every packet takes.
	Delay time.Duration
	// Jitter is how much the delay varies, up and down; at most Delay.
	Jitter time.Duration
	// RateBitsPerSec is the link's speed; 0: no limit.
	RateBitsPerSec int64
}

// Neighbor is a node at the other end of a link.
type Neighbor struct {
	// Addr is its virtual address.
	Addr netip.Addr
	// UDP is where packets for it are sent.
	UDP HostPort
	// Iface is the name of our interface to it.
	Iface string
	// Pos is where the file names the address.
	Pos Pos

	udpAt, ifaceAt Pos
}

// Pos is a place in a file. Lines and columns count from 1; a column is a
// character, a tab too. The zero Pos is the file as a whole.
type Pos struct{ Line, Col int }

// HostPort is a UDP address whose host may be a name. The zero value means no address.
type HostPort struct {
	// Host is an IPv4 address or a host name.
	Host string
	// Port is never 0 in a parsed file.
	Port uint16
}

// String returns HOST:PORT.
func (h HostPort) String() string {
	return h.Host + ":" + strconv.Itoa(int(h.Port))
}

// AddrPort returns the address if the host is one, or is localhost, which the
// family's files take for 127.0.0.1; other names have to be resolved.
func (h HostPort) AddrPort() (netip.AddrPort, bool) {
	host := h.Host
	if host == "localhost" {
		host = "127.0.0.1"
	}
	addr, err := netip.ParseAddr(host)
	return netip.AddrPortFrom(addr, h.Port), err == nil
}

// key returns what two spellings of one address have in common.
func (h HostPort) key() string {
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

// Network returns the subnet that the interface is on.
func (i *Interface) Network() netip.Prefix { return i.Addr.Masked() }
