package rip

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// SendMode is the compatibility switch of RFC 2453 §5.1. It selects the sent messages.
type SendMode uint8

// These are the positions of the switch.
const (
	SendRIP2       SendMode = iota // version 2 to the multicast address
	SendCompatible                 // version 2 in broadcasts ("RIP-1 compatibility")
	SendRIP1                       // version 1 in broadcasts
	SendNone                       // RIP sends nothing
)

// ReceiveMode is the receive control switch of RFC 2453 §5.1.
type ReceiveMode uint8

// These are the positions of the switch.
const (
	ReceiveBoth ReceiveMode = iota
	ReceiveRIP2
	ReceiveRIP1
	ReceiveNone
)

var (
	sendNames    = []string{"rip2", "rip1-compatible", "rip1", "none"}
	receiveNames = []string{"both", "rip2", "rip1", "none"}
)

// String returns the keyword of the mode, from RFC 2453 §5.1.
func (m SendMode) String() string { return sendNames[m] }

// String returns the keyword of the mode, from RFC 2453 §5.1.
func (m ReceiveMode) String() string { return receiveNames[m] }

// Multicast is the multicast group of RIP-2 routers (RFC 2453 §4.5).
var Multicast = netip.AddrFrom4([4]byte{224, 0, 0, 9})

// MulticastNG is the multicast group of RIPng routers (RFC 2080 §2.5.2).
var MulticastNG = netip.MustParseAddr("ff02::9")

// These are the UDP ports of RIP (RFC 2453 §3.6) and RIPng (RFC 2080 §2.1).
const (
	Port   = 520
	PortNG = 521
)

// Interface is the configuration of RIP on one interface.
type Interface struct {
	// Addr is the router's address with the link's prefix length. RIPv2 requires it. RIPng requires
	// the interface's link-local address.
	Addr netip.Prefix
	// Passive interfaces send no updates. They accept updates, and answer requests from ports other
	// than RIP's.
	Passive bool
	// Cost is the cost that the link adds to a route, 1 to 15 (RFC 2453 §3.5). Zero means 1.
	Cost int
	// MTU is the maximum packet size in bytes. It limits the entries of a message of RIPv2 or
	// RIPng. Zero means 25 entries in RIPv2 and 1280 bytes in RIPng.
	MTU int
	// Send and Receive select the versions that RIPv2 sends and accepts. RIPng has only one
	// version, so only SendNone and ReceiveNone have an effect.
	Send    SendMode
	Receive ReceiveMode
	// Keys authenticate messages. The first key signs sent messages, and received ones may have any
	// of the keys (RFC 4822 §2). Without keys, the interface rejects authenticated messages.
	Keys []Key
}

func (f *Interface) validate(d Dialect) error {
	switch {
	case f.Cost < 0 || f.Cost >= Infinity:
		return fmt.Errorf("cost %d: must be 1 to 15", f.Cost)
	case d == Course, f.Passive && f.Send == SendNone && f.Receive == ReceiveNone:
		return nil // the other fields have no effect
	case d == RIPng && !isLinkLocal(f.Addr.Addr()):
		return fmt.Errorf("address %v: must be a link-local IPv6 address", f.Addr)
	case d == RIPng && len(f.Keys) > 0:
		return errors.New("RIPng has no authentication (RFC 2080 §3): remove the keys")
	case d == RIPv2 && (!f.Addr.IsValid() || !f.Addr.Addr().Is4()):
		return fmt.Errorf("address %v: must be an IPv4 address", f.Addr)
	case len(f.Keys) > 0 && validateKeys(f.Keys) != nil:
		return validateKeys(f.Keys)
	case f.entries() < 2 && (d == RIPng || f.entries() < 1): // in RIPng, a next hop takes an entry
		return fmt.Errorf("MTU %d is too small for an entry", f.MTU)
	case f.Send > SendNone || f.Receive > ReceiveNone:
		return errors.New("unknown mode")
	case len(f.Keys) > 0 && f.Send == SendRIP1:
		return errors.New("version 1 has no authentication: remove the keys")
	}
	return nil
}

// headersLen is the total length of the IP, UDP and RIP headers.
const headersLen = 20 + 8 + header2

// maxMessage2 is the maximum length of a sent message (RFC 1058 §3.1). Some routers read only these
// 512 bytes.
const maxMessage2 = 512

// headersLenNG is the length of the headers in RIPng. defaultMTUNG is the MTU that every IPv6 link
// supports (RFC 8200 §5).
const (
	headersLenNG = 40 + 8 + header2
	defaultMTUNG = 1280
)

// entries returns the maximum number of routes in a message. RFC 2453 §4.1 counts the
// authentication entry as one of the 25. The digest of RFC 4822 §2.1 counts toward the 512 bytes.
// In RIPng only the MTU limits the number (RFC 2080 §2.1).
func (f *Interface) entries() int {
	if f.isIPv6() {
		return (cmp.Or(f.MTU, defaultMTUNG) - headersLenNG) / EntrySize2
	}
	room := maxMessage2 - header2
	if f.MTU != 0 {
		room = min(room, f.MTU-headersLen)
	}
	if len(f.Keys) > 0 {
		room -= EntrySize2 + f.Keys[0].overhead()
	}
	return room / EntrySize2
}

