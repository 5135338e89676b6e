package icmp

import (
	"encoding/binary"

	"github.com/tidepool-net/tidepool/internal/checksum"
)

// HeaderLen is the length of the header: type, code, checksum, rest.
const HeaderLen = 8

// The types of messages (RFC 792, and RFC 1122 §3.2.2 for their use).
const (
	TypeEchoReply        uint8 = 0
	TypeUnreachable      uint8 = 3
	TypeSourceQuench     uint8 = 4 // deprecated by RFC 6633; recognized, never sent
	TypeRedirect         uint8 = 5
	TypeEcho             uint8 = 8
	TypeRouterAdvert     uint8 = 9
	TypeRouterSolicit    uint8 = 10
	TypeTimeExceeded     uint8 = 11
	TypeParameterProblem uint8 = 12
	TypeTimestamp        uint8 = 13
	TypeTimestampReply   uint8 = 14
	TypeInfoRequest      uint8 = 15
	TypeInfoReply        uint8 = 16
	TypeMaskRequest      uint8 = 17
	TypeMaskReply        uint8 = 18
)

// The codes of TypeUnreachable (RFC 792, RFC 1812 §5.2.7.1).
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

// The codes of TypeTimeExceeded.
const (
	CodeTTL        uint8 = 0
	CodeReassembly uint8 = 1
)

// Message is one ICMP message. Rest is the second word of the header: an echo's identifier and
// sequence number, or MTURest.
type Message struct {
	Type, Code uint8
	Rest       [4]byte
	Body       []byte // part of the parsed packet
}

// Parse parses an IP payload. It returns false if it is too short or has a wrong checksum. Unknown
// types are parsed.
func Parse(b []byte) (Message, bool) {
	if len(b) < HeaderLen || !checksum.Verify(b, 0) {
		return Message{}, false
	}
	return Message{Type: b[0], Code: b[1], Rest: [4]byte(b[4:8]), Body: b[HeaderLen:]}, true
}

// Append appends the message with its checksum to b.
func (m Message) Append(b []byte) []byte {
	start := len(b)
	b = append(b, m.Type, m.Code, 0, 0, m.Rest[0], m.Rest[1], m.Rest[2], m.Rest[3])
	b = append(b, m.Body...)
	binary.BigEndian.PutUint16(b[start+2:], checksum.Checksum(b[start:]))
	return b
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

// MTURest returns the Rest of an unreachable with CodeFragNeeded: RFC 1191 §4 puts the next hop's
// MTU in the low half of the word.
func MTURest(mtu int) (rest [4]byte) {
	binary.BigEndian.PutUint16(rest[2:], uint16(min(mtu, 0xffff)))
	return rest
}

// MTU returns the value of MTURest; 0: the router did not report it.
func (m Message) MTU() int { return int(binary.BigEndian.Uint16(m.Rest[2:])) }

// PointerRest returns the Rest of a parameter problem: RFC 792 puts the offset of the error in its
// first byte.
func PointerRest(at int) [4]byte { return [4]byte{byte(at)} }

// TimestampLen is the length of the body of a timestamp message: the originate, receive and
// transmit timestamps (RFC 792).
const TimestampLen = 12

// TimestampReply returns the answer to a timestamp message that was received and is answered at
// now, in milliseconds since midnight UT. It returns false if the message is too short.
func (m Message) TimestampReply(now uint32) (Message, bool) {
	if len(m.Body) < TimestampLen {
		return Message{}, false
	}
	body := append([]byte(nil), m.Body[:TimestampLen]...)
	binary.BigEndian.PutUint32(body[4:], now)
	binary.BigEndian.PutUint32(body[8:], now)
	return Message{Type: TypeTimestampReply, Rest: m.Rest, Body: body}, true
}
