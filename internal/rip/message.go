package rip

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
)

// Infinity is the cost of what cannot be reached (RFC 2453 §3.6).
const Infinity = 16

// MaxEntries is the most entries that a message of the course's dialect holds.
const MaxEntries = 64

// The widths of an entry in bytes: the newer has a mask, the older means /32.
const (
	EntrySize    = 12
	OldEntrySize = 8
)

// Command says what a message wants.
type Command uint16

// The commands (RFC 2453 §3.6).
const (
	Request  Command = 1 // send me your table
	Response Command = 2 // this is (some of) my table
)

// Entry is one destination of a response.
type Entry struct {
	Prefix  netip.Prefix
	Cost    uint32     // the sender's own, as it was written: anything may stand there
	Tag     uint16     // of RIPv2
	NextHop netip.Addr // of RIPv2; the zero Addr: the sender
}

// Packet is one message of the course's dialect:
//
//	uint16 command, uint16 num_entries,
//	then for each entry uint32 cost, uint32 address and, unless it is of the
//	older width, uint32 mask; all in network byte order.
type Packet struct {
	Command   Command
	EntrySize int // 12 or 8; 0 when there are no entries to tell it from
	Entries   []Entry
	Rejected  int // entries left out because their mask is none
}

const packetHeader = 4

// ParsePacket reads a message, with its entries in the memory of scratch. The
// width of an entry is told from the length. It is false for a message whose
// length does not fit its count, whose count is above MaxEntries, or whose
// command is neither of the two; a mask with a hole costs only its own entry
// (RFC 2453 §3.9.2: "ignore that entry and proceed to the next").
func ParsePacket(b []byte, scratch []Entry) (p Packet, ok bool) {
	if len(b) < packetHeader {
		return Packet{}, false
	}
	p.Command = Command(binary.BigEndian.Uint16(b))
	if p.Command != Request && p.Command != Response {
		return Packet{}, false
	}
	n := int(binary.BigEndian.Uint16(b[2:]))
	b = b[packetHeader:]
	p.Entries = scratch[:0]
	switch {
	case n > MaxEntries:
		return Packet{}, false
	case n == 0:
		return p, len(b) == 0
	case len(b) == n*EntrySize:
		p.EntrySize = EntrySize
	case len(b) == n*OldEntrySize:
		p.EntrySize = OldEntrySize
	default:
		return Packet{}, false
	}
	for ; len(b) > 0; b = b[p.EntrySize:] {
		length := 32
		if p.EntrySize == EntrySize {
			if length, ok = prefixLength(binary.BigEndian.Uint32(b[8:])); !ok {
				p.Rejected++
				continue
			}
		}
		// Bits behind the mask are ignored: some nodes put their interface's
		// address where the network's belongs.
		prefix := netip.PrefixFrom(netip.AddrFrom4([4]byte(b[4:8])), length).Masked()
		p.Entries = append(p.Entries, Entry{Prefix: prefix, Cost: binary.BigEndian.Uint32(b)})
	}
	return p, true
}

// Append writes the message behind b in entries of p.EntrySize (0 means 12).
// The older width cannot say a prefix, so it is for entries of /32 only.
func (p Packet) Append(b []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(p.Command))
	b = binary.BigEndian.AppendUint16(b, uint16(len(p.Entries)))
	for _, e := range p.Entries {
		addr := e.Prefix.Addr().As4()
		b = binary.BigEndian.AppendUint32(b, e.Cost)
		b = append(b, addr[:]...)
		if p.EntrySize != OldEntrySize {
			b = binary.BigEndian.AppendUint32(b, ^uint32(0)<<(32-e.Prefix.Bits()))
		}
	}
	return b
}

// prefixLength turns a mask into a length; false if its ones are not together.
func prefixLength(mask uint32) (int, bool) {
	length := bits.LeadingZeros32(^mask)
	return length, bits.OnesCount32(mask) == length
}
