package rip

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// SendMode is the compatibility switch of RFC 2453 §5.1: what is sent on an interface.
type SendMode uint8

// The positions of the switch.
const (
	SendRIP2       SendMode = iota // version 2, to the multicast address
	SendCompatible                 // "RIP-1 compatibility": version 2, broadcast
	SendRIP1                       // version 1, broadcast
	SendNone                       // nothing
)

// ReceiveMode is RFC 2453 §5.1's receive control switch.
type ReceiveMode uint8

// Its positions.
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

// String returns the word for the mode, as RFC 2453 §5.1 has it.
func (m SendMode) String() string { return sendNames[m] }

// String returns the word for the mode, as RFC 2453 §5.1 has it.
func (m ReceiveMode) String() string { return receiveNames[m] }

// Multicast is the address that RIP-2 routers listen to (RFC 2453 §4.5).
var Multicast = netip.AddrFrom4([4]byte{224, 0, 0, 9})

// Port is the UDP port of RIP (RFC 2453 §3.6).
const Port = 520

// Interface says how RIP is spoken on one interface.
type Interface struct {
	// Addr is our address there, with the length of the link's prefix. RIPv2 needs it.
	Addr netip.Prefix
	// Passive has nothing sent there but answers to requests from other ports than
	// RIP's; what is heard is believed.
	Passive bool
	// Cost is what the link adds to a route, 1 to 15 (RFC 2453 §3.5). Zero: 1.
	Cost int
	// MTU is the largest packet there, in bytes; a message of RIPv2 has no more entries
	// than fit it. Zero: 25 do.
	MTU int
	// Send and Receive are what is sent and understood in RIPv2.
	Send    SendMode
	Receive ReceiveMode
	// Keys authenticate what is sent, by the first of them, and what is received, by
	// any (RFC 4822 §2). None: no authentication, and none is accepted.
	Keys []Key
}

func (f *Interface) validate(d Dialect) error {
	switch {
	case f.Cost < 0 || f.Cost >= Infinity:
		return fmt.Errorf("cost %d: must be 1 to 15", f.Cost)
	case d != RIPv2, f.Passive && f.Send == SendNone && f.Receive == ReceiveNone:
		return nil // nothing is spoken there
	case !f.Addr.IsValid() || !f.Addr.Addr().Is4():
		return fmt.Errorf("address %v", f.Addr)
	case len(f.Keys) > 0 && validateKeys(f.Keys) != nil:
		return validateKeys(f.Keys)
	case f.entries() < 1:
		return fmt.Errorf("MTU %d is too small for an entry", f.MTU)
	case f.Send > SendNone || f.Receive > ReceiveNone:
		return errors.New("unknown mode")
	case len(f.Keys) > 0 && f.Send == SendRIP1:
		return errors.New("version 1 has no authentication")
	}
	return nil
}

// headersLen is what stands before the entries of a message: IP, UDP and its own header.
const headersLen = 20 + 8 + header2

// maxMessage2 is the longest message that is sent: RFC 1058 §3.1, whose 512 bytes are all that
// some routers read.
const maxMessage2 = 512

// entries is how many routes a message has room for. RFC 2453 §4.1 counts the entry of
// authentication among the 25. The digest of RFC 4822 §2.1 counts among the 512 bytes.
func (f *Interface) entries() int {
	room := maxMessage2 - header2
	if f.MTU != 0 {
		room = min(room, f.MTU-headersLen)
	}
	if len(f.Keys) > 0 {
		room -= EntrySize2 + f.Keys[0].overhead()
	}
	return room / EntrySize2
}

// port is our side of one interface.
type port struct {
	Interface
	most   int // entries a message
	up     bool
	listed bool // it has configured neighbours, and listens to them alone

	sent, sentEntries uint64
	received          uint64
}

func newPort(c Interface) *port {
	if c.Cost == 0 {
		c.Cost = 1
	}
	return &port{Interface: c, most: c.entries(), up: true}
}

// accepts reports whether messages of that version are understood there. RFC 2453
// §5.2: "for maximum security, RIP-1 messages should be ignored when authentication
// is in use".
func (p *port) accepts(version uint8) bool {
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

// isOnLink reports whether an address is another's on the interface's link. A link of
// length 32 has two ends, and the other may have any address.
func (p *port) isOnLink(a netip.Addr) bool {
	return (p.Addr.Bits() == 32 || p.Addr.Contains(a)) &&
		a != p.Addr.Addr() && a != p.network() && a != p.broadcast()
}

// network and broadcast are the two addresses of a subnet that are nobody's; on links
// of two addresses or one there are none (RFC 3021 §2.1).
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

// tellable reports whether a version 1 router that hears of p there takes it for what
// it is. RFC 2453 §3.7 and §4.3: no subnet outside its network, none whose mask is not
// the link's own, no supernet. What cannot be told is left out, not summarised.
func (p *port) tellable(prefix netip.Prefix) bool {
	if prefix.Bits() == 0 {
		return true
	}
	natural := naturalBits(prefix.Addr())
	if prefix.Bits() == natural {
		return true
	}
	home := netip.PrefixFrom(p.Addr.Addr(), natural).Masked()
	return prefix.Bits() > natural && home.Contains(prefix.Addr()) &&
		(prefix.Bits() == p.Addr.Bits() || prefix.Bits() == 32)
}

// inferred is the prefix that an address without a mask means to who hears it there:
// a subnet of the link's own network has the link's mask, any other network its
// class's, and what has bits behind either is a host (RFC 1058 §3.2).
func (p *port) inferred(a netip.Addr) netip.Prefix {
	if a == netip.IPv4Unspecified() {
		return netip.PrefixFrom(a, 0)
	}
	bits := naturalBits(a)
	if home := netip.PrefixFrom(p.Addr.Addr(), bits).Masked(); home.Contains(a) {
		bits = max(bits, p.Addr.Bits())
	}
	prefix := netip.PrefixFrom(a, bits)
	if prefix != prefix.Masked() {
		return netip.PrefixFrom(a, 32)
	}
	return prefix
}

// naturalBits is the length of the mask that an address's class gives it.
func naturalBits(a netip.Addr) int {
	switch first := a.As4()[0]; {
	case first < 128:
		return 8
	case first < 192:
		return 16
	}
	return 24
}

// ParseSendMode returns the mode of that name; the empty name is the default's.
func ParseSendMode(name string) (SendMode, bool) {
	i := slices.Index(sendNames, name)
	return SendMode(max(i, 0)), i >= 0 || name == ""
}

// ParseReceiveMode returns the mode of that name; the empty name is the default's.
func ParseReceiveMode(name string) (ReceiveMode, bool) {
	i := slices.Index(receiveNames, name)
	return ReceiveMode(max(i, 0)), i >= 0 || name == ""
}
