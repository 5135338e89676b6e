package capture

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
	"strconv"

	"github.com/tidepool-net/tidepool/internal/checksum"
)

// IP protocols whose packets are described in detail.
const (
	protocolTest   = 0 // the course's test packets
	protocolICMP   = 1
	protocolTCP    = 6
	protocolUDP    = 17
	protocolICMPv6 = 58
	protocolRIP    = 200 // the course's dialect of RIP
)

const (
	headerBytes  = 20 // an IPv4 header without options
	headerBytes6 = 40 // an IPv6 header without extension headers
	maxText      = 32 // bytes of a test packet's payload in a line
	maxEntries   = 4  // entries of a RIP message or a listener report in a line
)

// datagram is a parsed IP packet. Its fields may be wrong if the packet is malformed.
type datagram struct {
	headers
	src, dst netip.Addr
	ttl      uint8  // for IPv6: the hop limit
	class    uint8  // for IPv6: the traffic class
	label    uint32 // for IPv6: the flow label
	payload  []byte // captured bytes; may be shorter than length
	length   int    // payload length according to the header
	cut      bool   // payload is shorter than length
	badSum   bool   // the IPv4 header checksum is wrong
}

// Describe appends a line about an IP packet, without a newline, and returns the extended slice:
//
//	IP 10.0.0.1.33000 > 10.1.0.2.80: Flags [P.], seq 1:101, ack 1, win 512, length 100
//	IP6 (hlim 64) 2001:db8::1 > 2001:db8::2: ICMP6, echo request, id 7, seq 1, length 13
//
// The format is tcpdump's, with two exceptions. seq is always printed, because it identifies probes
// and keep-alives. For IPv6, the header fields that tcpdump prints only with -v are always printed.
// The packet may be cut after its headers (the first piece of a train is enough); lengths come from
// the headers. If the bytes end inside a header, the line ends with a mark such as [|tcp].
//
// Describe parses the bytes itself instead of calling the protocol packages. Those reject malformed
// packets, but a line about a dropped packet has to show its contents anyway.
func Describe(dst, packet []byte) []byte {
	if len(packet) < headerBytes || packet[0]>>4 == 6 && len(packet) < headerBytes6 {
		dst = append(dst, "IP [|ip], length "...)
		return appendInt(dst, len(packet))
	}
	if version := packet[0] >> 4; version != 4 && version != 6 {
		dst = append(dst, "IP version "...)
		dst = appendInt(dst, int(version))
		dst = append(dst, ", length "...)
		return appendInt(dst, len(packet))
	}
	d, ok := parse(packet)
	if !ok {
		dst = d.appendAddrs(dst)
		if d.version == 6 {
			return appendInt(append(dst, "bad payload length "...), d.total-headerBytes6)
		}
		return appendInt(append(dst, "bad header length "...), d.size)
	}
	dst = d.append(dst)
	if d.more || d.fragment > 0 {
		dst = append(dst, " [fragment id "...)
		dst = appendUint(dst, d.id)
		dst = append(dst, " offset "...)
		dst = appendInt(dst, d.fragment)
		if d.more {
			dst = append(dst, '+')
		}
		dst = append(dst, ']')
	}
	if d.badSum {
		dst = append(dst, " [bad header checksum]"...)
	}
	return dst
}

// parse reads the headers of a packet of either version. It returns false if a length is invalid.
func parse(b []byte) (datagram, bool) {
	d := datagram{headers: headersOf(b)}
	if d.version == 6 {
		word := binary.BigEndian.Uint32(b)
		d.src, d.dst = netip.AddrFrom16([16]byte(b[8:])), netip.AddrFrom16([16]byte(b[24:]))
		d.ttl, d.class, d.label = b[7], uint8(word>>20), word&0xfffff
	} else {
		d.src, d.dst = netip.AddrFrom4([4]byte(b[12:])), netip.AddrFrom4([4]byte(b[16:]))
		d.ttl = b[8]
	}
	if d.size < headerBytes || d.size > len(b) || d.total < d.size {
		return d, false
	}
	d.badSum = d.version == 4 && !checksum.Verify(b[:d.size], 0)
	d.length = d.total - d.size
	d.cut = d.total > len(b)
	d.payload = b[d.size:min(d.total, len(b))]
	return d, true
}

func (d *datagram) append(dst []byte) []byte {
	switch {
	case d.fragment > 0: // the payload starts inside an upper-layer message
		dst = append(d.appendAddrs(dst), protocolName(d.protocol)...)
		return d.appendLength(dst)
	case d.protocol == protocolTCP:
		return d.appendTCP(dst)
	case d.protocol == protocolUDP:
		return d.appendUDP(dst)
	case d.version == 6:
		return d.append6(d.appendAddrs(dst))
	case d.protocol == protocolICMP:
		return d.appendICMP(d.appendAddrs(dst))
	case d.protocol == protocolRIP:
		return d.appendRIP(d.appendAddrs(dst))
	case d.protocol == protocolTest:
		return d.appendTest(d.appendAddrs(dst))
	}
	return d.appendOther(d.appendAddrs(dst))
}

