package ip

import (
	"encoding/binary"
	"math/bits"
)

const (
	// HeaderLen6 is the length of an IPv6 header without extension headers.
	HeaderLen6 = 40
	// MinMTU6 is the minimum MTU of a link that carries IPv6 (RFC 8200 §5).
	MinMTU6 = 1280

	version6       = 6
	maxPayload6    = 0xffff
	fragmentLen    = 8 // length of the Fragment header (RFC 8200 §4.5)
	flowLabelMask  = 1<<20 - 1
	payloadLenAt   = 4 // offset of the payload length field
	nextHeaderAt   = 6
	hopLimitAt     = 7
	sourceAt       = 8
	destinationAt  = 24
	moreFragments6 = 1 // flag of the Fragment header's offset field
)

// check6 makes ParseHeader's checks for IPv6 (RFC 8200 §3). It returns the length of the header,
// including a Hop-by-Hop Options header, and the length of the packet. A packet with payload length
// 0 and a Hop-by-Hop Options header is a jumbogram (RFC 2675 §3), whose length is len(b).
// CheckOptions refuses jumbograms.
func check6(b []byte) (size, total int, drop DropReason) {
	if b[0]>>4 != version6 {
		return 0, 0, DropVersion
	}
	if len(b) < HeaderLen6 {
		return 0, 0, DropShort
	}
	p := (*[HeaderLen6]byte)(b)
	size, total = HeaderLen6, HeaderLen6+int(binary.BigEndian.Uint16(p[payloadLenAt:]))
	next := p[nextHeaderAt]
	if next == NextHopByHop && total == HeaderLen6 {
		total = len(b)
	}
	if total > len(b) {
		return 0, 0, DropTotalLength
	}
	if isMapped(p[sourceAt:]) || isMapped(p[destinationAt:]) {
		return 0, 0, DropMartian // RFC 6890 §2.2.3: such addresses are never in a packet
	}
	if next == NextHopByHop {
		if size = headerEnd(b[:total], HeaderLen6, next); size < 0 {
			return 0, 0, DropExtension
		}
	}
	return size, total, DropNone
}

// isMapped reports whether the address at b is an IPv4-mapped IPv6 address.
func isMapped(b []byte) bool {
	return binary.BigEndian.Uint64(b) == 0 && binary.BigEndian.Uint32(b[8:]) == 0xffff
}

// headerEnd returns where the extension header at an offset of b ends; -1: beyond b.
func headerEnd(b []byte, at int, kind uint8) int {
	if at+fragmentLen > len(b) {
		return -1
	}
	end := at + fragmentLen
	if kind != NextFragment { // its second byte is reserved
		end += int(b[at+1]) * 8
	}
	if end > len(b) {
		return -1
	}
	return end
}

// isExtension reports whether a next header value is the type of an extension header that this node
// processes.
func isExtension(next uint8) bool {
	switch next {
	case NextHopByHop, NextRouting, NextFragment, NextDestination:
		return true
	}
	return false
}

// nextAt returns the offset in b, a packet with valid extension headers, of the next header field
// that names the header at end.
func nextAt(b []byte, end int) int {
	field := nextHeaderAt
	for at := HeaderLen6; at < end; {
		next := at
		at = headerEnd(b, at, b[field])
		field = next
	}
	return field
}

// Ends6 contains the source and destination of an IPv6 packet, for comparison.
type Ends6 [4]uint64

// EndsOf6 returns the ends of a packet with a complete header.
func EndsOf6(b []byte) Ends6 {
	h := (*[HeaderLen6]byte)(b)
	return Ends6{
		binary.NativeEndian.Uint64(h[8:]), binary.NativeEndian.Uint64(h[16:]),
		binary.NativeEndian.Uint64(h[24:]), binary.NativeEndian.Uint64(h[32:]),
	}
}

// Hash returns a number whose upper bits depend on all bits of e.
func (e *Ends6) Hash() uint64 {
	const k0, k1 = 0x9e3779b97f4a7c15, 0xc2b2ae3d27d4eb4f
	h0, l0 := bits.Mul64(e[0]^k0, e[1]^k1)
	h1, l1 := bits.Mul64(e[2]^k1, e[3]^k0)
	return (h0 ^ l0 + (h1 ^ l1)) * k0
}
