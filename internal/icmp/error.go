package icmp

import (
	"encoding/binary"
	"net/netip"
)

const (
	ipHeaderLen   = 20
	ip6HeaderLen  = 40
	protocolICMP  = 1
	protocolTCP   = 6
	protocolUDP   = 17
	protocolICMP6 = 58
	quotedData    = 8 // minimum number of quoted bytes after the packet's IP header
)

// These are the longest IP packets of error messages, which every host accepts (RFC 1812 §4.3.2.3)
// and every link carries (RFC 4443 §2.4).
const (
	MaxPacket  = 576
	MaxPacket6 = 1280
)

// Error appends to dst an error message from the address src about the IP packet original. If
// original is an IPv6 packet, Error converts an ICMP error to the ICMPv6 error with the same
// meaning. value is the MTU for a packet that is too big, or the offset for a parameter problem,
// otherwise 0. For an unrecognized next header, Error finds the offset itself.
//
// The message quotes as much of the packet as fits in an IP packet of at most size bytes, and at
// most MaxPacket or MaxPacket6. It always quotes an IPv4 header with options and the next eight
// bytes, which RFC 792 requires so that the sender can identify the packet. RFC 1122 §3.2.2 allows
// hosts to quote more, and RFC 1812 §4.3.2.3 recommends it for routers.
//
// The caller must have checked MayReport.
func Error(
	dst []byte, src netip.Addr, r ReportError, value int, original []byte, size int,
) []byte {
	if is6(original) {
		r = r.toICMPv6()
		if u, _ := parseUpper(original); r == (ReportError{TypeParameterProblem6, CodeNextHeader}) {
			value = u.field
		}
		room := max(0, min(size, MaxPacket6)-ip6HeaderLen-HeaderLen)
		m := Message{Type: r.Type, Code: r.Code, Body: original[:min(len(original), room)]}
		binary.BigEndian.PutUint32(m.Rest[:], uint32(value))
		to, _ := ends(original)
		return m.Append(dst, src, to)
	}
	m := Message{Type: r.Type, Code: r.Code, Body: original}
	if len(original) > 0 {
		room := min(size, MaxPacket) - ipHeaderLen - HeaderLen
		m.Body = original[:min(len(original), max(room, headerLength(original)+quotedData))]
	}
	switch {
	case r == errTooBig:
		binary.BigEndian.PutUint16(m.Rest[2:], uint16(min(value, 0xffff)))
	case r.Type == TypeParameterProblem:
		m.Rest[0] = byte(value)
	}
	return m.Append(dst, netip.Addr{}, netip.Addr{})
}

// is6 reports whether b begins with an IPv6 header.
func is6(b []byte) bool { return len(b) >= ip6HeaderLen && b[0]>>4 == 6 }

// ends returns the source and destination of a packet with a complete header.
func ends(b []byte) (src, dst netip.Addr) {
	if is6(b) {
		return netip.AddrFrom16([16]byte(b[8:])), netip.AddrFrom16([16]byte(b[24:]))
	}
	return netip.AddrFrom4([4]byte(b[12:])), netip.AddrFrom4([4]byte(b[16:]))
}

// MayReport reports whether the error r may be sent about the IP packet original. RFC 1122 §3.2.2
// and RFC 4443 §2.4 forbid errors about ICMP errors and redirects, packets to broadcast or
// multicast addresses, and sources that are not one host (zero, loopback, broadcast, multicast,
// class E). An IPv6 packet to a group may be reported if it is too big, or if it has an option that
// requests the report. RFC 1122 also forbids errors about fragments except the first. For IPv6,
// only later fragments of ICMPv6 messages get no error: they do not show whether the message is an
// error. The caller checks for the broadcast addresses of subnets and for anycast addresses, which
// depend on the interface. self means that this node sent the packet: then errors about loopback
// addresses are allowed.
func MayReport(original []byte, r ReportError, self bool) bool {
	u, ok := parseUpper(original)
	if !ok {
		return false
	}
	src, dst := ends(original)
	if !isHost(src, self) || isGroupOrBroadcast(dst) && !(src.Is6() && r.toGroup()) {
		return false
	}
	if u.isICMP(src) {
		return !u.later && u.at < len(original) && typeFor(original[u.at], src).isQuery()
	}
	return !u.later || src.Is6()
}

