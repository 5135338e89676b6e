package udp

import (
	"encoding/binary"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/checksum"
)

const (
	// HeaderLen is the length of the header.
	HeaderLen = 8
	// MaxPayload is the maximum payload in an IPv4 packet without options.
	MaxPayload = 0xffff - 20 - HeaderLen
	// MaxPayload6 is the maximum payload in an IPv6 packet, whose length excludes its header.
	MaxPayload6 = 0xffff - HeaderLen

	protocol   = 17
	checksumAt = 6
)

// Header is a UDP header (RFC 768).
type Header struct {
	SrcPort, DstPort uint16 // ports; a source port of 0 means that no reply is expected (RFC 768)
	Length           int    // length in bytes, including the header
	// Checksum is the received checksum. 0 means that the sender computed none.
	Checksum uint16
}

// ParseHeader parses the header of the IP payload b. It returns the datagram's payload, which is a
// part of b. Its length comes from the UDP header, because an IP payload may be longer. It returns
// false if the length is invalid.
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

// Verify reports whether the checksum of the datagram at the start of b is right. RFC 1122
// §4.1.3.4: a checksum of zero was not computed, and is not verified. A datagram with a wrong
// checksum is discarded. IPv6 requires a checksum (RFC 8200 §8.1).
func (h *Header) Verify(src, dst netip.Addr, b []byte) bool {
	if h.Checksum == 0 {
		return !src.Is6()
	}
	sum := checksum.PseudoHeader(src, dst, protocol, h.Length)
	return checksum.Verify(b[:h.Length], sum)
}

// Append appends a datagram to b: the header, with the payload's length and the checksum, and the
// payload of at most MaxPayload or MaxPayload6 bytes. It ignores the Length and Checksum of h.
func (h Header) Append(b []byte, src, dst netip.Addr, payload []byte) []byte {
	if len(payload) > MaxPayload && !dst.Is6() || len(payload) > MaxPayload6 {
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
		sum = 0xffff // RFC 768: zero would mean that there is no checksum
	}
	binary.BigEndian.PutUint16(b[start+checksumAt:], sum)
	return b
}
