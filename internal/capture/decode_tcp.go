package capture

import (
	"encoding/binary"

	"github.com/tidepool-net/tidepool/internal/checksum"
)

// These are the control bits in tcpdump's order: F S R P . U E W.
const (
	flagLetters = "FSRP.UEW"
	flagACK     = 0x10
	flagURG     = 0x20
)

// These are the TCP options of RFC 9293 §3.2, RFC 7323 §2.2 and §3.2, and RFC 2018 §2 and §3.
const (
	optionEnd           = 0
	optionNop           = 1
	optionMSS           = 2
	optionWindowScale   = 3
	optionSACKPermitted = 4
	optionSACK          = 5
	optionTimestamps    = 8
)

func (d *datagram) appendTCP(dst []byte) []byte {
	b := d.payload
	if len(b) < 20 {
		return append(d.appendAddrs(dst), "[|tcp]"...)
	}
	header, flags := int(b[12]>>4)*4, b[13]
	dst = appendFlags(append(d.appendPorts(dst), "Flags ["...), flags)
	if header < 20 || header > d.length {
		dst = append(dst, "], bad header length "...)
		return appendInt(dst, header)
	}
	length := d.length - header
	seq := binary.BigEndian.Uint32(b[4:])
	dst = appendUint(append(dst, "], seq "...), seq)
	if length > 0 {
		dst = appendUint(append(dst, ':'), seq+uint32(length))
	}
	if flags&flagACK != 0 {
		dst = appendUint(append(dst, ", ack "...), binary.BigEndian.Uint32(b[8:]))
	}
	dst = appendInt(append(dst, ", win "...), int(binary.BigEndian.Uint16(b[14:])))
	if flags&flagURG != 0 {
		dst = appendInt(append(dst, ", urg "...), int(binary.BigEndian.Uint16(b[18:])))
	}
	if header > len(b) {
		return append(dst, ", [|tcp]"...)
	}
	if header > 20 {
		dst = append(appendOptions(append(dst, ", options ["...), b[20:header]), ']')
	}
	dst = appendInt(append(dst, ", length "...), length)
	if !d.cut && !d.more && !checksum.Verify(b, d.pseudoHeader()) {
		dst = append(dst, " [bad checksum]"...)
	}
	return dst
}

func (d *datagram) pseudoHeader() uint64 {
	return checksum.PseudoHeader(d.src, d.dst, d.protocol, d.length)
}

func appendFlags(dst []byte, flags uint8) []byte {
	if flags == 0 {
		return append(dst, "none"...)
	}
	for i := range len(flagLetters) {
		if flags&(1<<i) != 0 {
			dst = append(dst, flagLetters[i])
		}
	}
	return dst
}

// appendOptions describes options up to the end of the list, or up to the first with an invalid
// length. There are at most 40 bytes of options.
func appendOptions(dst, b []byte) []byte {
	for first := true; len(b) > 0; first = false {
		if !first {
			dst = append(dst, ',')
		}
		switch kind := b[0]; {
		case kind == optionEnd:
			return append(dst, "eol"...)
		case kind == optionNop:
			dst, b = append(dst, "nop"...), b[1:]
		case len(b) < 2 || b[1] < 2 || int(b[1]) > len(b):
			dst = append(dst, "bad length of "...)
			return appendInt(dst, int(kind))
		default:
			dst = appendOption(dst, kind, b[2:b[1]])
			b = b[b[1]:]
		}
	}
	return dst
}

func appendOption(dst []byte, kind uint8, v []byte) []byte {
	switch {
	case kind == optionMSS && len(v) == 2:
		return appendInt(append(dst, "mss "...), int(binary.BigEndian.Uint16(v)))
	case kind == optionWindowScale && len(v) == 1:
		return appendInt(append(dst, "wscale "...), int(v[0]))
	case kind == optionSACKPermitted && len(v) == 0:
		return append(dst, "sackOK"...)
	case kind == optionTimestamps && len(v) == 8:
		dst = appendUint(append(dst, "TS val "...), binary.BigEndian.Uint32(v))
		return appendUint(append(dst, " ecr "...), binary.BigEndian.Uint32(v[4:]))
	case kind == optionSACK && len(v) > 0 && len(v)%8 == 0:
		dst = append(appendInt(append(dst, "sack "...), len(v)/8), ' ')
		for ; len(v) > 0; v = v[8:] {
			dst = appendUint(append(dst, '{'), binary.BigEndian.Uint32(v))
			dst = appendUint(append(dst, ':'), binary.BigEndian.Uint32(v[4:]))
			dst = append(dst, '}')
		}
		return dst
	}
	dst = appendInt(append(dst, "option "...), int(kind))
	return appendInt(append(dst, " of "...), len(v)+2)
}
