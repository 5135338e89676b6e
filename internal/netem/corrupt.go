package netem

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/tidepool-net/tidepool/internal/checksum"
)

// Region is a part of a packet.
type Region uint8

// These are the regions.
const (
	// Anywhere is the whole packet.
	Anywhere Region = iota
	// Headers are the IP header and the header of the TCP, UDP or ICMP message inside. For other
	// packets they are the IP header or the first 20 bytes.
	Headers
	// Payload is everything after the headers; Anywhere if that is empty.
	Payload
)

// Corrupt describes the corruption of packets.
type Corrupt struct {
	// Share is the share of corrupted packets.
	Share float64
	// Bits is the number of bits flipped in each packet; 0: one.
	Bits int
	// Where is the part of the packet in which bits are flipped.
	Where Region
}

// corrupt flips bits of b so that the packet's checksums detect it. Flips can cancel out modulo
// 65535 and leave RFC 1071's sum unchanged. Then corrupt flips another bit.
func (c *Corrupt) corrupt(random *rand.Rand, b []byte) {
	first, last := c.region(b)
	if first == last {
		return
	}
	header, ipv6 := ipHeaderLen(b), isIPv6(b)
	var change int64
	inHeader := false
	for n := 0; n < max(1, c.Bits) || !visible(b, change, inHeader); n++ {
		i, bit := first+random.IntN(last-first), random.IntN(8)
		weight := int64(1) << bit
		if i%2 == 0 {
			weight <<= 8
		}
		if b[i]&(1<<bit) != 0 {
			weight = -weight
		}
		b[i] ^= 1 << bit
		if ipv6 && (i < 4 || i == 6 || i == 7) {
			continue // no checksum covers these bytes
		}
		change += weight
		inHeader = inHeader || i < header
	}
}

// visible reports whether a receiver that verifies b must detect the corruption: the checksum's sum
// has changed, and if the IPv4 header has changed, its checksum fails too.
func visible(b []byte, change int64, inHeader bool) bool {
	if change%65535 == 0 {
		return false
	}
	if !inHeader {
		return true
	}
	n := ipHeaderLen(b)
	return n == 0 || !checksum.Verify(b[:n], 0)
}

// region returns the range of b that may be corrupted. It is empty only if b is empty.
func (c *Corrupt) region(b []byte) (first, last int) {
	n := headerLen(b)
	switch {
	case c.Where == Headers:
		return 0, n
	case c.Where == Payload && n < len(b):
		return n, len(b)
	}
	return 0, len(b)
}

// minIPHeader is the length of an IPv4 header without options.
const minIPHeader = 20

// ipHeaderLen returns the length of b's IPv4 header, or 0 if b has no such header.
func ipHeaderLen(b []byte) int {
	if len(b) < minIPHeader || b[0]>>4 != 4 {
		return 0
	}
	n := int(b[0]&15) * 4
	if n < minIPHeader || n > len(b) {
		return 0
	}
	return n
}

const ip6Header = 40

func isIPv6(b []byte) bool { return len(b) >= ip6Header && b[0]>>4 == 6 }

// These are protocol numbers in IP headers.
const icmp, tcp, udp, icmp6 = 1, 6, 17, 58

// network contains the fields of an IP header that netem parses.
type network struct {
	header    int // header length in bytes; 0: not an IP packet
	protocol  byte
	addresses []byte // source and destination, as in the header
	fragment  bool
}

// networkOf parses b's IP header. It counts IPv6 extension headers as the transport protocol.
func networkOf(b []byte) network {
	const moreOrOffset = 0x3fff
	if isIPv6(b) {
		return network{header: ip6Header, protocol: b[6], addresses: b[8:ip6Header]}
	}
	n := ipHeaderLen(b)
	if n == 0 {
		return network{}
	}
	return network{
		header: n, protocol: b[9], addresses: b[12:minIPHeader],
		fragment: binary.BigEndian.Uint16(b[6:])&moreOrOffset != 0,
	}
}

// headerLen returns the length of a packet's headers.
func headerLen(b []byte) int {
	const shortHeader, tcpHeader = 8, 20
	p := networkOf(b)
	if p.header == 0 {
		return min(len(b), minIPHeader)
	}
	n := p.header
	switch p.protocol {
	case icmp, udp, icmp6:
		n += shortHeader
	case tcp:
		if len(b) >= n+tcpHeader {
			n += int(b[n+12]>>4) * 4
		} else {
			n += tcpHeader
		}
	}
	return min(len(b), n)
}

// cut returns how many of n bytes a truncated packet keeps: at least one, because an empty packet
// cannot be sent, and at most n-1.
func cut(random *rand.Rand, n int) int {
	if n < 2 {
		return n
	}
	return 1 + random.IntN(n-1)
}