// appendOther names a protocol that has no detailed description.
func (d *datagram) appendOther(dst []byte) []byte {
	dst = append(dst, "proto "...)
	dst = appendInt(dst, int(d.protocol))
	return d.appendLength(dst)
}

func (d *datagram) appendUDP(dst []byte) []byte {
	if len(d.payload) < 8 {
		return append(d.appendAddrs(dst), "[|udp]"...)
	}
	dst = append(d.appendPorts(dst), "UDP, "...)
	n := int(binary.BigEndian.Uint16(d.payload[4:]))
	if n < 8 {
		return appendInt(append(dst, "bad length "...), n)
	}
	return appendInt(append(dst, "length "...), n-8)
}

func (d *datagram) appendTest(dst []byte) []byte {
	dst = append(dst, "test, ttl "...)
	dst = d.appendLength(appendInt(dst, int(d.ttl)))
	dst = append(dst, ": "...)
	dst = strconv.AppendQuoteToASCII(dst, string(d.payload[:min(len(d.payload), maxText)]))
	if d.length > maxText {
		dst = append(dst, "..."...)
	}
	return dst
}

// appendRIP describes a message of the course's dialect. The message's length determines the size
// of its entries: 12 bytes, or 8 from nodes without mask support.
func (d *datagram) appendRIP(dst []byte) []byte {
	b := d.payload
	if len(b) < 4 {
		return append(dst, "[|rip]"...)
	}
	command, count := binary.BigEndian.Uint16(b), int(binary.BigEndian.Uint16(b[2:]))
	switch command {
	case 1:
		dst = append(dst, "RIP request"...)
	case 2:
		dst = append(dst, "RIP response"...)
	default:
		dst = append(dst, "RIP command "...)
		dst = appendInt(dst, int(command))
	}
	dst = append(dst, ", entries "...)
	dst = appendInt(dst, count)
	dst = d.appendLength(dst)
	if count == 0 {
		return dst
	}
	width := (d.length - 4) / count
	if width != 8 && width != 12 || width*count != d.length-4 {
		return append(dst, " [bad length]"...)
	}
	for i, sep := 0, ": "; i < count; i, sep = i+1, ", " {
		if 4+(i+1)*width > len(b) {
			return append(dst, " [|rip]"...)
		}
		if i == maxEntries {
			return append(dst, ", ..."...)
		}
		dst = appendEntry(append(dst, sep...), b[4+i*width:][:width])
	}
	return dst
}

func appendEntry(dst, e []byte) []byte {
	dst = appendAddr(dst, netip.AddrFrom4([4]byte(e[4:])))
	mask := ^uint32(0)
	if len(e) == 12 {
		mask = binary.BigEndian.Uint32(e[8:])
	}
	dst = append(dst, '/')
	if ones := bits.LeadingZeros32(^mask); mask<<ones == 0 {
		dst = appendInt(dst, ones)
	} else {
		dst = appendAddr(dst, netip.AddrFrom4([4]byte(e[8:])))
	}
	dst = append(dst, " cost "...)
	return appendUint(dst, binary.BigEndian.Uint32(e))
}

func (d *datagram) appendAddrs(dst []byte) []byte {
	dst = appendAddr(d.appendHeader(dst), d.src)
	dst = appendAddr(append(dst, " > "...), d.dst)
	return append(dst, ": "...)
}

// appendPorts is like appendAddrs, for a payload that starts with two port numbers.
func (d *datagram) appendPorts(dst []byte) []byte {
	dst = appendAddr(d.appendHeader(dst), d.src)
	dst = appendInt(append(dst, '.'), int(binary.BigEndian.Uint16(d.payload)))
	dst = appendAddr(append(dst, " > "...), d.dst)
	dst = appendInt(append(dst, '.'), int(binary.BigEndian.Uint16(d.payload[2:])))
	return append(dst, ": "...)
}

func (d *datagram) appendLength(dst []byte) []byte {
	return appendInt(append(dst, ", length "...), d.length)
}

func protocolName(protocol uint8) string {
	switch protocol {
	case protocolTest:
		return "test"
	case protocolICMP:
		return "icmp"
	case protocolTCP:
		return "tcp"
	case protocolUDP:
		return "udp"
	case protocolICMPv6:
		return "icmp6"
	case protocolRIP:
		return "rip"
	default:
		return "proto " + strconv.Itoa(int(protocol))
	}
}

func appendInt(dst []byte, n int) []byte { return strconv.AppendInt(dst, int64(n), 10) }

func appendUint(dst []byte, n uint32) []byte { return strconv.AppendUint(dst, uint64(n), 10) }

func appendHex(dst []byte, n uint32) []byte {
	return strconv.AppendUint(append(dst, "0x"...), uint64(n), 16)
}

func appendAddr(dst []byte, a netip.Addr) []byte { return a.AppendTo(dst) }
