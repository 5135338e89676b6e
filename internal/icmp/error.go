package icmp

import (
	"encoding/binary"
	"net/netip"
)

const (
	ipHeaderLen  = 20
	protocolICMP = 1
	quotedData   = 8 // bytes of the original packet after its IP header
)

// MaxPacket is the longest IP packet of an error message, which every host accepts (RFC 1812
// §4.3.2.3).
const MaxPacket = 576

// Error appends an error message about the IP packet original to dst. It quotes as much of the
// packet as fits in an IP packet of at most size bytes, and at most MaxPacket; but at least its
// header with options and the next eight bytes, which RFC 792 requires so that the sender can
// identify the packet. RFC 1122 §3.2.2 lets a host quote more, and RFC 1812 §4.3.2.3 asks a router
// to.
//
// The caller has checked MayReport.
func Error(dst []byte, typ, code uint8, rest [4]byte, original []byte, size int) []byte {
	quote := original
	if len(quote) > 0 {
		room := min(size, MaxPacket) - ipHeaderLen - HeaderLen
		quote = quote[:min(len(quote), max(room, headerLength(quote)+quotedData))]
	}
	return Message{Type: typ, Code: code, Rest: rest, Body: quote}.Append(dst)
}

// MayReport reports whether an error message may be sent about the IP packet original. RFC 1122
// §3.2.2 forbids errors about ICMP errors, packets to broadcast or multicast addresses, fragments
// except the first, and sources that are not one host (zero, loopback, broadcast, multicast, class
// E). The caller checks for the broadcast addresses of subnets, which depend on the interface. self
// means that this node sent the packet: then errors about loopback addresses are allowed.
func MayReport(original []byte, self bool) bool {
	if len(original) < ipHeaderLen {
		return false
	}
	src, dst := [4]byte(original[12:16]), [4]byte(original[16:20])
	if !oneHost(src, self) || manyHosts(dst) || laterFragment(original) {
		return false
	}
	return original[9] != protocolICMP || isQuery(original[headerLength(original):])
}

// headerLength returns the IHL in bytes, but at most the packet's length.
func headerLength(packet []byte) int {
	return min(max(ipHeaderLen, int(packet[0]&0x0f)*4), len(packet))
}

func oneHost(a [4]byte, self bool) bool {
	return a[0] != 0 && (self || a[0] != 127) && a[0] < 224
}

func manyHosts(a [4]byte) bool {
	return a[0]&0xf0 == 224 || a == [4]byte{255, 255, 255, 255}
}

// isQuery distinguishes queries from errors. Unknown types count as errors, because two hosts that
// answer each other's unknown messages would never stop.
func isQuery(message []byte) bool {
	if len(message) == 0 {
		return false
	}
	switch message[0] {
	case TypeEchoReply, TypeEcho, TypeRouterAdvert, TypeRouterSolicit,
		TypeTimestamp, TypeTimestampReply, TypeInfoRequest, TypeInfoReply,
		TypeMaskRequest, TypeMaskReply:
		return true
	}
	return false
}

// Quote describes the packet quoted in an error message.
type Quote struct {
	Src, Dst netip.Addr
	Protocol uint8
	TotalLen int // from the header, in bytes
}

// Quoted parses the packet quoted in the body of an error message. rest is at least the first eight
// bytes after the quoted IP header. It returns false if the quotation is too short, or is a
// fragment other than the first.
func Quoted(body []byte) (q Quote, rest []byte, ok bool) {
	if len(body) < ipHeaderLen || body[0]>>4 != 4 || laterFragment(body) {
		return Quote{}, nil, false
	}
	n := int(body[0]&0x0f) * 4
	if n < ipHeaderLen || len(body) < n+quotedData {
		return Quote{}, nil, false
	}
	q = Quote{
		Src: netip.AddrFrom4([4]byte(body[12:])), Dst: netip.AddrFrom4([4]byte(body[16:])),
		Protocol: body[9], TotalLen: int(binary.BigEndian.Uint16(body[2:])),
	}
	return q, body[n:], true
}

func laterFragment(packet []byte) bool {
	const fragmentOffset = 0x1fff
	return binary.BigEndian.Uint16(packet[6:])&fragmentOffset != 0
}
