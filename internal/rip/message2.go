package rip

import (
	"encoding/binary"
	"net/netip"
)

// These are the sizes of RFC 2453 §3.6 and §4: a header, and up to 25 entries.
const (
	MaxEntries2 = 25
	EntrySize2  = 20
	header2     = 4

	familyIPv4 = 2
)

// Entry2 is one route entry of a message (RFC 2453 §4).
type Entry2 struct {
	Family  uint16 // address family: 2 for IPv4, 0 in a request for the whole table
	Tag     uint16 // route tag; zero in version 1, as are Mask and NextHop
	Addr    uint32
	Mask    uint32 // subnet mask; zero: no mask
	NextHop uint32 // next hop; zero: the sender
	Metric  uint32
}

// Packet2 is one message of RIP version 1 or 2.
type Packet2 struct {
	Command Command
	Version uint8
	Entries []Entry2
}

// parseHeader2 parses the message's header.
func parseHeader2(b []byte) (p Packet2, r Refusal) {
	if len(b) < header2 {
		return p, RefusedForm
	}
	p.Command, p.Version = Command(b[0]), b[1]
	switch {
	case p.Version == 0:
		return p, RefusedVersion
	case p.Command != Request && p.Command != Response:
		return p, RefusedCommand
	}
	return p, Accepted
}

// parseEntries2 parses the entries, at most 25 (RFC 2453 §3.6).
func parseEntries2(b []byte, scratch []Entry2) ([]Entry2, Refusal) {
	entries := scratch[:0]
	if len(b)%EntrySize2 != 0 || len(b) > MaxEntries2*EntrySize2 {
		return entries, RefusedForm
	}
	for ; len(b) > 0; b = b[EntrySize2:] {
		entries = append(entries, Entry2{
			Family: binary.BigEndian.Uint16(b), Tag: binary.BigEndian.Uint16(b[2:]),
			Addr: binary.BigEndian.Uint32(b[4:]), Mask: binary.BigEndian.Uint32(b[8:]),
			NextHop: binary.BigEndian.Uint32(b[12:]), Metric: binary.BigEndian.Uint32(b[16:]),
		})
	}
	return entries, Accepted
}

// mustBeZeroFieldsAreZero checks the zero fields of a version 1 message. RFC 1058 §3.4 discards a
// message "if any of the fields described above as must be zero contain a nonzero value". Later
// versions use these fields, or ignore them.
func mustBeZeroFieldsAreZero(b []byte, entries []Entry2) bool {
	if b[2]|b[3] != 0 {
		return false
	}
	for i := range entries {
		if e := &entries[i]; e.Tag != 0 || e.Mask != 0 || e.NextHop != 0 {
			return false
		}
	}
	return true
}

func appendHeader2(b []byte, c Command, version uint8) []byte {
	return append(b, byte(c), version, 0, 0)
}

// Append appends the entry to b.
func (e *Entry2) Append(b []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, e.Family)
	b = binary.BigEndian.AppendUint16(b, e.Tag)
	b = binary.BigEndian.AppendUint32(b, e.Addr)
	b = binary.BigEndian.AppendUint32(b, e.Mask)
	b = binary.BigEndian.AppendUint32(b, e.NextHop)
	return binary.BigEndian.AppendUint32(b, e.Metric)
}

// Append appends the message to b.
func (p Packet2) Append(b []byte) []byte {
	b = appendHeader2(b, p.Command, p.Version)
	for i := range p.Entries {
		b = p.Entries[i].Append(b)
	}
	return b
}

// requestAll is the entry of a request for the whole table (RFC 2453 §3.9.1).
var requestAll = Entry2{Metric: Infinity}

func addrOf(a uint32) netip.Addr {
	return netip.AddrFrom4([4]byte{byte(a >> 24), byte(a >> 16), byte(a >> 8), byte(a)})
}

func word(a [4]byte) uint32 { return binary.BigEndian.Uint32(a[:]) }

func maskOf(bits int) uint32 { return ^uint32(0) << (32 - bits) }
