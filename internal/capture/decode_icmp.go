package capture

import (
	"encoding/binary"

	"github.com/tidepool-net/tidepool/internal/checksum"
)

// These are message types and codes of RFC 792. Code 13 is newer.
const (
	icmpEchoReply        = 0
	icmpUnreachable      = 3
	icmpEcho             = 8
	icmpTimeExceeded     = 11
	icmpParameterProblem = 12
	icmpTimestamp        = 13
	icmpTimestampReply   = 14

	codeNet            = 0
	codeHost           = 1
	codeProtocol       = 2
	codePort           = 3
	codeFragmentNeeded = 4
	codeSourceRoute    = 5
	codeProhibited     = 13
)

func (d *datagram) appendICMP(dst []byte) []byte {
	b := d.payload
	if len(b) < 8 {
		return append(dst, "[|icmp]"...)
	}
	switch kind, code := b[0], b[1]; kind {
	case icmpEcho:
		dst = appendEcho(append(dst, "ICMP echo request"...), b)
	case icmpEchoReply:
		dst = appendEcho(append(dst, "ICMP echo reply"...), b)
	case icmpUnreachable:
		dst = appendUnreachable(append(dst, "ICMP "...), code, b)
	case icmpTimeExceeded:
		if code == 0 {
			dst = append(dst, "ICMP time exceeded in-transit"...)
		} else {
			dst = append(dst, "ICMP time exceeded in reassembly"...)
		}
	case icmpParameterProblem:
		dst = appendInt(append(dst, "ICMP parameter problem - octet "...), int(b[4]))
	case icmpTimestamp:
		dst = appendEcho(append(dst, "ICMP time stamp query"...), b)
	case icmpTimestampReply:
		dst = appendEcho(append(dst, "ICMP time stamp reply"...), b)
	default:
		dst = appendInt(append(dst, "ICMP type "...), int(kind))
		dst = appendInt(append(dst, " code "...), int(code))
	}
	dst = d.appendLength(dst)
	if !d.cut && !d.more && !checksum.Verify(b, 0) {
		dst = append(dst, " [bad checksum]"...)
	}
	return dst
}

func appendEcho(dst, b []byte) []byte {
	dst = appendInt(append(dst, ", id "...), int(binary.BigEndian.Uint16(b[4:])))
	return appendInt(append(dst, ", seq "...), int(binary.BigEndian.Uint16(b[6:])))
}

// appendUnreachable describes an unreachable destination, from the header and the eight bytes that
// the message quotes.
func appendUnreachable(dst []byte, code uint8, b []byte) []byte {
	quoted := b[8:]
	if len(quoted) < headerBytes {
		return appendInt(append(dst, "unreachable code "...), int(code))
	}
	q, ok := parse(quoted)
	switch code {
	case codeNet:
		dst = appendAddr(append(dst, "net "...), q.dst)
	case codeHost:
		dst = appendAddr(append(dst, "host "...), q.dst)
	case codeProtocol:
		dst = append(appendAddr(dst, q.dst), " protocol "...)
		dst = appendInt(dst, int(q.protocol))
	case codePort:
		dst = append(appendAddr(dst, q.dst), ' ')
		dst = append(append(dst, protocolName(q.protocol)...), " port"...)
		if ok && len(q.payload) >= 4 {
			port := binary.BigEndian.Uint16(q.payload[2:])
			dst = appendInt(append(dst, ' '), int(port))
		}
	case codeFragmentNeeded:
		dst = append(appendAddr(dst, q.dst), " unreachable - need to frag (mtu "...)
		dst = appendInt(dst, int(binary.BigEndian.Uint16(b[6:])))
		return append(dst, ')')
	case codeSourceRoute:
		return append(appendAddr(dst, q.dst), " unreachable - source route failed"...)
	case codeProhibited:
		dst = appendAddr(append(dst, "host "...), q.dst)
		return append(dst, " unreachable - admin prohibited filter"...)
	default:
		dst = append(appendAddr(dst, q.dst), " code "...)
		dst = appendInt(dst, int(code))
	}
	return append(dst, " unreachable"...)
}
