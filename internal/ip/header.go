package ip

import (
	"encoding/binary"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/checksum"
)

// V4 returns the IPv4 address a.b.c.d.
func V4(a, b, c, d byte) netip.Addr { return netip.AddrFrom4([4]byte{a, b, c, d}) }

// The protocols of a node. The test protocol and course RIP have the course's numbers, not IANA's.
const (
	ProtoTest uint8 = 0
	ProtoICMP uint8 = 1
	ProtoTCP  uint8 = 6
	ProtoUDP  uint8 = 17
	ProtoRIP  uint8 = 200
)

const (
	// HeaderLen is the length of a header without options.
	HeaderLen = 20
	// MaxHeaderLen is the maximum of the IHL field.
	MaxHeaderLen = 60
	// MaxPacketLen is the maximum of the total length.
	MaxPacketLen = 0xffff
)

const (
	version4       = 4
	flagDF         = 0x4000
	flagMF         = 0x2000
	fragmentOffset = 0x1fff
)

// Header is an IPv4 header (RFC 791 §3.1) with lengths and offsets in bytes.
type Header struct {
	IHL      int // bytes, 20 to 60; set by ParseHeader; Append derives it from Options
	TOS      uint8
	TotalLen int // bytes, including the header
	ID       uint16
	DF, MF   bool
	FragOff  int // bytes, a multiple of 8
	TTL      uint8
	Protocol uint8
	Src, Dst netip.Addr // Append and Put write the zero Addr as 0.0.0.0
	Options  []byte     // nil: none; part of the parsed packet
}

// ParseHeader parses the header of the packet in b and returns the payload up to the header's total
// length; both are parts of b. The checks are those of RFC 1122 §3.2.1 and RFC 1812 §5.2.2. It
// returns the first that fails. The checksum is last, because the other fields define its range.
// ParseOptions checks the options.
func ParseHeader(b []byte) (h Header, payload []byte, drop DropReason) {
	if len(b) < HeaderLen {
		return Header{}, nil, DropShort
	}
	if b[0]>>4 != version4 {
		return Header{}, nil, DropVersion
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
		IHL:      ihl,
		TOS:      b[1],
		TotalLen: total,
		ID:       binary.BigEndian.Uint16(b[4:]),
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

// IsFragment reports whether the packet is a fragment.
func (h *Header) IsFragment() bool { return h.MF || h.FragOff != 0 }

// Size returns how many bytes Append writes: the header with its padded options.
func (h *Header) Size() int { return HeaderLen + (len(h.Options)+3)/4*4 }

// Append appends the header to b: 20 bytes, the options padded to a multiple of four, and the
// checksum. It writes TotalLen as given.
func (h Header) Append(b []byte) []byte {
	if len(h.Options) > MaxHeaderLen-HeaderLen {
		panic("BUG: ip: more than 40 bytes of options")
	}
	start := len(b)
	var fixed [HeaderLen]byte
	b = append(b, fixed[:]...)
	b = append(b, h.Options...)
	for (len(b)-start)%4 != 0 {
		b = append(b, 0) // RFC 791 §3.1: end of option list, also for padding
	}
	header := b[start:]
	h.fill(header)
	header[0] = version4<<4 | uint8(len(header)/4)
	binary.BigEndian.PutUint16(header[10:], checksum.Checksum(header))
	return b
}

// Put writes the header to b[:20], with its checksum and without its options.
func (h Header) Put(b []byte) {
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
	binary.BigEndian.PutUint16(b[4:], h.ID)
	binary.BigEndian.PutUint16(b[6:], fragment)
	b[8], b[9] = h.TTL, h.Protocol
	b[10], b[11] = 0, 0
	*(*[4]byte)(b[12:]) = as4(h.Src)
	*(*[4]byte)(b[16:]) = as4(h.Dst)
}

// as4 is As4 that returns 0.0.0.0 for the zero Addr.
func as4(a netip.Addr) (b [4]byte) {
	if a.Is4() {
		b = a.As4()
	}
	return b
}
