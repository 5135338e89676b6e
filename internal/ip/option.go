package ip

import (
	"encoding/binary"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/checksum"
)

// The types of supported options (RFC 791 §3.1, RFC 2113 §2.1). Other options with a valid length
// are skipped (RFC 1122 §3.2.1.8).
const (
	optionRecordRoute = 7
	optionTimestamp   = 68
	optionLooseRoute  = 131
	optionStrictRoute = 137
	optionRouterAlert = 148
)

// These are the flags of a timestamp option.
const (
	stampOnly      = 0
	stampAddress   = 1
	stampSpecified = 3
)

// Options are the offsets of a header's options in bytes from the start of the header. Zero:
// absent.
type Options struct {
	RecordRoute, Timestamp int
	// SourceRoute is a loose or strict source route.
	SourceRoute int
}

// ParseOptions checks the options of a header. At an invalid option it stops and returns false,
// with the offset of the error in the header, as a parameter problem reports it (RFC 792).
func ParseOptions(options []byte) (o Options, pointer int, ok bool) {
	for at := 0; at < len(options); {
		b := options[at:]
		switch b[0] {
		case optionEnd:
			return o, 0, true
		case optionNop:
			at++
			continue
		}
		if len(b) < 2 || b[1] < 2 || int(b[1]) > len(b) {
			return o, HeaderLen + at, false
		}
		wrong := o.note(b[:b[1]], HeaderLen+at)
		if wrong >= 0 {
			return o, HeaderLen + at + wrong, false
		}
		at += int(b[1])
	}
	return o, 0, true
}

// note checks one option and records its offset. It returns the offset of an error, or -1.
func (o *Options) note(b []byte, at int) int {
	switch b[0] {
	case optionRecordRoute:
		return noteRoute(&o.RecordRoute, b, at)
	case optionLooseRoute, optionStrictRoute:
		return noteRoute(&o.SourceRoute, b, at)
	case optionTimestamp:
		return o.noteTimestamp(b, at)
	case optionRouterAlert:
		if len(b) != 4 {
			return 1
		}
	}
	return -1
}

// noteRoute checks an option that is a list of addresses.
func noteRoute(known *int, b []byte, at int) int {
	switch {
	case *known != 0:
		return 0 // RFC 791 §3.1: the option may appear only once
	case len(b) < 3:
		return 1
	case b[2] < 4, int(b[2]) <= len(b) && int(b[2])+3 > len(b):
		return 2
	}
	*known = at
	return -1
}

func (o *Options) noteTimestamp(b []byte, at int) int {
	if o.Timestamp != 0 {
		return 0
	}
	if len(b) < 4 {
		return 1
	}
	switch b[3] & 0x0f {
	case stampOnly, stampAddress, stampSpecified:
	default:
		return -1 // RFC 791 §3.1 does not define these flags: the option is ignored
	}
	if b[2] < 5 || int(b[2]) <= len(b) && int(b[2])-1+stampLen(b) > len(b) {
		return 2
	}
	if int(b[2]) > len(b) && b[3]>>4 == 15 {
		return 3 // RFC 791 §3.1: the overflow counter is full
	}
	o.Timestamp = at
	return -1
}

// stampLen returns the length of one node's entry in a timestamp option.
func stampLen(b []byte) int {
	if b[3]&0x0f == stampOnly {
		return 4
	}
	return 8
}

// Stamp adds an entry to the record route and the timestamp options of the header at b, if they
// have room, and updates the checksum (RFC 1624 §3). ParseOptions has accepted the options. self is
// the node's address; millis counts from midnight UT; owns reports whether an address is the
// node's.
func (o *Options) Stamp(b []byte, self netip.Addr, millis uint32, owns func(netip.Addr) bool) {
	if o.RecordRoute == 0 && o.Timestamp == 0 {
		return
	}
	var was [MaxHeaderLen]byte
	ihl := int(b[0]&0x0f) * 4
	header := b[:ihl]
	copy(was[:], header)
	if o.RecordRoute != 0 {
		record(option(header, o.RecordRoute), self)
	}
	if o.Timestamp != 0 {
		stamp(option(header, o.Timestamp), self, millis, owns)
	}
	sum := binary.BigEndian.Uint16(header[10:])
	for i := HeaderLen; i < ihl; i += 2 {
		old, now := binary.BigEndian.Uint16(was[i:]), binary.BigEndian.Uint16(header[i:])
		if old != now {
			sum = checksum.Update(sum, old, now)
		}
	}
	binary.BigEndian.PutUint16(header[10:], sum)
}

func option(header []byte, at int) []byte { return header[at : at+int(header[at+1])] }

// record adds an address to a record route that has room.
func record(b []byte, self netip.Addr) {
	if at := int(b[2]) - 1; at+4 <= len(b) {
		*(*[4]byte)(b[at:]) = self.As4()
		b[2] += 4
	}
}

// stamp adds an entry to a timestamp option, or increments its overflow counter.
func stamp(b []byte, self netip.Addr, millis uint32, owns func(netip.Addr) bool) {
	at := int(b[2]) - 1
	if at >= len(b) && b[3]>>4 < 15 {
		b[3] += 0x10
	}
	if at+stampLen(b) > len(b) {
		return
	}
	switch b[3] & 0x0f {
	case stampAddress:
		*(*[4]byte)(b[at:]) = self.As4()
		at += 4
	case stampSpecified:
		if next := netip.AddrFrom4([4]byte(b[at:])); next != self && !owns(next) {
			return // the next entry is for another node
		}
		at += 4
	}
	binary.BigEndian.PutUint32(b[at:], millis)
	b[2] = byte(at + 4 + 1)
}
