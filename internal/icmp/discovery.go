package icmp

import (
	"encoding/binary"
	"net/netip"
	"time"
)

// Refusal is the reason why a message of neighbor discovery or of a multicast querier is ignored.
type Refusal uint8

// These are the reasons. Accepted means that the message is not ignored.
const (
	Accepted Refusal = iota
	RefusedHopLimit
	RefusedCode
	RefusedLength
	RefusedOption
	RefusedSource
	RefusedDestination
	RefusedTarget
	RefusedType
	RefusedFlood // the node used only a part of an advertisement, because of a limit
	NumRefusals  = iota
)

// String describes the reason in a few words.
func (r Refusal) String() string {
	names := [NumRefusals]string{
		"accepted", "hop limit wrong", "code wrong", "too short", "malformed option",
		"source address wrong", "destination address wrong", "target address wrong", "unknown type",
		"too many addresses, prefixes or routers",
	}
	if int(r) >= len(names) {
		return "unknown"
	}
	return names[r]
}

// Discovery is a message of neighbor discovery (RFC 4861 §4). Its type decides which fields it has.
type Discovery struct {
	Type Type
	// Target is the address that a solicitation or advertisement of neighbors is about, or the
	// better next hop of a redirect to Destination.
	Target, Destination netip.Addr
	// These are the flags of a neighbor advertisement.
	Router, Solicited, Override bool
	Advert                      Advert // content of a router advertisement
	// SourceLink is the sender's link-layer address; nil: not given. SourceLink and Nonce (RFC 7527
	// §4.1) are slices of the parsed message.
	SourceLink, Nonce []byte
}

// Advert is the content of a router advertisement (RFC 4861 §4.2). Times are whole seconds, or
// milliseconds if marked "ms". They are zero if the router does not specify them.
type Advert struct {
	HopLimit   uint8
	Lifetime   time.Duration // time that the router is a default router
	Reachable  time.Duration // reachable time in ms
	Retransmit time.Duration // retransmission interval in ms
	MTU        int
	Prefixes   []PrefixInfo
}

// PrefixInfo is a prefix information option (RFC 4861 §4.6.2).
type PrefixInfo struct {
	Prefix             netip.Prefix
	OnLink, Autonomous bool
	Valid, Preferred   time.Duration // Infinite: the lifetime never ends
}

// Infinite is the value of an infinite lifetime. As a time it is 136 years.
const Infinite = 0xffffffff * time.Second

// These are the types of options (RFC 4861 §4.6, RFC 7527 §4.1).
const (
	optionSourceLink = 1
	optionPrefix     = 3
	optionMTU        = 5
	optionNonce      = 14
)

// These are flags of neighbor and router advertisements and of prefixes.
const (
	flagRouter, flagSolicited, flagOverride = 0x80, 0x40, 0x20
	flagOnLink, flagAutonomous              = 0x80, 0x40
)

// discoveryHopLimit shows that no router has forwarded a message (RFC 4861 §3.1).
const discoveryHopLimit = 255

var (
	allNodes   = netip.MustParseAddr("ff02::1")
	allRouters = netip.MustParseAddr("ff02::2")
)

// SolicitedNode returns the multicast group to which solicitations for an address are sent (RFC
// 4291 §2.7.1).
func SolicitedNode(a netip.Addr) netip.Addr {
	b := a.As16()
	copy(b[:], []byte{0xff, 0x02, 11: 1, 12: 0xff})
	return netip.AddrFrom16(b)
}

// ParseDiscovery parses a message that Parse accepted, from a packet with these addresses and hop
// limit. It makes the checks of RFC 4861 §6.1, §7.1 and §8.1, except those that depend on the
// receiver. It skips unknown options, and options whose length is wrong but not zero.
func ParseDiscovery(m *Message, src, dst netip.Addr, hopLimit uint8) (d Discovery, r Refusal) {
	if hopLimit != discoveryHopLimit {
		return d, RefusedHopLimit
	}
	if m.Code != 0 {
		return d, RefusedCode
	}
	var need int // length that the body must have before the options
	switch m.Type {
	case TypeRouterSolicit6:
	case TypeRouterAdvert6:
		need = 8
	case TypeNeighborSolicit, TypeNeighborAdvert:
		need = 16
	case TypeRedirect6:
		need = 32
	default:
		return d, RefusedType
	}
	b := m.Body
	if len(b) < need {
		return d, RefusedLength
	}
	d.Type = m.Type
	switch m.Type {
	case TypeRouterAdvert6:
		d.Advert = Advert{
			HopLimit:   m.Rest[0],
			Lifetime:   time.Duration(binary.BigEndian.Uint16(m.Rest[2:])) * time.Second,
			Reachable:  time.Duration(binary.BigEndian.Uint32(b)) * time.Millisecond,
			Retransmit: time.Duration(binary.BigEndian.Uint32(b[4:])) * time.Millisecond,
		}
	case TypeNeighborAdvert:
		d.Router, d.Solicited = m.Rest[0]&flagRouter != 0, m.Rest[0]&flagSolicited != 0
		d.Override = m.Rest[0]&flagOverride != 0
	}
	if need >= 16 {
		d.Target = netip.AddrFrom16([16]byte(b))
	}
	if need == 32 {
		d.Destination = netip.AddrFrom16([16]byte(b[16:]))
	}
	if !d.parseOptions(b[need:]) {
		return d, RefusedOption
	}
	return d, d.check(src, dst)
}

