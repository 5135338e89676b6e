package ip

import (
	"encoding/binary"

	"github.com/tidepool-net/tidepool/internal/checksum"
)

// Forward decrements the TTL of the packet in b (RFC 1812 §5.3.1), whose header ParseHeader has
// accepted, and updates the checksum (RFC 1624 §3). It does not change the rest, including options
// and unknown bits. DropTTL leaves the packet unchanged, so that the ICMP error quotes the
// original.
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

// Ends returns the source and destination of a packet as one number, for comparison. The packet
// must have a complete header.
func Ends(b []byte) uint64 { return binary.NativeEndian.Uint64(b[12:]) }

// IsPlain reports whether b is one valid packet for ParseHeader, without options, with these ends,
// and with a TTL that permits forwarding.
func IsPlain(b []byte, ends uint64) bool {
	if len(b) < HeaderLen {
		return false
	}
	h := (*[HeaderLen]byte)(b)
	return h[0] == version4<<4|HeaderLen/4 && h[8] > 1 && Ends(h[:]) == ends &&
		int(binary.BigEndian.Uint16(h[2:])) == len(b) && checksum.Valid(checksum.SumHeader(h))
}
