package ip

import "encoding/binary"

// MinMTU is the least MTU that a link can have: RFC 791 §3.2 has every module pass
// on 68 bytes whole, the longest header and one fragment's least payload.
const MinMTU = MaxHeaderLen + fragmentUnit

// fragmentUnit is what offsets count in (RFC 791 §3.1).
const fragmentUnit = 8

// Options are one byte, or a type, a length and the rest (RFC 791 §3.1). Those
// whose type has the copied flag are in every fragment.
const (
	optionEnd    = 0
	optionNop    = 1
	optionCopied = 0x80
)

// Fragmenter cuts one packet into fragments for a link (RFC 791 §3.2, its
// fragmentation procedure). The packet may be a fragment itself: its pieces then
// keep its offset, and the last of them its more-fragments flag. It allocates
// nothing; the packet is borrowed from Reset to the last Next.
type Fragmenter struct {
	h       Header
	first   []byte // the options of the packet
	payload []byte // all of it
	mtu     int
	at      int // bytes of payload that are done
	copied  [MaxHeaderLen - HeaderLen]byte
	ncopied int // of copied: the options of all fragments but the first
}

// Reset begins to cut a packet whose header ParseHeader accepts or Append wrote,
// behind the first at bytes of its payload, which is where an earlier cut got to
// (Done). It is false for a packet that cannot be cut: its payload would end beyond
// what an offset can say, as no fragment of a datagram does.
func (f *Fragmenter) Reset(packet []byte, mtu, at int) bool {
	word := binary.BigEndian.Uint16(packet[6:])
	ihl := int(packet[0]&0x0f) * 4
	f.h = Header{
		IHL: ihl, TOS: packet[1], ID: binary.BigEndian.Uint16(packet[4:]),
		DF: word&flagDF != 0, MF: word&flagMF != 0,
		FragOff: int(word&fragmentOffset) * fragmentUnit,
		TTL:     packet[8], Protocol: packet[9],
		Src: Addr(packet[12:16]), Dst: Addr(packet[16:20]),
	}
	f.first, f.payload = packet[HeaderLen:ihl], packet[ihl:]
	f.mtu, f.at = max(mtu, MinMTU), at
	f.ncopied = copyOptions(f.copied[:], f.first)
	return ihl+f.h.FragOff+len(f.payload) <= MaxPacketLen
}

// Done returns how many bytes of the packet's payload Next has given out.
func (f *Fragmenter) Done() int { return f.at }

// More reports whether there is another fragment.
func (f *Fragmenter) More() bool { return f.at < len(f.payload) }

// HeaderLen returns how long the header of the next fragment is.
func (f *Fragmenter) HeaderLen() int {
	if f.at == 0 {
		return f.h.IHL
	}
	return HeaderLen + f.ncopied
}

// Next writes the header of the next fragment over b, which is HeaderLen long, and
// returns the fragment's piece of the payload.
func (f *Fragmenter) Next(b []byte) []byte {
	h := f.h
	options := f.first
	if f.at > 0 {
		options = f.copied[:f.ncopied]
	}
	end := len(f.payload)
	if room := f.mtu - len(b); end-f.at > room {
		end = f.at + room&^(fragmentUnit-1)
		h.MF = true
	}
	h.FragOff += f.at
	h.TotalLen = len(b) + end - f.at
	h.Options = options
	h.Append(b[:0])
	payload := f.payload[f.at:end]
	f.at = end
	return payload
}

// Left returns how many fragments Next has yet to give.
func (f *Fragmenter) Left() int {
	rest := len(f.payload) - f.at
	if rest <= 0 {
		return 0
	}
	n := 1
	if f.at == 0 {
		room := f.mtu - f.h.IHL
		if rest <= room {
			return 1
		}
		rest -= room &^ (fragmentUnit - 1)
		n++
	}
	room := f.mtu - HeaderLen - f.ncopied
	if step := room &^ (fragmentUnit - 1); rest > room {
		n += (rest - room + step - 1) / step
	}
	return n
}

// copyOptions puts the options that every fragment has into to, padded to a
// multiple of four, and returns their length. What stands behind an option whose
// length lies is none.
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
