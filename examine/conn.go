package examine

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"github.com/tidepool-net/tidepool/internal/checksum"
	"github.com/tidepool-net/tidepool/internal/ip"
)

// conn is the examiner's end of a connection with the subject. Sequence numbers count from the SYN
// of their sender.
type conn struct {
	us, them netip.AddrPort // them has no port until the subject opens the connection
	iss, irs uint32
	known    bool  // irs is known
	next     int64 // next sequence number of the examiner
	got      int64 // next sequence number of the subject, without gaps
	win      int64 // the subject's window in bytes, from its last acknowledgment
	acked    int64 // the subject's highest acknowledgment
	mss      int64 // the subject's MSS option; 0: no option
	offered  bool  // the examiner sent a window scale option
	scale    int   // of the subject's windows; -1: no scaling
	stamps   bool  // both ends sent timestamps
	stampUs  uint32
	stampHer uint32
	early    []*segment // out-of-order segments from the subject, beyond got
	wrote    []byte     // bytes that the subject's user has written
}

// owns reports whether a packet belongs to the connection.
func (c *conn) owns(p *packet) bool {
	if p.tcp == nil || p.sent {
		return false
	}
	return p.ip.Src == c.them.Addr() && p.ip.Dst == c.us.Addr() && p.tcp.dport == c.us.Port() &&
		(p.tcp.sport == c.them.Port() || c.them.Port() == 0)
}

// relative returns a segment's sequence and acknowledgment numbers, relative to the SYNs.
func (c *conn) relative(s *segment, sent bool) (seq, ack int64) {
	us, them := c.iss, c.irs
	if sent {
		return int64(int32(s.seq - us)), int64(int32(s.ack - them))
	}
	return int64(int32(s.seq - them)), int64(int32(s.ack - us))
}

// take updates the connection with a segment from the subject. It returns the stream offset of the
// first byte that differs from what the user wrote, or -1.
func (c *conn) take(p *packet) int64 {
	s := p.tcp
	if s.flags&flagRST != 0 {
		return -1
	}
	if s.flags&flagSYN != 0 && !c.known {
		c.known, c.irs, c.got = true, s.seq, 1
		c.them = netip.AddrPortFrom(p.ip.Src, s.sport)
		c.mss, _ = optionKeys[0].value(s)
		c.scale = -1
		if n, ok := optionKeys[1].value(s); ok && c.offered {
			c.scale = int(n)
		}
	}
	seq, ack := c.relative(s, false)
	if n, ok := optionKeys[5].value(s); ok {
		c.stampHer = uint32(n)
	} else if s.flags&flagSYN != 0 {
		c.stamps = false
	}
	if s.flags&flagACK != 0 {
		c.win, c.acked = int64(s.win), max(c.acked, ack)
		if s.flags&flagSYN == 0 && c.scale > 0 {
			c.win <<= c.scale
		}
	}
	if s.flags&flagSYN != 0 {
		return -1
	}
	if len(s.data) == 1 && seq == c.got-1 {
		return -1 // a probe from before the window may have any data (RFC 9293 §3.8.4)
	}
	for i, b := range s.data {
		if at := seq + int64(i) - 1; at < 0 || at >= int64(len(c.wrote)) || c.wrote[at] != b {
			return max(at, 0)
		}
	}
	c.advance(s)
	return -1
}

// advance moves got past the segment and the out-of-order segments that follow it.
func (c *conn) advance(s *segment) {
	if len(c.early) < 4096 {
		c.early = append(c.early, s)
	}
	for moved := true; moved; {
		moved = false
		c.early = slices.DeleteFunc(c.early, func(s *segment) bool {
			seq, _ := c.relative(s, false)
			if seq > c.got {
				return false
			}
			if end := seq + s.span(); end > c.got {
				c.got, moved = end, true
			}
			return true
		})
	}
}

// letter returns the byte of a stream at an offset. Streams are the alphabet, repeated, because
// people can type and read it.
func letter(offset int64) byte { return 'a' + byte((offset%26+26)%26) }

