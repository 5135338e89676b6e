package capture

import (
	"encoding/binary"
	"net/netip"
	"strconv"

	"github.com/tidepool-net/tidepool/internal/checksum"
)

// These are the types of RFC 4443, RFC 4861 and, for multicast listeners, RFC 3810.
const (
	icmp6Unreachable      = 1
	icmp6TooBig           = 2
	icmp6TimeExceeded     = 3
	icmp6ParameterProblem = 4
	icmp6Echo             = 128
	icmp6EchoReply        = 129
	icmp6ListenerQuery    = 130
	icmp6ListenerReport   = 131
	icmp6ListenerDone     = 132
	icmp6RouterSolicit    = 133
	icmp6RouterAdvert     = 134
	icmp6NeighborSolicit  = 135
	icmp6NeighborAdvert   = 136
	icmp6Redirect         = 137
	icmp6ListenerReport2  = 143

	code6Port = 4 // code of icmp6Unreachable
)

// icmp6Names and the other names below are tcpdump's.
var icmp6Names = map[uint8]string{
	icmp6Unreachable: "destination unreachable", icmp6TooBig: "packet too big",
	icmp6TimeExceeded: "time exceeded in-transit", icmp6ParameterProblem: "parameter problem",
	icmp6Echo: "echo request", icmp6EchoReply: "echo reply",
	icmp6ListenerQuery:  "multicast listener query",
	icmp6ListenerReport: "multicast listener report",
	icmp6ListenerDone:   "multicast listener done", icmp6RouterSolicit: "router solicitation",
	icmp6RouterAdvert: "router advertisement", icmp6NeighborSolicit: "neighbor solicitation",
	icmp6NeighborAdvert: "neighbor advertisement", icmp6Redirect: "redirect",
	icmp6ListenerReport2: "multicast listener report v2",
}

var (
	unreachable6 = [...]string{
		"unreachable route", "unreachable prohibited", "beyond scope", "unreachable address",
		"unreachable port", "source address failed policy", "reject route",
	}
	problems6 = [...]string{
		"erroneous", "next header", "option", "incomplete header chain",
	}
	recordNames = [...]string{"is_in", "is_ex", "to_in", "to_ex", "allow", "block"}
)

// append6 describes ICMPv6, an extension header that was not skipped, or another protocol.
func (d *datagram) append6(dst []byte) []byte {
	if d.protocol == protocolICMPv6 {
		return d.appendICMP6(dst)
	}
	if bit := extension(d.protocol); bit != 0 {
		name := strconv.Itoa(int(d.protocol))
		for i := range extensionNames {
			if bit == 1<<i {
				name = extensionNames[i].name
			}
		}
		return append(append(append(dst, "[|"...), name...), ']')
	}
	return d.appendOther(dst)
}

func (d *datagram) appendICMP6(dst []byte) []byte {
	b := d.payload
	if len(b) < 8 {
		return append(dst, "[|icmp6]"...)
	}
	kind, code := b[0], b[1]
	dst = append(dst, "ICMP6, "...)
	if name, ok := icmp6Names[kind]; ok {
		dst = append(dst, name...)
	} else {
		dst = appendInt(append(dst, "unknown icmp6 type ("...), int(kind))
		dst = append(dst, ')')
	}
	switch kind {
	case icmp6Unreachable:
		dst = appendUnreachable6(append(dst, ", "...), code, b[8:])
	case icmp6TooBig:
		dst = appendUint(append(dst, ", mtu "...), binary.BigEndian.Uint32(b[4:]))
	case icmp6TimeExceeded:
		if quoted := b[8:]; code == 1 {
			dst = append(dst, " (reassembly)"...)
		} else if headersOf(quoted).version == 6 {
			q, _ := parse(quoted)
			dst = appendAddr(append(dst, " for "...), q.dst)
		}
	case icmp6ParameterProblem:
		dst = appendName(append(dst, ", "...), problems6[:], int(code))
		dst = appendUint(append(dst, " - octet "...), binary.BigEndian.Uint32(b[4:]))
	case icmp6Echo, icmp6EchoReply:
		dst = appendEcho(dst, b)
	default:
		dst = appendDiscovery(dst, b)
	}
	dst = d.appendLength(dst)
	if !d.cut && !d.more && !checksum.Verify(b, d.pseudoHeader()) {
		dst = append(dst, " [bad checksum]"...)
	}
	return dst
}

