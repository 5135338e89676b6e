package ip

import "net/netip"

// V4 returns the IPv4 address a.b.c.d.
func V4(a, b, c, d byte) netip.Addr { return netip.AddrFrom4([4]byte{a, b, c, d}) }

// The protocols of a node. The test protocol and course RIP have the course's numbers, not IANA's,
// and exist only in IPv4.
const (
	ProtoTest   uint8 = 0
	ProtoICMP   uint8 = 1
	ProtoIGMP   uint8 = 2
	ProtoTCP    uint8 = 6
	ProtoUDP    uint8 = 17
	ProtoICMPv6 uint8 = 58
	ProtoRIP    uint8 = 200
)

// The types of IPv6 extension headers (RFC 8200 §4) and of what follows them. Other types are
// protocols of the upper layer.
const (
	NextHopByHop    uint8 = 0
	NextRouting     uint8 = 43
	NextFragment    uint8 = 44
	NextNone        uint8 = 59 // nothing follows (RFC 8200 §4.7)
	NextDestination uint8 = 60
)
