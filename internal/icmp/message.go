package icmp

import (
	"encoding/binary"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/checksum"
)

// HeaderLen is the length of the header: type, code, checksum, and four other bytes.
const HeaderLen = 8

// Type is the type of a message. The types of ICMPv6 have bit 8 set, so that a type identifies its
// family. Bit 8 is not in packets.
type Type uint16

const v6 Type = 1 << 8

// The types of ICMP messages (RFC 792, and RFC 1122 §3.2.2 for their use).
const (
	TypeEchoReply        Type = 0
	TypeUnreachable      Type = 3
	TypeSourceQuench     Type = 4 // deprecated by RFC 6633: recognized but never sent
	TypeRedirect         Type = 5
	TypeEcho             Type = 8
	TypeRouterAdvert     Type = 9
	TypeRouterSolicit    Type = 10
	TypeTimeExceeded     Type = 11
	TypeParameterProblem Type = 12
	TypeTimestamp        Type = 13
	TypeTimestampReply   Type = 14
	TypeInfoRequest      Type = 15
	TypeInfoReply        Type = 16
	TypeMaskRequest      Type = 17
	TypeMaskReply        Type = 18
)

// These are the types of ICMPv6 messages (RFC 4443 §2.1).
const (
	TypeUnreachable6      = v6 | 1
	TypeTooBig            = v6 | 2
	TypeTimeExceeded6     = v6 | 3
	TypeParameterProblem6 = v6 | 4
	TypeEcho6             = v6 | 128
	TypeEchoReply6        = v6 | 129
	TypeListenerQuery     = v6 | 130
	TypeRouterSolicit6    = v6 | 133
	TypeRouterAdvert6     = v6 | 134
	TypeNeighborSolicit   = v6 | 135
	TypeNeighborAdvert    = v6 | 136
	TypeRedirect6         = v6 | 137
	TypeListenerReport1   = v6 | 131 // MLD version 1, like the next type
	TypeListenerDone      = v6 | 132
	TypeListenerReport    = v6 | 143 // MLD version 2
)

// Is6 reports whether the type belongs to ICMPv6.
func (t Type) Is6() bool { return t&v6 != 0 }

// Number returns the number that stands for the type in packets.
func (t Type) Number() uint8 { return uint8(t) }

// EchoTypes returns the types of an echo to an address and of its reply.
func EchoTypes(dst netip.Addr) (request, reply Type) {
	if dst.Is6() {
		return TypeEcho6, TypeEchoReply6
	}
	return TypeEcho, TypeEchoReply
}

// These are the codes of TypeUnreachable (RFC 792, RFC 1812 §5.2.7.1).
const (
	CodeNet             uint8 = 0
	CodeHost            uint8 = 1
	CodeProtocol        uint8 = 2
	CodePort            uint8 = 3
	CodeFragNeeded      uint8 = 4
	CodeSourceRoute     uint8 = 5
	CodeNetProhibited   uint8 = 9
	CodeHostProhibited  uint8 = 10
	CodeAdminProhibited uint8 = 13
)

// These are the codes of TypeUnreachable6 (RFC 4443 §3.1).
const (
	CodeNoRoute      uint8 = 0
	CodeProhibited6  uint8 = 1
	CodeScope        uint8 = 2
	CodeAddress      uint8 = 3
	CodePort6        uint8 = 4
	CodeSourcePolicy uint8 = 5
	CodeRejectRoute  uint8 = 6
)

// These are the codes of TypeParameterProblem6 (RFC 4443 §3.4).
const (
	CodeHeaderField uint8 = 0
	CodeNextHeader  uint8 = 1
	CodeOption      uint8 = 2
)

// These are the codes of TypeTimeExceeded and TypeTimeExceeded6.
const (
	CodeTTL        uint8 = 0
	CodeReassembly uint8 = 1
)

// Message is one ICMP or ICMPv6 message. Rest is the second word of the header, for example an
// echo's identifier and sequence number.
type Message struct {
	Type Type
	Code uint8
	Rest [4]byte
	Body []byte // slice of the parsed packet
}