// parseOptions parses the options. It returns false for an option of length 0 or beyond the end.
func (d *Discovery) parseOptions(b []byte) bool {
	for len(b) > 0 {
		if len(b) < 8 || b[1] == 0 || int(b[1])*8 > len(b) {
			return false
		}
		var o []byte
		o, b = b[:int(b[1])*8], b[int(b[1])*8:]
		switch kind, units := o[0], o[1]; {
		case kind == optionSourceLink:
			d.SourceLink = o[2:]
		case kind == optionNonce:
			d.Nonce = o[2:]
		case kind == optionMTU && units == 1:
			d.Advert.MTU = int(min(binary.BigEndian.Uint32(o[4:]), 1<<31-1))
		case kind == optionPrefix && units == 4 && o[2] <= 128:
			addr := netip.AddrFrom16([16]byte(o[16:]))
			d.Advert.Prefixes = append(d.Advert.Prefixes, PrefixInfo{
				Prefix: netip.PrefixFrom(addr, int(o[2])).Masked(),
				OnLink: o[3]&flagOnLink != 0, Autonomous: o[3]&flagAutonomous != 0,
				Valid: seconds(o[4:]), Preferred: seconds(o[8:]),
			})
		}
	}
	return true
}

func seconds(b []byte) time.Duration {
	return time.Duration(binary.BigEndian.Uint32(b)) * time.Second
}

// check makes the checks that involve addresses.
func (d *Discovery) check(src, dst netip.Addr) Refusal {
	unknown := src.IsUnspecified()
	switch d.Type {
	case TypeRouterSolicit6: // RFC 4861 §6.1.1
		if unknown && d.SourceLink != nil {
			return RefusedOption
		}
	case TypeRouterAdvert6: // RFC 4861 §6.1.2
		if !src.IsLinkLocalUnicast() {
			return RefusedSource
		}
	case TypeNeighborSolicit: // RFC 4861 §7.1.1
		switch {
		case d.Target.IsMulticast() || d.Target.IsUnspecified():
			return RefusedTarget
		case unknown && dst != SolicitedNode(d.Target):
			return RefusedDestination
		case unknown && d.SourceLink != nil:
			return RefusedOption
		}
	case TypeNeighborAdvert: // RFC 4861 §7.1.2
		switch {
		case d.Target.IsMulticast() || d.Target.IsUnspecified():
			return RefusedTarget
		case dst.IsMulticast() && d.Solicited:
			return RefusedDestination
		}
	case TypeRedirect6: // RFC 4861 §8.1
		switch {
		case !src.IsLinkLocalUnicast():
			return RefusedSource
		case d.Destination.IsMulticast():
			return RefusedDestination
		case d.Target != d.Destination && !d.Target.IsLinkLocalUnicast():
			return RefusedTarget
		}
	}
	return Accepted
}

// Message returns the message. It pads SourceLink and Nonce to whole options.
func (d *Discovery) Message() Message {
	m := Message{Type: d.Type}
	switch d.Type {
	case TypeRouterAdvert6:
		a := &d.Advert
		m.Rest[0] = a.HopLimit
		binary.BigEndian.PutUint16(m.Rest[2:], uint16(a.Lifetime/time.Second))
		m.Body = binary.BigEndian.AppendUint32(nil, uint32(a.Reachable/time.Millisecond))
		m.Body = binary.BigEndian.AppendUint32(m.Body, uint32(a.Retransmit/time.Millisecond))
	case TypeRedirect6:
		m.Body = append(d.Target.AsSlice(), d.Destination.AsSlice()...)
	case TypeNeighborAdvert, TypeNeighborSolicit:
		m.Rest[0] = flag(flagRouter, d.Router) | flag(flagSolicited, d.Solicited) |
			flag(flagOverride, d.Override)
		m.Body = d.Target.AsSlice()
	}
	m.Body = appendOption(m.Body, optionSourceLink, d.SourceLink)
	m.Body = appendOption(m.Body, optionNonce, d.Nonce)
	if d.Type == TypeRouterAdvert6 {
		m.Body = d.Advert.appendOptions(m.Body)
	}
	return m
}

// appendOption appends an option with these bytes, padded to a multiple of 8. nil: no option.
func appendOption(b []byte, kind uint8, content []byte) []byte {
	if content == nil {
		return b
	}
	units := (len(content) + 2 + 7) / 8
	b = append(append(b, kind, uint8(units)), content...)
	return append(b, make([]byte, units*8-2-len(content))...)
}

func (a *Advert) appendOptions(b []byte) []byte {
	if a.MTU != 0 {
		b = append(b, optionMTU, 1, 0, 0)
		b = binary.BigEndian.AppendUint32(b, uint32(a.MTU))
	}
	for _, p := range a.Prefixes {
		b = append(b, optionPrefix, 4, uint8(p.Prefix.Bits()),
			flag(flagOnLink, p.OnLink)|flag(flagAutonomous, p.Autonomous))
		b = binary.BigEndian.AppendUint32(b, uint32(p.Valid/time.Second))
		b = binary.BigEndian.AppendUint32(b, uint32(p.Preferred/time.Second))
		b = append(append(b, 0, 0, 0, 0), p.Prefix.Addr().AsSlice()...)
	}
	return b
}

func flag(bit uint8, on bool) uint8 {
	if on {
		return bit
	}
	return 0
}
