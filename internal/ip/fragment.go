package ip

import (
	"encoding/binary"
	"net/netip"
)

// MinMTU is the minimum MTU of a link. RFC 791 §3.2 requires every module to forward 68 bytes
// without fragmentation: the longest header and the shortest payload of a fragment.
const MinMTU = MaxHeaderLen + fragmentUnit

// fragmentUnit is the unit of fragment offsets (RFC 791 §3.1).
const fragmentUnit = 8

// Options are one byte, or a type, a length and the rest (RFC 791 §3.1). All fragments contain
// those whose type has the copied flag.
const (
	optionEnd    = 0
	optionNop    = 1
	optionCopied = 0x80
)

// Fragmenter splits one packet into fragments for a link: by RFC 791 §3.2 for IPv4, and by RFC 8200
// §4.5 at the source of an IPv6 packet. The packet may be a fragment itself: its fragments then
// keep its offset, and the last one its more-fragments flag. It allocates no memory. The packet
// must stay valid from Reset to the last Next.
type Fragmenter struct {
	h       Header
	six     bool   // the packet is an IPv6 packet
	first   []byte // options of the packet; for IPv6, the headers before the Fragment header
	payload []byte // the whole payload
	mtu     int
	at      int // bytes of payload that Next has returned
	copied  [MaxHeaderLen - HeaderLen]byte
	ncopied int // length of copied: the options of all fragments but the first
	later   int // length of the header of all fragments but the first
}

// Reset starts splitting a packet whose header ParseHeader accepts or Append has written, after the
// first at bytes of its payload (see Done). An IPv6 packet must have a Fragment header, which
// contains its identification. Reset returns false if that is missing, or if the payload would end
// beyond the largest offset, which no valid datagram's fragment does.
func (f *Fragmenter) Reset(packet []byte, mtu, at int) bool {
	if packet[0]>>4 == version6 {
		return f.reset6(packet, mtu, at)
	}
	word := binary.BigEndian.Uint16(packet[6:])
	ihl := int(packet[0]&0x0f) * 4
	f.six = false
	f.h = Header{
		Len: ihl, TOS: packet[1], ID: uint32(binary.BigEndian.Uint16(packet[4:])),
		DF: word&flagDF != 0, MF: word&flagMF != 0,
		FragOff: int(word&fragmentOffset) * fragmentUnit,
		TTL:     packet[8], Protocol: packet[9],
		Src: netip.AddrFrom4([4]byte(packet[12:])), Dst: netip.AddrFrom4([4]byte(packet[16:])),
	}
	f.first, f.payload = packet[HeaderLen:ihl], packet[ihl:]
	f.mtu, f.at = max(mtu, MinMTU), at
	f.ncopied = copyOptions(f.copied[:], f.first)
	f.later = HeaderLen + f.ncopied
	return ihl+f.h.FragOff+len(f.payload) <= MaxPacketLen
}

// reset6 is like Reset, for IPv6. The MTU is at least MinMTU6, so the first fragment contains all
// headers (RFC 8200 §4.5): Walk accepts no longer chains, and tidepool sends none.
func (f *Fragmenter) reset6(packet []byte, mtu, at int) bool {
	field, end := nextHeaderAt, HeaderLen6
	for packet[field] != NextFragment {
		if !isExtension(packet[field]) {
			return false
		}
		field, end = end, headerEnd(packet, end, packet[field])
		if end < 0 {
			return false
		}
	}
	*f = Fragmenter{
		six: true, first: packet[:end], mtu: max(mtu, MinMTU6), at: at, later: end + fragmentLen,
	}
	f.h.Len, f.h.Protocol, f.payload = f.later, packet[end], packet[f.later:]
	f.h.readFragment(packet[end:])
	f.h.ID = binary.BigEndian.Uint32(packet[end+4:])
	return f.h.FragOff+len(packet)-HeaderLen6-fragmentLen <= maxPayload6
}

// Done returns how many bytes of payload Next has returned.
func (f *Fragmenter) Done() int { return f.at }

// More reports whether there is another fragment.
func (f *Fragmenter) More() bool { return f.at < len(f.payload) }

// HeaderLen returns the length of the next fragment's header.
func (f *Fragmenter) HeaderLen() int {
	if f.at == 0 {
		return f.h.Len
	}
	return f.later
}

// Next writes the header of the next fragment to b, whose length is HeaderLen, and returns the
// fragment's payload.
func (f *Fragmenter) Next(b []byte) []byte {
	h := f.h
	end := len(f.payload)
	if room := f.mtu - len(b); end-f.at > room {
		end = f.at + room&^(fragmentUnit-1)
		h.MF = true
	}
	h.FragOff += f.at
	h.TotalLen = len(b) + end - f.at
	switch {
	case f.six:
		n := copy(b, f.first)
		binary.BigEndian.PutUint16(b[payloadLenAt:], uint16(h.TotalLen-HeaderLen6))
		h.appendFragment(b[:n])
	case f.at > 0:
		h.Options = f.copied[:f.ncopied]
		h.Append(b[:0])
	default:
		h.Options = f.first
		h.Append(b[:0])
	}
	payload := f.payload[f.at:end]
	f.at = end
	return payload
}

// Left returns how many fragments are left.
func (f *Fragmenter) Left() int {
	rest := len(f.payload) - f.at
	if rest <= 0 {
		return 0
	}
	n := 1
	if f.at == 0 {
		room := f.mtu - f.h.Len
		if rest <= room {
			return 1
		}
		rest -= room &^ (fragmentUnit - 1)
		n++
	}
	room := f.mtu - f.later
	if step := room &^ (fragmentUnit - 1); rest > room {
		n += (rest - room + step - 1) / step
	}
	return n
}

// copyOptions copies the options that every fragment contains, padded to a multiple of four, and
// returns their length. It ignores everything after an option with an invalid length.
func copyOptions(to, options []byte) int {
	n := 0
	for len(options) > 0 && options[0] != optionEnd {
		size := 1
		if options[0] != optionNop {
			if len(options) < 2 || options[1] < 2 || int(options[1]) > len(options) {
				break
			}
			size = int(options[1])
		}
		if options[0]&optionCopied != 0 {
			n += copy(to[n:], options[:size])
		}
		options = options[size:]
	}
	for ; n%4 != 0; n++ {
		to[n] = optionEnd
	}
	return n
}
