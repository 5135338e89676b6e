package link

import (
	"encoding/binary"

	"github.com/tidepool-net/tidepool/internal/checksum"
)

// The kernel and a TUN device exchange a struct virtio_net_hdr (linux/virtio_net.h) with each
// packet, in the machine's byte order. It describes a checksum to compute, and the segmentation of
// the packet, so that a whole train crosses in one call. vnet.go parses such packets, vnet_join.go
// builds them, and tun_vnet_linux.go reads and writes them.

// vnetHeader is a struct virtio_net_hdr.
type vnetHeader struct {
	flags      uint8
	gso        uint8
	hdrLen     uint16 // length of all headers; only a hint
	gsoSize    uint16 // payload size of every segment except the last
	csumStart  uint16 // start of the bytes that the checksum covers
	csumOffset uint16 // offset of the checksum from csumStart
}

const (
	vnetHeaderLen = 10

	vnetNeedsChecksum = 1 // VIRTIO_NET_HDR_F_NEEDS_CSUM

	vnetNone  = 0 // VIRTIO_NET_HDR_GSO_NONE
	vnetTCPv4 = 1 // VIRTIO_NET_HDR_GSO_TCPV4
	vnetTCPv6 = 4 // VIRTIO_NET_HDR_GSO_TCPV6
	vnetUDP   = 5 // VIRTIO_NET_HDR_GSO_UDP_L4
	// vnetECN is a flag of the type. It means that only the first segment has CWR (RFC 3168
	// §6.1.2).
	vnetECN = 0x80
)

func parseVnet(b []byte) (h vnetHeader, ok bool) {
	if len(b) < vnetHeaderLen {
		return h, false
	}
	e := binary.NativeEndian
	return vnetHeader{
		flags: b[0], gso: b[1], hdrLen: e.Uint16(b[2:]), gsoSize: e.Uint16(b[4:]),
		csumStart: e.Uint16(b[6:]), csumOffset: e.Uint16(b[8:]),
	}, true
}

func (h *vnetHeader) put(b *[vnetHeaderLen]byte) {
	e := binary.NativeEndian
	b[0], b[1] = h.flags, h.gso
	e.PutUint16(b[2:], h.hdrLen)
	e.PutUint16(b[4:], h.gsoSize)
	e.PutUint16(b[6:], h.csumStart)
	e.PutUint16(b[8:], h.csumOffset)
}

// These are offsets in the headers of IPv4 (RFC 791 §3.1), IPv6 (RFC 8200 §3), TCP (RFC 9293 §3.1)
// and UDP (RFC 768).
const (
	ipMinLen     = 20
	ipLengthAt   = 2
	ipIDAt       = 4
	ipFragmentAt = 6
	ipProtoAt    = 9
	ipSumAt      = 10

	ip6Len      = 40
	ip6LengthAt = 4
	ip6NextAt   = 6

	protoTCP = 6
	protoUDP = 17

	tcpMinLen   = 20
	tcpSeqAt    = 4
	tcpAckAt    = 8
	tcpOffsetAt = 12
	tcpFlagsAt  = 13
	tcpSumAt    = 16
	tcpUrgentAt = 18

	tcpFIN, tcpPSH, tcpACK, tcpCWR = 0x01, 0x08, 0x10, 0x80

	udpLen      = 8
	udpLengthAt = 4
	udpSumAt    = 6
)

// layout describes the structure of a packet.
type layout struct {
	v6      bool
	ip      int // length of the IP header
	headers int // length of the IP and transport headers
	proto   uint8
}

// parseLayout parses an IP packet with a complete TCP segment or UDP datagram; b is the start of
// the packet. It returns false for all other packets, and for IPv6 packets with extension headers.
func parseLayout(b []byte, length int) (l layout, ok bool) {
	e := binary.BigEndian
	switch {
	case len(b) >= ip6Len && b[0]>>4 == 6:
		l.v6, l.ip, l.proto = true, ip6Len, b[ip6NextAt]
		if int(e.Uint16(b[ip6LengthAt:])) != length-ip6Len {
			return l, false
		}
	case len(b) >= ipMinLen && b[0]>>4 == 4:
		l.ip, l.proto = int(b[0]&15)*4, b[ipProtoAt]
		if l.ip < ipMinLen || int(e.Uint16(b[ipLengthAt:])) != length ||
			e.Uint16(b[ipFragmentAt:])&0x3fff != 0 {
			return l, false
		}
	default:
		return l, false
	}
	switch l.proto {
	case protoTCP:
		if len(b) < l.ip+tcpMinLen {
			return l, false
		}
		n := int(b[l.ip+tcpOffsetAt]>>4) * 4
		l.headers = l.ip + n
		return l, n >= tcpMinLen && l.headers <= len(b)
	case protoUDP:
		l.headers = l.ip + udpLen
		return l, l.headers <= len(b)
	}
	return l, false
}