// port is the state of one interface.
type port struct {
	Interface
	most          int // maximum number of entries in a message
	up            bool
	neighborsOnly bool // the interface accepts messages only from configured neighbors

	sent, sentEntries uint64
	received          uint64
}

func newPort(c Interface) *port {
	c.Cost = cmp.Or(c.Cost, 1)
	return &port{Interface: c, most: c.entries(), up: true}
}

// accepts reports whether the port accepts messages of a version. RFC 2453 §5.2: "for maximum
// security, RIP-1 messages should be ignored when authentication is in use".
func (p *port) accepts(version uint8) bool {
	if p.isIPv6() {
		return version == versionNG && p.Receive != ReceiveNone
	}
	switch p.Receive {
	case ReceiveBoth:
		return version != 1 || len(p.Keys) == 0
	case ReceiveRIP2:
		return version != 1
	case ReceiveRIP1:
		return version == 1 && len(p.Keys) == 0
	case ReceiveNone:
	}
	return false
}

// isIPv6 reports whether the interface uses RIPng.
func (f *Interface) isIPv6() bool { return f.Addr.Addr().Is6() }

// udp returns the UDP port of the routers on the link.
func (f *Interface) udp() uint16 {
	if f.isIPv6() {
		return PortNG
	}
	return Port
}

// isLinkLocal reports whether an address is a link-local unicast address of IPv6.
func isLinkLocal(a netip.Addr) bool { return a.Is6() && a.IsLinkLocalUnicast() && a.Zone() == "" }

// isOnLink reports whether an address belongs to another node on the link. On a link with a /32
// address, the other end may have any address. RIPng identifies nodes by their link-local
// addresses.
func (p *port) isOnLink(a netip.Addr) bool {
	if p.isIPv6() {
		return isLinkLocal(a) && a != p.Addr.Addr()
	}
	return (p.Addr.Bits() == 32 || p.Addr.Contains(a)) &&
		a != p.Addr.Addr() && a != p.network() && a != p.broadcast()
}

// network and broadcast return the two addresses of a subnet that no node can have. Links with a
// /31 or /32 prefix have no such addresses (RFC 3021 §2.1).
func (p *port) network() netip.Addr {
	if p.Addr.Bits() >= 31 {
		return netip.Addr{}
	}
	return p.Addr.Masked().Addr()
}

func (p *port) broadcast() netip.Addr {
	if p.Addr.Bits() >= 31 {
		return netip.AddrFrom4([4]byte{255, 255, 255, 255})
	}
	a := p.Addr.Addr().As4()
	return addrOf(word(a) | ^uint32(0)>>p.Addr.Bits())
}

// validForVersion1 reports whether version 1 routers on the link interpret a prefix correctly. RFC
// 2453 §3.7 and §4.3: they misread subnets of other networks, subnets with another mask than the
// link's, and supernets. The Speaker omits such prefixes and does not summarize them.
func (p *port) validForVersion1(prefix netip.Prefix) bool {
	if prefix.Bits() == 0 {
		return true
	}
	natural := classBits(prefix.Addr())
	if prefix.Bits() == natural {
		return true
	}
	network := netip.PrefixFrom(p.Addr.Addr(), natural).Masked()
	return prefix.Bits() > natural && network.Contains(prefix.Addr()) &&
		(prefix.Bits() == p.Addr.Bits() || prefix.Bits() == 32)
}

// inferPrefix returns the prefix that a router on the link infers from an address without a mask. A
// subnet of the link's own network has the link's mask. Other networks have the mask of their
// class. An address with bits beyond that mask is a host (RFC 1058 §3.2).
func (p *port) inferPrefix(a netip.Addr) netip.Prefix {
	if a == netip.IPv4Unspecified() {
		return netip.PrefixFrom(a, 0)
	}
	bits := classBits(a)
	if network := netip.PrefixFrom(p.Addr.Addr(), bits).Masked(); network.Contains(a) {
		bits = max(bits, p.Addr.Bits())
	}
	prefix := netip.PrefixFrom(a, bits)
	if prefix != prefix.Masked() {
		return netip.PrefixFrom(a, 32)
	}
	return prefix
}

// classBits returns the prefix length of an address's class.
func classBits(a netip.Addr) int {
	switch first := a.As4()[0]; {
	case first < 128:
		return 8
	case first < 192:
		return 16
	}
	return 24
}

// ParseSendMode returns the mode with this name. The empty name is the default mode.
func ParseSendMode(name string) (SendMode, bool) {
	i := slices.Index(sendNames, name)
	return SendMode(max(i, 0)), i >= 0 || name == ""
}

// ParseReceiveMode returns the mode with this name. The empty name is the default mode.
func ParseReceiveMode(name string) (ReceiveMode, bool) {
	i := slices.Index(receiveNames, name)
	return ReceiveMode(max(i, 0)), i >= 0 || name == ""
}
