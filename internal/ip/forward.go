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
