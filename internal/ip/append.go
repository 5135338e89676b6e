package ip

import (
	"encoding/binary"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/checksum"
)

// Size returns how many bytes Append writes.
func (h *Header) Size() int {
	if h.Is6() {
		return h.size6()
	}
	return HeaderLen + (len(h.Options)+3)/4*4
}

// Append appends the header to b with TotalLen as given: for IPv4 20 bytes, the options padded to a
// multiple of four, and the checksum; for IPv6 40 bytes, the extension headers and, for a fragment
// or with an ID, the Fragment header. The zero Addr is written as zeros.
func (h Header) Append(b []byte) []byte {
	if h.Is6() {
		return h.append6(b)
	}
	if len(h.Options) > MaxHeaderLen-HeaderLen {
		panic("BUG: ip: more than 40 bytes of options")
	}
	start := len(b)
	var fixed [HeaderLen]byte
	b = append(b, fixed[:]...)
	b = append(b, h.Options...)
	for (len(b)-start)%4 != 0 {
		b = append(b, 0) // RFC 791 §3.1: end of option list, also used as padding
	}
	header := b[start:]
	h.fill(header)
	header[0] = version4<<4 | uint8(len(header)/4)
	binary.BigEndian.PutUint16(header[10:], checksum.Checksum(header))
	return b
}

// Put writes an IPv4 header without options, but with its checksum, to the first 20 bytes of b, or
// an IPv6 header without extension headers to the first 40.
func (h Header) Put(b []byte) {
	if h.Is6() {
		h.fill6(b, h.Protocol)
		return
	}
	b = b[:HeaderLen]
	h.fill(b)
	b[0] = version4<<4 | HeaderLen/4
	binary.BigEndian.PutUint16(b[10:], ^checksum.Fold(checksum.SumHeader((*[HeaderLen]byte)(b))))
}

// fill writes the fixed fields except the first byte, and a zero checksum.
func (h *Header) fill(b []byte) {
	fragment := uint16(h.FragOff/8) & fragmentOffset
	if h.DF {
		fragment |= flagDF
	}
	if h.MF {
		fragment |= flagMF
	}
	b = b[:HeaderLen:len(b)]
	b[1] = h.TOS
	binary.BigEndian.PutUint16(b[2:], uint16(h.TotalLen))
	binary.BigEndian.PutUint16(b[4:], uint16(h.ID))
	binary.BigEndian.PutUint16(b[6:], fragment)
	b[8], b[9] = h.TTL, h.Protocol
	b[10], b[11] = 0, 0
	*(*[4]byte)(b[12:]) = as4(h.Src)
	*(*[4]byte)(b[16:]) = as4(h.Dst)
}

// as4 returns a.As4, or 0.0.0.0 for the zero Addr.
func as4(a netip.Addr) (b [4]byte) {
	if a.Is4() {
		b = a.As4()
	}
	return b
}

func (h *Header) size6() int {
	n := HeaderLen6 + len(h.Options)
	if h.IsFragment() || h.ID != 0 {
		n += fragmentLen
	}
	return n
}

// append6 is like Append, for IPv6. The last header in h.Options must name h.Protocol.
func (h *Header) append6(b []byte) []byte {
	start := len(b)
	b = append(b, make([]byte, HeaderLen6)...)
	b = append(b, h.Options...)
	next, fragment := h.Protocol, h.IsFragment() || h.ID != 0
	if fragment {
		next = NextFragment
	}
	if len(h.Options) > 0 {
		next = h.Next
	}
	h.fill6(b[start:], next)
	if !fragment {
		return b
	}
	b[start:][nextAt(b[start:], len(b)-start)] = NextFragment
	return h.appendFragment(b)
}

// appendFragment appends the Fragment header (RFC 8200 §4.5) to b.
func (h *Header) appendFragment(b []byte) []byte {
	word := uint16(h.FragOff) &^ (fragmentUnit - 1)
	if h.MF {
		word |= moreFragments6
	}
	b = binary.BigEndian.AppendUint16(append(b, h.Protocol, 0), word)
	return binary.BigEndian.AppendUint32(b, h.ID)
}

// fill6 writes the fixed header.
func (h *Header) fill6(b []byte, next uint8) {
	b = b[:HeaderLen6:len(b)]
	binary.BigEndian.PutUint32(b, version6<<28|uint32(h.TOS)<<20|h.FlowLabel&flowLabelMask)
	binary.BigEndian.PutUint16(b[payloadLenAt:], uint16(h.TotalLen-HeaderLen6))
	b[nextHeaderAt], b[hopLimitAt] = next, h.TTL
	*(*[16]byte)(b[sourceAt:]) = as16(h.Src)
	*(*[16]byte)(b[destinationAt:]) = h.Dst.As16()
}

// as16 returns a.As16, or :: for the zero Addr.
func as16(a netip.Addr) (b [16]byte) {
	if a.Is6() {
		b = a.As16()
	}
	return b
}
