package icmp

import "encoding/binary"

const (
	ipHeaderLen  = 20
	protocolICMP = 1
	quotedData   = 8 // bytes of the offending packet behind its IP header
)

// MaxPacket is the longest IP packet that an error message makes: what every host takes
// (RFC 1812 §4.3.2.3).
const MaxPacket = 576

// Error appends an error message about the IP packet original to dst. It quotes as much
// of the packet as an IP packet of at most size bytes, and MaxPacket, holds; but never
// less than its header, options included, and the eight bytes behind it, which RFC 792
// wants so that the sender can tell what it was. RFC 1122 §3.2.2 lets a host quote
// more, and RFC 1812 §4.3.2.3 asks a router to.
//
// The caller has asked MayReport first.
func Error(dst []byte, typ, code uint8, rest [4]byte, original []byte, size int) []byte {
	quote := original
	if len(quote) > 0 {
		room := min(size, MaxPacket) - ipHeaderLen - HeaderLen
		quote = quote[:min(len(quote), max(room, headerLength(quote)+quotedData))]
	}
	return Message{Type: typ, Code: code, Rest: rest, Body: quote}.Append(dst)
}

// MayReport reports whether an error message may be sent about the IP packet
// original at all. RFC 1122 §3.2.2 forbids one about an ICMP error, about a
// packet to a broadcast or multicast address, about any fragment but the first,
// and about a source that is not one host (zero, loopback, broadcast, multicast,
// class E). A subnet's own broadcast address is known only to whoever knows the
// interface: the caller asks about that. To itself, which self says the packet was sent
// by, a node may report about loopback addresses.
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

// headerLength is the IHL in bytes, but never more than the packet has.
func headerLength(packet []byte) int {
	return min(max(ipHeaderLen, int(packet[0]&0x0f)*4), len(packet))
}

func oneHost(a [4]byte, self bool) bool {
	return a[0] != 0 && (self || a[0] != 127) && a[0] < 224
}

func manyHosts(a [4]byte) bool {
	return a[0]&0xf0 == 224 || a == [4]byte{255, 255, 255, 255}
}

// isQuery tells a query from an error. What it does not know counts as an
// error, because two hosts that answer each other's unknown messages never stop.
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

// Quote is what an error message tells about the packet that it is about.
type Quote struct {
	Src, Dst [4]byte
	Protocol uint8
	TotalLen int // bytes, as its header says
}

// Quoted reads the packet that the body of an error message quotes. Rest is at
// least the first eight bytes behind the quoted IP header. It is false for a
// quote that is cut short, or of a fragment whose data is not the beginning.
func Quoted(body []byte) (q Quote, rest []byte, ok bool) {
	if len(body) < ipHeaderLen || body[0]>>4 != 4 || laterFragment(body) {
		return Quote{}, nil, false
	}
	n := int(body[0]&0x0f) * 4
	if n < ipHeaderLen || len(body) < n+quotedData {
		return Quote{}, nil, false
	}
	q = Quote{
		Src: [4]byte(body[12:16]), Dst: [4]byte(body[16:20]), Protocol: body[9],
		TotalLen: int(binary.BigEndian.Uint16(body[2:])),
	}
	return q, body[n:], true
}

func laterFragment(packet []byte) bool {
	const fragmentOffset = 0x1fff
	return binary.BigEndian.Uint16(packet[6:])&fragmentOffset != 0
}
