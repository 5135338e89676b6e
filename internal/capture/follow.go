package capture

import (
	"encoding/binary"
	"slices"
)

// Mark is a noteworthy property of a segment.
type Mark uint16

// These are the marks.
const (
	MarkRetransmission Mark = 1 << iota // the data was sent before
	MarkGap                             // the data in front of the segment is missing
	MarkFillsGap                        // the segment fills a gap
	MarkDupAck                          // the acknowledgment is a duplicate (RFC 5681 §2)
	MarkZeroWindow                      // the window is zero
	MarkWindow                          // window update
	MarkProbe                           // probe of a zero window
	MarkKeepalive                       // keep-alive: one byte before the next sequence number
	MarkDSACK                           // duplicate SACK, RFC 2883
	MarkECE                             // ECE, RFC 3168
	MarkCWR                             // CWR: the congestion window was reduced
)

// Names returns the names of a segment's marks.
func (m Mark) Names() (names []string) {
	for i, name := range []string{
		"retransmission", "gap", "fills a gap", "dup ack", "zero window", "window update",
		"window probe", "keep-alive", "duplicate SACK", "congestion echo", "window reduced",
	} {
		if m&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// Segment is a segment of a connection as interpreted by a Follower. Sequence numbers are relative
// to the SYN or, if it was not seen, count from 1 at the first byte seen.
type Segment struct {
	Flags      string // flags as tcpdump prints them
	Seq, Ack   uint64
	WireSeq    uint32 // sequence number in the header
	Acks       bool   // the ACK field is valid
	Length     int
	Window     int         // scaled window in bytes
	SACK       [][2]uint64 // valid until the next segment
	MSS, Scale int         // options of a SYN; Scale -1: no window scale option
	TSVal      uint32
	TSEcr      uint32
	ECN        uint8 // the ECN bits of the IP header
	Marks      Mark
	Repeats    bool // the segment begins with data, a SYN or a FIN that was sent before
	DupAck     int  // the number of this duplicate ACK
}

// maxGaps limits the number of gaps that a Follower remembers; it treats further gaps as filled.
const maxGaps = 128

// halfConn is a Follower's state for one end of the connection.
type halfConn struct {
	known    bool   // base is valid
	base     uint32 // the sequence number that counts as 0
	next     uint64 // the highest sequence number seen, plus one
	gaps     []gap  // gaps below next, in order
	acked    uint64 // the highest number that this end acknowledged
	answered bool   // this end acknowledged something
	window   int    // the last window announced
	dups     int
	scale    int    // window scale; -1: not in its SYN
	synSeen  bool   // the SYN was seen, so scale is known
	resync   bool   // the first segment determines next
	fin      uint64 // the number after its FIN; 0: no FIN seen
}

type gap struct{ begin, end uint64 }

// Follower interprets the segments of a connection in order: it computes relative sequence numbers,
// and marks segments such as retransmissions. The zero Follower has seen no segments.
type Follower struct {
	halves [2]halfConn // state of the left end, and of the right end
	sack   [][2]uint64
	reset  bool
}

// Over reports whether the connection has ended: by a reset, or with both FINs acknowledged.
func (f *Follower) Over() bool {
	l, r := &f.halves[0], &f.halves[1]
	return f.reset || l.fin > 0 && r.fin > 0 && l.acked >= r.fin && r.acked >= l.fin
}

// Start is the state of one end when a Follower begins.
type Start struct {
	Base  uint32 // sequence number of the SYN
	Next  uint64 // next relative sequence number
	Scale int    // window scale; -1: no window scaling
}

// Begin initializes a Follower with the state of both ends. If resync is set, the next segment of
// each end may be older than this state: the segment then determines the next sequence number.
func (f *Follower) Begin(left, right Start, resync bool) {
	for i, s := range [2]Start{left, right} {
		f.halves[i] = halfConn{
			known: true, synSeen: true, base: s.Base, next: s.Next, scale: s.Scale, resync: resync,
		}
	}
}

// Follow interprets the next segment. sent means that the segment goes from left to right. lost
// means that it was dropped, so the receiver does not see it. packet has the packet's first
// HeaderBytes bytes, or all of it, and p the result of Parse. Follow returns false if the packet is
// not a TCP segment.
func (f *Follower) Follow(packet []byte, p *Facts, sent, lost bool) (s Segment, ok bool) {
	if !p.isTCP {
		return s, false
	}
	b := packet[p.size:]
	sender, receiver := &f.halves[0], &f.halves[1]
	if !sent {
		sender, receiver = receiver, sender
	}
	flags := p.flags
	s = Segment{
		Flags: string(appendFlags(nil, flags)), Acks: flags&flagACK != 0,
		Length: p.payloadLength, ECN: p.ecn(packet), Scale: -1,
	}
	f.options(&s, b)
	s.WireSeq = binary.BigEndian.Uint32(b[4:])
	s.Seq = sender.number(s.WireSeq, flags&flagSYN != 0)
	if s.Acks {
		s.Ack = receiver.number(binary.BigEndian.Uint32(b[8:]), false)
	}
	f.relativeSACK(&s, receiver)
	s.Window = sender.scaledWindow(binary.BigEndian.Uint16(b[14:]), &s, receiver, flags)
	length := uint64(s.Length)
	if flags&(flagSYN|flagFIN) != 0 {
		length++
	}
	if sender.resync {
		sender.resync, sender.next = false, s.Seq
	}
	if flags&flagSYN == 0 {
		s.Marks |= f.ecn(flags)
	}
	s.Repeats = length > 0 && s.Seq < sender.next
	s.Marks |= sender.classify(&s, receiver, length, flags)
	if flags&flagRST == 0 && s.Acks && !lost {
		sender.acknowledge(&s, receiver, length, flags)
	}
	if lost {
		return s, true
	}
	sender.advance(s.Seq, length)
	if flags&flagFIN != 0 {
		sender.fin = s.Seq + length
	}
	f.reset = f.reset || flags&flagRST != 0
	return s, true
}

const (
	flagFIN = 0x01
	flagSYN = 0x02
	flagRST = 0x04
	flagECE = 0x40
	flagCWR = 0x80
)

func (*Follower) ecn(flags uint8) (m Mark) {
	if flags&flagECE != 0 {
		m |= MarkECE
	}
	if flags&flagCWR != 0 {
		m |= MarkCWR
	}
	return m
}

// number extends a sequence number to 64 bits: it returns the one nearest to h.next.
func (h *halfConn) number(wire uint32, syn bool) uint64 {
	switch {
	case syn && (!h.known || h.base != wire):
		*h = halfConn{known: true, base: wire, scale: -1, synSeen: true}
		return 0
	case !h.known: // the capture began in the middle of the connection: the first byte seen is 1
		*h = halfConn{known: true, base: wire - 1, next: 1, scale: -1}
	}
	near := h.base + uint32(h.next)
	return uint64(max(0, int64(h.next)+int64(int32(wire-near))))
}

func (f *Follower) options(s *Segment, b []byte) {
	f.sack = f.sack[:0]
	end := min(int(b[12]>>4)*4, len(b))
	for at := 20; at < end; {
		kind := b[at]
		if kind == optionEnd {
			return
		}
		if kind == optionNop {
			at++
			continue
		}
		if at+1 >= end || b[at+1] < 2 || at+int(b[at+1]) > end {
			return
		}
		v := b[at+2 : at+int(b[at+1])]
		at += int(b[at+1])
		switch {
		case kind == optionMSS && len(v) == 2:
			s.MSS = int(binary.BigEndian.Uint16(v))
		case kind == optionWindowScale && len(v) == 1:
			s.Scale = int(min(v[0], 14)) // RFC 7323 §2.3: larger values count as 14
		case kind == optionTimestamps && len(v) == 8:
			s.TSVal, s.TSEcr = binary.BigEndian.Uint32(v), binary.BigEndian.Uint32(v[4:])
		case kind == optionSACK && len(v)%8 == 0:
			for ; len(v) > 0; v = v[8:] {
				f.sack = append(f.sack, [2]uint64{
					uint64(binary.BigEndian.Uint32(v)), uint64(binary.BigEndian.Uint32(v[4:])),
				})
			}
		}
	}
}

// relativeSACK converts the SACK blocks of a segment to relative sequence numbers.
func (f *Follower) relativeSACK(s *Segment, receiver *halfConn) {
	for i, b := range f.sack {
		f.sack[i] = [2]uint64{
			receiver.number(uint32(b[0]), false), receiver.number(uint32(b[1]), false),
		}
	}
	s.SACK = f.sack
	// RFC 2883 §4: the first block reports a duplicate if it is already acknowledged, or lies in
	// the second block.
	if len(f.sack) > 0 && (f.sack[0][1] <= s.Ack ||
		len(f.sack) > 1 && f.sack[0][0] >= f.sack[1][0] && f.sack[0][1] <= f.sack[1][1]) {
		s.Marks |= MarkDSACK
	}
}

// scaledWindow returns the window in bytes. RFC 7323 §2.2: the window of a SYN is not scaled, and
// others only if both ends sent the option.
func (h *halfConn) scaledWindow(raw uint16, s *Segment, receiver *halfConn, flags uint8) int {
	if flags&flagSYN != 0 {
		h.scale = s.Scale
		return int(raw)
	}
	if h.synSeen && receiver.synSeen && h.scale >= 0 && receiver.scale >= 0 {
		return int(raw) << h.scale
	}
	return int(raw)
}

// classify marks a segment by its own sequence numbers.
func (h *halfConn) classify(s *Segment, receiver *halfConn, length uint64, flags uint8) (m Mark) {
	zeroWindow := receiver.answered && receiver.window == 0
	switch {
	case flags&flagRST != 0:
	case length <= 1 && flags&(flagSYN|flagFIN) == 0 && s.Seq+1 == h.next && h.next > 1 &&
		receiver.acked >= s.Seq+1:
		// The byte was already acknowledged: the segment only asks for an ACK.
		m = MarkKeepalive
		if zeroWindow {
			m = MarkProbe
		}
	case length == 0:
	case zeroWindow && length == 1 && s.Length == 1:
		m = MarkProbe
	case s.Seq > h.next:
		m = MarkGap
	case s.Seq < h.next:
		m = MarkRetransmission
		if h.missing(s.Seq, s.Seq+length) {
			m = MarkFillsGap
		}
	}
	return m
}

// acknowledge processes a segment's acknowledgment of the other direction.
func (h *halfConn) acknowledge(s *Segment, receiver *halfConn, length uint64, flags uint8) {
	sameAck := h.answered && s.Ack == h.acked
	outstanding := receiver.next > s.Ack
	switch {
	case flags&flagSYN != 0:
	case sameAck && length == 0 && s.Window == h.window && outstanding:
		h.dups++
		s.DupAck = h.dups
		s.Marks |= MarkDupAck
	case sameAck && length == 0 && s.Window > h.window:
		s.Marks |= MarkWindow
	case !sameAck:
		h.dups = 0
	}
	if s.Window == 0 {
		s.Marks |= MarkZeroWindow
	}
	if !h.answered || s.Ack >= h.acked {
		h.acked, h.window, h.answered = max(h.acked, s.Ack), s.Window, true
	}
}

func (h *halfConn) advance(seq, length uint64) {
	end := seq + length
	switch {
	case length == 0:
	case seq > h.next:
		if len(h.gaps) < maxGaps {
			h.gaps = append(h.gaps, gap{h.next, seq})
		}
	case seq < h.next:
		h.fill(seq, end)
	}
	h.next = max(h.next, end)
}

// missing reports whether a part of a range has not been seen.
func (h *halfConn) missing(begin, end uint64) bool {
	return slices.ContainsFunc(h.gaps, func(g gap) bool { return begin < g.end && g.begin < end })
}

func (h *halfConn) fill(begin, end uint64) {
	var left []gap
	for _, g := range h.gaps {
		if g.begin < min(begin, g.end) {
			left = append(left, gap{g.begin, min(begin, g.end)})
		}
		if max(end, g.begin) < g.end {
			left = append(left, gap{max(end, g.begin), g.end})
		}
	}
	h.gaps = left[:min(len(left), maxGaps)]
}
