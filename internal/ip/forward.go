package ip

import (
	"encoding/binary"

	"github.com/tidepool-net/tidepool/internal/checksum"
)

// Forward takes one hop off the packet in b, whose header ParseHeader has
// accepted: the TTL goes down by one (RFC 1812 §5.3.1) and the checksum is
// updated with it (RFC 1624 §3). The rest of the packet, options and bits that mean
// nothing to us included, goes on as it came. DropTTL leaves the packet as it
// was, so that the ICMP error quotes what was sent.
func Forward(b []byte) DropReason {
	const ttl, sum = 8, 10
	b = b[:HeaderLen]
	if b[ttl] <= 1 {
		return DropTTL
	}
	old := binary.BigEndian.Uint16(b[ttl:])
	b[ttl]--
	stored := binary.BigEndian.Uint16(b[sum:])
	binary.BigEndian.PutUint16(b[sum:], checksum.Update(stored, old, old-1<<8))
	return DropNone
}

// Ends returns the source and the destination of a packet as one number, to compare.
// The packet must have a whole header.
func Ends(b []byte) uint64 { return binary.NativeEndian.Uint64(b[12:]) }

// IsPlain reports whether b is exactly one well-formed packet (as ParseHeader would
// find) without options, between the given ends, that may be forwarded one hop at least.
func IsPlain(b []byte, ends uint64) bool {
	if len(b) < HeaderLen {
		return false
	}
	h := (*[HeaderLen]byte)(b)
	return h[0] == version4<<4|HeaderLen/4 && h[8] > 1 && Ends(h[:]) == ends &&
		int(binary.BigEndian.Uint16(h[2:])) == len(b) && checksum.Valid(checksum.SumHeader(h))
}
