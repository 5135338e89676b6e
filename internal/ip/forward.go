package ip

import (
	"encoding/binary"

	"github.com/tidepool-net/tidepool/internal/checksum"
)

// DecrementTTL decrements the TTL (RFC 1812 §5.3.1) or hop limit (RFC 8200 §3) of the packet in b,
// whose header ParseHeader has accepted, and updates the checksum (RFC 1624 §3). It does not change
// the rest, including options and unknown bits. Its caller drops packets with TTL 0 or 1 before.
func DecrementTTL(b []byte) {
	const ttl, sum = 8, 10
	b = b[:HeaderLen]
	if b[0]>>4 == version6 {
		b[hopLimitAt]--
		return
	}
	b[ttl]--
	stored := binary.BigEndian.Uint16(b[sum:])
	binary.BigEndian.PutUint16(b[sum:], checksum.Update(stored, 1<<8, 0))
}

// Ends returns the source and destination of an IPv4 packet as one number, for comparison. The
// packet must have a complete header.
func Ends(b []byte) uint64 { return binary.NativeEndian.Uint64(b[12:]) }

// IsPlain reports whether ParseHeader accepts b as a whole, and b has neither IPv4 options nor a
// Hop-by-Hop Options header, and a TTL that permits forwarding. b must have a complete header, and
// the addresses of a packet that ParseHeader accepted. Routers ignore other extension headers (RFC
// 8200 §4).
func IsPlain(b []byte) bool {
	h := (*[HeaderLen]byte)(b)
	if h[0] == version4<<4|HeaderLen/4 {
		return h[8] > 1 && int(binary.BigEndian.Uint16(h[2:])) == len(b) &&
			checksum.Valid(checksum.SumHeader(h))
	}
	return h[0]>>4 == version6 && h[nextHeaderAt] != NextHopByHop && h[hopLimitAt] > 1 &&
		HeaderLen6+int(binary.BigEndian.Uint16(h[payloadLenAt:])) == len(b)
}
