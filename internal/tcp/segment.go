package tcp

import (
	"encoding/binary"
	"net/netip"
	"strings"
)

// HeaderSize is the length of a TCP header without options.
const HeaderSize = 20

// Flags are the control bits of a header (RFC 9293 §3.1).
type Flags uint8

// The control bits.
const (
	FIN Flags = 1 << iota
	SYN
	RST
	PSH
	ACK
	URG
	ECE
	CWR
)

// Has reports whether every bit of g is set.
func (f Flags) Has(g Flags) bool { return f&g == g }

// String lists the set bits, separated by "|".
func (f Flags) String() string {
	names := [...]string{"FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"}
	var set []string
	for i, n := range names {
		if f&(1<<i) != 0 {
			set = append(set, n)
		}
	}
	return strings.Join(set, "|")
}

// Tuple names a connection, from this host's side.
type Tuple struct {
	LocalAddr, RemoteAddr netip.Addr
	LocalPort, RemotePort uint16
}

// Local returns this host's end.
func (t Tuple) Local() netip.AddrPort {
	return netip.AddrPortFrom(t.LocalAddr, t.LocalPort)
}

// Remote returns the peer's end.
func (t Tuple) Remote() netip.AddrPort {
	return netip.AddrPortFrom(t.RemoteAddr, t.RemotePort)
}

// String writes the tuple as "local > remote".
func (t Tuple) String() string { return t.Local().String() + " > " + t.Remote().String() }

// Header is a TCP header without its ports and checksum.
type Header struct {
	Seq, Ack uint32
	Flags    Flags
	Window   uint16
	Urgent   uint16
	Options  Options
}

// ParseHeader parses a TCP segment whose checksum the caller has verified. It reports false if the
// segment is shorter than its header says, the header is shorter than 20 bytes, or the option list
// is malformed.
func ParseHeader(b []byte) (srcPort, dstPort uint16, h Header, payload []byte, ok bool) {
	if len(b) < HeaderSize {
		return 0, 0, h, nil, false
	}
	offset := int(b[12]>>4) * 4
	if offset < HeaderSize || offset > len(b) {
		return 0, 0, h, nil, false
	}
	h.Seq = binary.BigEndian.Uint32(b[4:])
	h.Ack = binary.BigEndian.Uint32(b[8:])
	h.Flags = Flags(b[13])
	h.Window = binary.BigEndian.Uint16(b[14:])
	h.Urgent = binary.BigEndian.Uint16(b[18:])
	if offset > HeaderSize {
		if !h.Options.parse(b[HeaderSize:offset]) {
			return 0, 0, h, nil, false
		}
	}
	srcPort = binary.BigEndian.Uint16(b)
	dstPort = binary.BigEndian.Uint16(b[2:])
	return srcPort, dstPort, h, b[offset:], true
}

// Segment is one received segment, or a train of adjacent segments of one flow, in order, which the
// stack has joined. (For sending, there is Train.)
type Segment struct {
	Tuple
	// Header is the header of the first segment. All segments of a train have the same Ack, Window,
	// Options and ECN, and only the flag ACK. If the last one also has PSH, Header has it too.
	Header
	// Payload holds the bytes in order, in pieces of any size. It is valid only during the call.
	Payload [][]byte
	// Len is the number of payload bytes, Count the number of segments; a Count of zero means one.
	Len, Count int
	// ECN is the ECN codepoint of all segments.
	ECN ECN
	// Foreign says that the address is not the host's own, so no listener accepts the segment.
	Foreign bool
}

// segLen returns how much sequence space the segment occupies (SEG.LEN).
func (s *Segment) segLen() uint64 {
	n := uint64(s.Len)
	if s.Flags.Has(SYN) {
		n++
	}
	if s.Flags.Has(FIN) {
		n++
	}
	return n
}