// Parse parses the payload of an IP packet with these addresses, which are of the message's family.
// It returns false if the message is too short or has a wrong checksum, which in ICMPv6 covers the
// addresses (RFC 4443 §2.3). Parse accepts unknown types.
func Parse(b []byte, src, dst netip.Addr) (Message, bool) {
	if len(b) < HeaderLen || !checksum.Verify(b, pseudo(src, dst, len(b))) {
		return Message{}, false
	}
	return parse(b, src), true
}

// parse parses a message that has a complete header. Its family is that of src.
func parse(b []byte, src netip.Addr) Message {
	return Message{Type: typeFor(b[0], src), Code: b[1], Rest: [4]byte(b[4:8]), Body: b[HeaderLen:]}
}

// typeFor returns the type that a number stands for in an address's family.
func typeFor(number uint8, a netip.Addr) Type {
	if a.Is6() {
		return v6 | Type(number)
	}
	return Type(number)
}

// Append appends the message to b. It computes the checksum for a packet with these addresses,
// whose family must be that of the type.
func (m Message) Append(b []byte, src, dst netip.Addr) []byte {
	start := len(b)
	b = append(b, m.Type.Number(), m.Code, 0, 0, m.Rest[0], m.Rest[1], m.Rest[2], m.Rest[3])
	b = append(b, m.Body...)
	n := len(b) - start
	sum := checksum.Sum(b[start:], pseudo(src, dst, n))
	binary.BigEndian.PutUint16(b[start+2:], ^checksum.Fold(sum))
	return b
}

// pseudo returns the sum of IPv6's pseudo-header for a message of n bytes (RFC 8200 §8.1); 0 for
// IPv4.
func pseudo(src, dst netip.Addr, n int) uint64 {
	if !src.Is6() {
		return 0
	}
	return checksum.PseudoHeader(src, dst, protocolICMP6, n)
}

// Echo returns the identifier and sequence number of an echo or its reply.
func (m Message) Echo() (id, seq uint16) {
	return binary.BigEndian.Uint16(m.Rest[:]), binary.BigEndian.Uint16(m.Rest[2:])
}

// EchoRest returns the Rest of an echo or its reply.
func EchoRest(id, seq uint16) (rest [4]byte) {
	binary.BigEndian.PutUint16(rest[:], id)
	binary.BigEndian.PutUint16(rest[2:], seq)
	return rest
}

// TooBig returns the next hop's MTU from a message about a packet that was too big: an ICMPv6
// packet too big (RFC 4443 §3.2), or an unreachable with CodeFragNeeded, where RFC 1191 §4 puts the
// MTU in the low half of the word. 0: the router did not report it.
func (m Message) TooBig() (mtu int, ok bool) {
	switch {
	case m.Type == TypeTooBig:
		return int(min(binary.BigEndian.Uint32(m.Rest[:]), 1<<31-1)), true
	case m.Type == TypeUnreachable && m.Code == CodeFragNeeded:
		return int(binary.BigEndian.Uint16(m.Rest[2:])), true
	}
	return 0, false
}

// Pointer returns the offset of a parameter problem in the quoted packet. ICMPv6 has a whole word
// for it (RFC 4443 §3.4), ICMP only the first byte.
func (m Message) Pointer() int {
	if m.Type == TypeParameterProblem6 {
		return int(min(binary.BigEndian.Uint32(m.Rest[:]), 1<<31-1))
	}
	return int(m.Rest[0])
}

// TimestampLen is the length of the body of a timestamp message: the originate, receive and
// transmit timestamps (RFC 792).
const TimestampLen = 12

// TimestampReply returns the answer to a timestamp message. now is the time of reception and of the
// answer, in milliseconds since midnight UT. TimestampReply returns false if the message is too
// short.
func (m Message) TimestampReply(now uint32) (Message, bool) {
	if len(m.Body) < TimestampLen {
		return Message{}, false
	}
	body := append([]byte(nil), m.Body[:TimestampLen]...)
	binary.BigEndian.PutUint32(body[4:], now)
	binary.BigEndian.PutUint32(body[8:], now)
	return Message{Type: TypeTimestampReply, Rest: m.Rest, Body: body}, true
}
