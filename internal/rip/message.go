package rip

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
)

// Infinity is the cost of an unreachable destination (RFC 2453 §3.6).
const Infinity = 16

// MaxEntries is the maximum number of entries in a message of the course's dialect.
const MaxEntries = 64

// These are the sizes of an entry in bytes. Older entries have no mask, which means /32.
const (
	EntrySize    = 12
	OldEntrySize = 8
)

// Command is the type of a message.
type Command uint16

// These are the commands (RFC 2453 §3.6).
const (
	Request  Command = 1 // a request for the table of the receiver
	Response Command = 2 // all or part of the sender's table
)

// Entry is one destination of a response.
type Entry struct {
	Prefix  netip.Prefix
	Cost    uint32     // cost that the sender announced, unchecked
	Tag     uint16     // route tag; unused in the course's dialect
	NextHop netip.Addr // next hop; unused in the course's dialect; zero: the sender
}

// Packet is one message of the course's dialect:
//
//	uint16 command, uint16 num_entries,
//	then for each entry uint32 cost, uint32 address and, unless it is of the
//	older size, uint32 mask; all in network byte order.
type Packet struct {
	Command   Command
	EntrySize int // entry size, 12 or 8 bytes; 0 without entries
	Entries   []Entry
	Rejected  int // number of entries skipped because of an invalid mask
}

const packetHeader = 4

// ParsePacket parses a message and stores its entries in scratch. The length determines the size of
// an entry. It returns false if the length does not match the count, if the count is above
// MaxEntries, or if the command is unknown. It skips an entry with an invalid mask (RFC 2453
// §3.9.2: "ignore that entry and proceed to the next").
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
		// Ignore host bits: some nodes send their interface's address as the network's address.
		prefix := netip.PrefixFrom(netip.AddrFrom4([4]byte(b[4:8])), length).Masked()
		p.Entries = append(p.Entries, Entry{Prefix: prefix, Cost: binary.BigEndian.Uint32(b)})
	}
	return p, true
}

// Append appends the message to b, with entries of p.EntrySize (0 means 12). Entries of the older
// size have no mask, so their prefixes must be /32.
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

// prefixLength converts a mask to a length. It returns false if the mask is not contiguous.
func prefixLength(mask uint32) (int, bool) {
	length := bits.LeadingZeros32(^mask)
	return length, bits.OnesCount32(mask) == length
}