// burst is the result of one read. It contains packets of size bytes; the last may be shorter.
type burst struct {
	bytes, size int
	// checked means that split has computed the checksums. The kernel leaves that to split only for
	// packets that it sent itself.
	checked bool
}

// split segments the n bytes that the kernel has put at the start of b, and completes their
// checksums. If the header is invalid, or if b is too small for the segments, it returns false, and
// the packet is dropped.
func (h vnetHeader) split(b []byte, n int) (burst, bool) {
	if h.gso == vnetNone {
		checked := h.flags&vnetNeedsChecksum != 0
		if checked && !h.complete(b[:n]) {
			return burst{}, false
		}
		return burst{bytes: n, size: n, checked: checked}, true
	}
	l, ok := parseLayout(b[:n], n)
	if !ok || h.gsoSize == 0 || h.gso&^vnetECN != l.gso() {
		return burst{}, false
	}
	each, text := int(h.gsoSize), n-l.headers
	count := max(1, (text+each-1)/each)
	all := text + count*l.headers
	if all > len(b) {
		return burst{}, false
	}
	// The loop runs from the last segment to the first, so that no segment overwrites one that was
	// not moved yet.
	size := l.headers + min(each, text)
	for i := count - 1; i >= 0; i-- {
		part := min(each, text-i*each)
		at := i * size
		segment := b[at : at+l.headers+part]
		copy(segment[l.headers:], b[l.headers+i*each:][:part])
		if i > 0 {
			copy(segment, b[:l.headers])
		}
		l.finish(segment, i, i*each, i == count-1)
	}
	return burst{bytes: all, size: size, checked: true}, true
}

// gso returns the type of a joined packet.
func (l layout) gso() uint8 {
	switch {
	case l.proto == protoUDP:
		return vnetUDP
	case l.v6:
		return vnetTCPv6
	}
	return vnetTCPv4
}

// seal writes the length of a packet of n bytes into its IP header, and the header's checksum.
func (l layout) seal(b []byte, n int) {
	e := binary.BigEndian
	if l.v6 {
		e.PutUint16(b[ip6LengthAt:], uint16(n-ip6Len))
		return
	}
	e.PutUint16(b[ipLengthAt:], uint16(n))
	e.PutUint16(b[ipSumAt:], 0)
	e.PutUint16(b[ipSumAt:], checksum.Checksum(b[:l.ip]))
}

// finish writes the headers of the i-th segment, whose payload has this offset. It derives them
// from the headers of the whole packet.
func (l layout) finish(b []byte, i, offset int, last bool) {
	e := binary.BigEndian
	if !l.v6 {
		e.PutUint16(b[ipIDAt:], e.Uint16(b[ipIDAt:])+uint16(i))
	}
	l.seal(b, len(b))
	p := b[l.ip:]
	at := udpSumAt
	if l.proto == protoTCP {
		at = tcpSumAt
		e.PutUint32(p[tcpSeqAt:], e.Uint32(p[tcpSeqAt:])+uint32(offset))
		if !last {
			p[tcpFlagsAt] &^= tcpFIN | tcpPSH
		}
		if i > 0 {
			p[tcpFlagsAt] &^= tcpCWR // RFC 3168 §6.1.2: only the first new segment has CWR
		}
	} else {
		e.PutUint16(p[udpLengthAt:], uint16(len(p)))
	}
	e.PutUint16(p[at:], 0)
	sum := ^checksum.Fold(checksum.Sum(p, l.pseudo(b, len(p))))
	if sum == 0 && l.proto == protoUDP {
		sum = 0xffff // RFC 768: a zero would mean that there is no checksum
	}
	e.PutUint16(p[at:], sum)
}

// pseudo returns the sum of the pseudo-header of a packet with n bytes after its IP header.
func (l layout) pseudo(b []byte, n int) uint64 {
	src, dst, _ := addresses(b)
	return checksum.PseudoHeader(src, dst, l.proto, n)
}

// complete computes the checksum that the kernel left to its device. The checksum field already
// contains the sum of the pseudo-header.
func (h vnetHeader) complete(b []byte) bool {
	start, at := int(h.csumStart), int(h.csumStart)+int(h.csumOffset)
	if at+2 > len(b) {
		return false
	}
	sum := checksum.Checksum(b[start:])
	if sum == 0 { // RFC 768: zero means no checksum; for the others, zero and 0xffff are equivalent
		sum = 0xffff
	}
	binary.BigEndian.PutUint16(b[at:], sum)
	return true
}