// appendName appends a name from a list, or the number if it has no name.
func appendName(dst []byte, names []string, n int) []byte {
	if 0 <= n && n < len(names) {
		return append(dst, names[n]...)
	}
	return append(appendInt(append(dst, "unknown code ("...), n), ')')
}

// appendUnreachable6 describes an unreachable destination, from the packet that the message quotes.
func appendUnreachable6(dst []byte, code uint8, quoted []byte) []byte {
	dst = appendName(dst, unreachable6[:], int(code))
	if headersOf(quoted).version != 6 {
		return dst
	}
	q, ok := parse(quoted)
	if code != code6Port {
		return appendAddr(append(dst, ' '), q.dst)
	}
	dst = append(appendAddr(append(dst, ", "...), q.dst), ' ')
	dst = append(append(dst, protocolName(q.protocol)...), " port"...)
	if ok && len(q.payload) >= 4 {
		dst = appendInt(append(dst, ' '), int(binary.BigEndian.Uint16(q.payload[2:])))
	}
	return dst
}

// appendDiscovery describes messages of neighbor discovery and multicast listener discovery.
func appendDiscovery(dst, b []byte) []byte {
	const addressAt, destinationAt = 8, 24
	switch kind := b[0]; kind {
	case icmp6NeighborSolicit:
		return appendAddrAt(append(dst, ", who has "...), b, addressAt)
	case icmp6NeighborAdvert:
		return appendAddrAt(append(dst, ", tgt is "...), b, addressAt)
	case icmp6RouterAdvert:
		dst = appendInt(append(dst, ", hop limit "...), int(b[4]))
		dst = append(dst, ", router lifetime "...)
		return append(appendInt(dst, int(binary.BigEndian.Uint16(b[6:]))), 's')
	case icmp6Redirect:
		dst = appendAddrAt(append(dst, ", "...), b, destinationAt)
		return appendAddrAt(append(dst, " to "...), b, addressAt)
	case icmp6ListenerQuery, icmp6ListenerReport, icmp6ListenerDone:
		dst = append(dst, " max resp delay: "...)
		dst = appendInt(dst, int(binary.BigEndian.Uint16(b[4:])))
		return appendAddrAt(append(dst, " addr: "...), b, addressAt)
	case icmp6ListenerReport2:
		return appendRecords(dst, b)
	}
	return dst
}

// appendRecords lists the groups of a report.
func appendRecords(dst, b []byte) []byte {
	const recordBytes = 20 // size of a record without sources
	count := int(binary.BigEndian.Uint16(b[6:]))
	dst = append(appendInt(append(dst, ", "...), count), " group record(s)"...)
	at := 8
	for i := range count {
		if i == maxEntries {
			return append(dst, " ..."...)
		}
		if at+recordBytes > len(b) {
			return append(dst, " [|icmp6]"...)
		}
		sources := int(binary.BigEndian.Uint16(b[at+2:]))
		dst = append(appendAddrAt(append(dst, " [gaddr "...), b, at+4), ' ')
		dst = appendName(dst, recordNames[:], int(b[at])-1)
		dst = append(appendInt(append(dst, ", "...), sources), " source(s)]"...)
		at += recordBytes + 16*sources + 4*int(b[at+1])
	}
	return dst
}

// appendAddrAt appends the IPv6 address at an offset of b, or a mark if b is too short.
func appendAddrAt(dst, b []byte, at int) []byte {
	if len(b) < at+16 {
		return append(dst, "[|icmp6]"...)
	}
	return appendAddr(dst, netip.AddrFrom16([16]byte(b[at:])))
}