// stream returns n bytes of the stream from an offset on.
func stream(offset int64, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = letter(offset + int64(i))
	}
	return b
}

// build returns the segment that a pattern describes, in a packet.
func (x *execution) build(w *pattern) *packet {
	c := x.conn
	s := &segment{flags: w.flags, sport: c.us.Port(), dport: c.them.Port(), win: x.window}
	seq := c.next
	if t := w.find("seq"); t != nil {
		seq = t.lo.value(x.symbol)
	}
	s.seq = c.iss + uint32(seq)
	if t := w.find("ack"); t != nil {
		s.ack = c.irs + uint32(t.lo.value(x.symbol))
	} else if s.flags&flagACK != 0 {
		s.ack = c.irs + uint32(c.got)
	}
	x.options(w, s)
	for _, t := range w.terms {
		n := int64(0)
		if t.lo != nil {
			n = t.lo.value(x.symbol)
		}
		switch t.key {
		case "win":
			s.win = uint16(n)
		case "urg":
			s.urg = uint16(n)
		case "sport":
			s.sport = uint16(n)
		case "dport":
			s.dport = uint16(n)
		case "len":
			s.data = stream(seq-1, int(n))
		case "data":
			s.data = t.text
		}
	}
	if w.find("seq") == nil && s.flags&flagRST == 0 && !malformed(w) {
		c.next += s.span()
	}
	src, dst := c.us.Addr(), c.them.Addr()
	body := s.append(nil, src, dst)
	if t := w.find("offset"); t != nil {
		body[12] = byte(t.lo.value(x.symbol)) << 4
		body[16], body[17] = 0, 0
		sum := checksum.Sum(body, checksum.PseudoHeader(src, dst, ip.ProtoTCP, len(body)))
		binary.BigEndian.PutUint16(body[16:], ^checksum.Fold(sum))
	}
	if t := w.find("sum"); t != nil && t.bad {
		body[16] ^= 0x55
	}
	return &packet{
		sent: true, tcp: s, ip: ip.Header{Src: src, Dst: dst, Protocol: ip.ProtoTCP},
		body: body,
	}
}

// malformed reports whether a correct receiver ignores the segment. Such a segment does not advance
// the examiner's sequence numbers.
func malformed(w *pattern) bool {
	for _, key := range []string{
		"sum", "ipsum", "offset", "sport", "dport", "version", "ihl",
		"iplen",
	} {
		if w.find(key) != nil {
			return true
		}
	}
	return false
}

// options adds the options of a pattern, and timestamps if the connection uses them.
func (x *execution) options(w *pattern, s *segment) {
	c := x.conn
	c.stampUs++
	stamped := s.flags&flagSYN == 0 && c.stamps
	for _, t := range w.terms {
		n := uint32(0)
		if t.lo != nil {
			n = uint32(t.lo.value(x.symbol))
		}
		switch t.key {
		case "mss":
			s.options = append(s.options, 2, 4, byte(n>>8), byte(n))
		case "wscale":
			s.options = append(s.options, 3, 3, byte(n))
			c.offered = true
		case "sackok":
			s.options = append(s.options, 4, 2)
		case "tsval":
			c.stamps, c.stampUs, stamped = true, n, true
		case "sackfrom":
			s.options = append(s.options, 5, 10)
			s.options = put32(s.options, c.irs+n)
		case "sackto":
			s.options = put32(s.options, c.irs+n)
		case "options":
			s.options = append(s.options, t.text...)
		}
	}
	if stamped {
		s.options = append(s.options, 8, 10)
		s.options = put32(put32(s.options, c.stampUs), c.stampHer)
	}
}

func put32(b []byte, n uint32) []byte {
	return append(b, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
}

// expectOpen prepares the connection for a SYN that the subject sends to a port of the examiner.
func (c *conn) expectOpen(port uint16) {
	c.us = netip.AddrPortFrom(c.us.Addr(), port)
	c.them = netip.AddrPortFrom(c.them.Addr(), 0)
}