// upper describes a packet's payload, after options or extension headers.
type upper struct {
	protocol uint8
	at       int  // offset of the payload; it can be the end of the packet
	field    int  // offset of the byte with the protocol
	later    bool // the packet is a fragment other than the first
}

// The extension headers of IPv6 (RFC 8200 §4.1). A packet with maxExtensions of them is not read.
const (
	extHopByHop    = 0
	extRouting     = 43
	extFragment    = 44
	extDestination = 60
	maxExtensions  = 8
)

// parseUpper finds the payload of a packet. It returns false if the headers are longer than the
// packet or too many. An IPv4 header may be cut after 20 bytes.
func parseUpper(b []byte) (u upper, ok bool) {
	if len(b) < ipHeaderLen {
		return u, false
	}
	if b[0]>>4 != 6 {
		return upper{b[9], headerLength(b), 9, laterFragment(b)}, true
	}
	u = upper{at: ip6HeaderLen, field: 6}
	for range maxExtensions {
		if len(b) < u.at {
			return u, false
		}
		u.protocol = b[u.field]
		switch u.protocol {
		case extHopByHop, extRouting, extDestination, extFragment:
		default:
			return u, true
		}
		if len(b) < u.at+8 {
			return u, false
		}
		u.field = u.at
		u.at += 8
		if u.protocol != extFragment {
			u.at += 8 * int(b[u.field+1])
		} else if binary.BigEndian.Uint16(b[u.field+2:])>>3 != 0 {
			u.later, u.protocol = true, b[u.field]
			return u, true
		}
	}
	return u, false
}

func (u *upper) isICMP(src netip.Addr) bool {
	return u.protocol == protocolICMP && src.Is4() || u.protocol == protocolICMP6 && src.Is6()
}

// headerLength returns the IHL in bytes, but at most the packet's length.
func headerLength(packet []byte) int {
	return min(max(ipHeaderLen, int(packet[0]&0x0f)*4), len(packet))
}

func isHost(a netip.Addr, self bool) bool {
	if a.Is4() && (a.As4()[0] == 0 || a.As4()[0] >= 224) {
		return false
	}
	return !a.IsUnspecified() && !a.IsMulticast() && (self || !a.IsLoopback())
}

func isGroupOrBroadcast(a netip.Addr) bool {
	return a.IsMulticast() || a == netip.AddrFrom4([4]byte{255, 255, 255, 255})
}

// isQuery distinguishes queries from errors and redirects. Unknown types of ICMP count as errors:
// otherwise two hosts could answer each other's unknown messages without end. In types of ICMPv6, a
// bit marks errors (RFC 4443 §2.1).
func (t Type) isQuery() bool {
	switch t {
	case TypeEchoReply, TypeEcho, TypeRouterAdvert, TypeRouterSolicit,
		TypeTimestamp, TypeTimestampReply, TypeInfoRequest, TypeInfoReply,
		TypeMaskRequest, TypeMaskReply:
		return true
	}
	return t >= v6|128 && t != TypeRedirect6
}

// Quote describes the packet quoted in an error message.
type Quote struct {
	Src, Dst netip.Addr
	Protocol uint8
	TotalLen int // total length in bytes, from the header
}

// Quoted parses the packet quoted in the body of an error message. rest has at least the first
// eight bytes after the quoted IP header and its extension headers. Quoted returns false if the
// quotation is too short, or is a fragment other than the first.
func Quoted(body []byte) (q Quote, rest []byte, ok bool) {
	u, ok := parseUpper(body)
	if !ok || u.later || len(body) < u.at+quotedData {
		return Quote{}, nil, false
	}
	q.Protocol = u.protocol
	q.Src, q.Dst = ends(body)
	switch {
	case is6(body):
		q.TotalLen = ip6HeaderLen + int(binary.BigEndian.Uint16(body[4:]))
	case body[0]>>4 == 4 && body[0]&0x0f >= ipHeaderLen/4:
		q.TotalLen = int(binary.BigEndian.Uint16(body[2:]))
	default:
		return Quote{}, nil, false
	}
	return q, body[u.at:], true
}

func laterFragment(packet []byte) bool {
	const fragmentOffset = 0x1fff
	return binary.BigEndian.Uint16(packet[6:])&fragmentOffset != 0
}
