package udp

import (
	"encoding/binary"

	"github.com/tidepool-net/tidepool/internal/checksum"
)

// Addr is an IPv4 address; netip.AddrFrom4 makes the public type of it.
type Addr = [4]byte

const (
	// HeaderLen is the length of the header.
	HeaderLen = 8
	// MaxPayload is the longest payload that an IPv4 packet without options carries.
	MaxPayload = 0xffff - 20 - HeaderLen

	protocol   = 17
	checksumAt = 6
)

// Header is a UDP header (RFC 768).
type Header struct {
	SrcPort, DstPort uint16 // RFC 768: a source port of 0 wants no answer
	Length           int    // bytes, header included
	// Checksum is as on the wire; 0: the sender computed none.
	Checksum uint16
}

// ParseHeader reads the header of the IP payload b and cuts the datagram's own
// payload, which is borrowed from b, to the header's length: an IP payload may
// be longer. It is false when the length cannot be right.
func ParseHeader(b []byte) (h Header, payload []byte, ok bool) {
	if len(b) < HeaderLen {
		return Header{}, nil, false
	}
	h = Header{
		SrcPort:  binary.BigEndian.Uint16(b),
		DstPort:  binary.BigEndian.Uint16(b[2:]),
		Length:   int(binary.BigEndian.Uint16(b[4:])),
		Checksum: binary.BigEndian.Uint16(b[checksumAt:]),
	}
	if h.Length < HeaderLen || h.Length > len(b) {
		return Header{}, nil, false
	}
	return h, b[HeaderLen:h.Length], true
}

// Verify reports whether the datagram that begins b, whose header was parsed,
// has the checksum that it says. RFC 1122 §4.1.3.4: a checksum of zero was not
// computed and is not verified; any other that is wrong has the datagram
// discarded.
func (h *Header) Verify(src, dst Addr, b []byte) bool {
	if h.Checksum == 0 {
		return true
	}
	sum := checksum.PseudoHeader(src, dst, protocol, h.Length)
	return checksum.Verify(b[:h.Length], sum)
}

// Append writes a datagram behind b: the header, with the payload's length and
// the checksum, and the payload. Length and Checksum of h are not looked at.
// The payload is at most MaxPayload bytes.
func (h Header) Append(b []byte, src, dst Addr, payload []byte) []byte {
	if len(payload) > MaxPayload {
		panic("BUG: udp: payload longer than a datagram")
	}
	start, n := len(b), HeaderLen+len(payload)
	b = binary.BigEndian.AppendUint16(b, h.SrcPort)
	b = binary.BigEndian.AppendUint16(b, h.DstPort)
	b = binary.BigEndian.AppendUint16(b, uint16(n))
	b = append(b, 0, 0)
	b = append(b, payload...)
	sum := ^checksum.Fold(checksum.Sum(b[start:], checksum.PseudoHeader(src, dst, protocol, n)))
	if sum == 0 {
		sum = 0xffff // RFC 768: zero would say that there is none
	}
	binary.BigEndian.PutUint16(b[start+checksumAt:], sum)
	return b
}
