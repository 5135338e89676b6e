package ip

import (
	"encoding/binary"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/checksum"
)

const (
	// HeaderLen is the length of an IPv4 header without options.
	HeaderLen = 20
	// MaxHeaderLen is the maximum length of an IPv4 header, which the IHL field limits.
	MaxHeaderLen = 60
	// MaxPacketLen is the maximum length of a packet, which the total length field limits.
	MaxPacketLen = 0xffff
)

const (
	version4       = 4
	flagDF         = 0x4000
	flagMF         = 0x2000
	fragmentOffset = 0x1fff
)

// Header is the header of an IPv4 (RFC 791 §3.1) or IPv6 packet (RFC 8200 §3), with lengths and
// offsets in bytes. The family is that of Dst.
type Header struct {
	Len            int    // includes options or extension headers; set by ParseHeader and Walk
	TotalLen       int    // includes the header; IPv6: 40 more than the payload length
	FragOff        int    // offset of a fragment, a multiple of 8
	ID             uint32 // IPv4: 16 bits; IPv6: if not 0, Append writes a Fragment header
	FlowLabel      uint32 // IPv6 only; 20 bits
	TOS            uint8  // for IPv6: the traffic class
	TTL            uint8  // for IPv6: the hop limit
	Protocol       uint8  // for IPv6: type of the header at Len; after Walk, the upper layer's
	Next           uint8  // for IPv6: type of the first header in Options
	DF, MF         bool   // DF is set in received IPv6 packets, because only the source fragments
	FragmentHeader bool   // Walk has found a Fragment header, even in an atomic fragment
	Src, Dst       netip.Addr
	// Options are IPv4 options, or IPv6 extension headers without a fragment's Fragment header.
	// nil: none. ParseHeader sets them to a part of the packet.
	Options []byte
}

// ParseHeader parses the header of the packet in b and returns the payload up to the header's total
// length. The options and the payload are slices of b. For IPv4 it makes the checks of RFC 1122
// §3.2.1 and RFC 1812 §5.2.2 and returns the first that fails, with the checksum last, because the
// other fields define its range. ParseOptions checks the options. For IPv6 it makes the checks of
// RFC 8200 §3. Of the extension headers, it includes only Hop-by-Hop Options, which routers read
// and CheckOptions checks; h.Protocol may be another extension header until Walk has processed
// them.
func ParseHeader(b []byte) (h Header, payload []byte, drop DropReason) {
	if len(b) < HeaderLen {
		return Header{}, nil, DropShort
	}
	if b[0]>>4 != version4 {
		size, total, drop := check6(b)
		if drop != DropNone {
			return Header{}, nil, drop
		}
		p := (*[HeaderLen6]byte)(b)
		word := binary.BigEndian.Uint32(p[:])
		h = Header{
			Len: size, TotalLen: total, FlowLabel: word & flowLabelMask, TOS: uint8(word >> 20),
			DF: true, TTL: p[hopLimitAt], Protocol: p[nextHeaderAt],
			Src: netip.AddrFrom16([16]byte(p[sourceAt:destinationAt])),
			Dst: netip.AddrFrom16([16]byte(p[destinationAt:])),
		}
		if size > HeaderLen6 {
			h.Protocol, h.Options = b[HeaderLen6], b[HeaderLen6:size]
		}
		return h, b[size:total], DropNone
	}
	ihl := int(b[0]&0x0f) * 4
	if ihl < HeaderLen || ihl > len(b) {
		return Header{}, nil, DropHeaderLength
	}
	total := int(binary.BigEndian.Uint16(b[2:]))
	if total < ihl || total > len(b) {
		return Header{}, nil, DropTotalLength
	}
	sum := checksum.SumHeader((*[HeaderLen]byte)(b))
	if ihl > HeaderLen {
		sum = checksum.Sum(b[HeaderLen:ihl], sum)
	}
	if !checksum.Valid(sum) {
		return Header{}, nil, DropHeaderChecksum
	}
	fragment := binary.BigEndian.Uint16(b[6:])
	h = Header{
		Len:      ihl,
		TOS:      b[1],
		TotalLen: total,
		ID:       uint32(binary.BigEndian.Uint16(b[4:])),
		DF:       fragment&flagDF != 0,
		MF:       fragment&flagMF != 0,
		FragOff:  int(fragment&fragmentOffset) * 8,
		TTL:      b[8],
		Protocol: b[9],
		Src:      netip.AddrFrom4([4]byte(b[12:])),
		Dst:      netip.AddrFrom4([4]byte(b[16:])),
	}
	if ihl > HeaderLen {
		h.Options = b[HeaderLen:ihl]
	}
	return h, b[ihl:total], DropNone
}

// Is6 reports whether the packet is of IPv6.
func (h *Header) Is6() bool { return h.Dst.Is6() }

// IsFragment reports whether the packet is a fragment.
func (h *Header) IsFragment() bool { return h.MF || h.FragOff != 0 }
