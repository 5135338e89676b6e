package capture

import (
	"encoding/binary"
	"slices"
)

// Mark is something about a segment that is worth a look.
type Mark uint16

// The marks.
const (
	MarkAgain      Mark = 1 << iota // its text was sent before
	MarkGap                         // something is missing in front of it
	MarkFills                       // late, but not seen before
	MarkDupAck                      // RFC 5681 §2
	MarkZeroWindow                  // no room
	MarkWindow                      // room again, or more
	MarkProbe                       // of a window that is shut
	MarkKeepalive                   // one number before what comes next
	MarkDSACK                       // RFC 2883
	MarkEcho                        // ECE, RFC 3168
	MarkReduced                     // CWR
)

// Names are the words for a segment's marks.
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

// Segment is one segment of a connection as a Follower tells of it. Sequence numbers count from 0
// at the SYN, or from 1 at what was seen first.
type Segment struct {
	Flags      string // in tcpdump's letters
	Seq, Ack   uint64
	WireSeq    uint32 // as the header has it
	Acks       bool   // Ack means something
	Length     int
	Window     int         // bytes, scaled
	SACK       [][2]uint64 // lent until the next segment
	MSS, Scale int         // of a SYN; Scale -1: no such option
	TSVal      uint32
	TSEcr      uint32
	ECN        uint8 // the IP header's two bits
	Marks      Mark
	Repeats    bool // its data, SYN or FIN, or something behind it, was sent before
	DupAck     int  // the how many-eth
}

// maxGaps limits the gaps that a Follower remembers; it treats any further gap as filled.
const maxGaps = 128

// half is the state that a Follower keeps of the bytes that one end sends.
type half struct {
	known    bool   // there is a base
	base     uint32 // the wire's number for 0
	next     uint64 // behind the last number seen
	gaps     []gap  // below next, in order
	acked    uint64 // the highest number that it has acknowledged
	answered bool   // it has acknowledged something
	window   int    // as it announced it last
	dups     int
	scale    int    // -1: none in its SYN
	synSeen  bool   // and so we know
	anew     bool   // next is where its first segment begins
	fin      uint64 // behind its FIN; 0: none yet
}

type gap struct{ begin, end uint64 }

// Follower makes sense of a connection's segments, one after another: numbers from 0, and what
// each of them means beside those before it. The zero Follower has seen nothing.
type Follower struct {
	halves [2]half // left's, right's
	sack   [][2]uint64
	reset  bool
}

// Over reports whether the connection has ended: by a reset, or with both FINs acknowledged.
func (f *Follower) Over() bool {
	l, r := &f.halves[0], &f.halves[1]
	return f.reset || l.fin > 0 && r.fin > 0 && l.acked >= r.fin && r.acked >= l.fin
}

// Start is where one end stands as a Follower begins.
type Start struct {
	Base  uint32 // the number of its SYN
	Next  uint64 // what comes next, counted from there
	Scale int    // the shift of its windows; -1: none
}

// Begin has a Follower that has seen nothing know what left and right were like. Anew: what it will
// be shown begins earlier than that.
func (f *Follower) Begin(left, right Start, anew bool) {
	for i, s := range [2]Start{left, right} {
		f.halves[i] = half{
			known: true, synSeen: true, base: s.Base, next: s.Next, scale: s.Scale, anew: anew,
		}
	}
}

// Follow tells of the next segment. Sent: it goes from left to right. Lost: it went no further, and
// whoever would receive it does not know of it. Packet is its first HeaderBytes, or all of it, and
// facts have looked at it. False: it is no segment.
func (f *Follower) Follow(packet []byte, p *Facts, sent, lost bool) (s Segment, ok bool) {
	if !p.isTCP {
		return s, false
	}
	b := packet[p.size:]
	us, them := &f.halves[0], &f.halves[1]
	if !sent {
		us, them = them, us
	}
	flags := p.flags
	s = Segment{
		Flags: string(appendFlags(nil, flags)), Acks: flags&flagACK != 0,
		Length: p.textLength, ECN: p.ecn(packet), Scale: -1,
	}
	f.options(&s, b)
	s.WireSeq = binary.BigEndian.Uint32(b[4:])
	s.Seq = us.number(s.WireSeq, flags&flagSYN != 0)
	if s.Acks {
		s.Ack = them.number(binary.BigEndian.Uint32(b[8:]), false)
	}
	f.blocks(&s, them)
	s.Window = us.scaledWindow(binary.BigEndian.Uint16(b[14:]), &s, them, flags)
	length := uint64(s.Length)
	if flags&(flagSYN|flagFIN) != 0 {
		length++
	}
	if us.anew {
		us.anew, us.next = false, s.Seq
	}
	if flags&flagSYN == 0 {
		s.Marks |= f.ecn(flags)
	}
	s.Repeats = length > 0 && s.Seq < us.next
	s.Marks |= us.look(&s, them, length, flags)
	if flags&flagRST == 0 && s.Acks && !lost {
		us.answer(&s, them, length, flags)
	}
	if lost {
		return s, true
	}
	us.advance(s.Seq, length)
	if flags&flagFIN != 0 {
		us.fin = s.Seq + length
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
		m |= MarkEcho
	}
	if flags&flagCWR != 0 {
		m |= MarkReduced
	}
	return m
}

// number widens a sequence number from the wire to 64 bits: it returns the one nearest to h.next.
func (h *half) number(wire uint32, syn bool) uint64 {
	switch {
	case syn && (!h.known || h.base != wire):
		*h = half{known: true, base: wire, scale: -1, synSeen: true}
		return 0
	case !h.known: // in the middle of a connection: the first byte seen is 1
		*h = half{known: true, base: wire - 1, next: 1, scale: -1}
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
			s.Scale = int(min(v[0], 14)) // RFC 7323 §2.3: more counts as 14
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

// blocks numbers what a segment selectively acknowledges of them.
func (f *Follower) blocks(s *Segment, them *half) {
	for i, b := range f.sack {
		f.sack[i] = [2]uint64{
			them.number(uint32(b[0]), false), them.number(uint32(b[1]), false),
		}
	}
	s.SACK = f.sack
	// RFC 2883 §4: the first block tells of a duplicate if it is acknowledged already, or lies in
	// the second.
	if len(f.sack) > 0 && (f.sack[0][1] <= s.Ack ||
		len(f.sack) > 1 && f.sack[0][0] >= f.sack[1][0] && f.sack[0][1] <= f.sack[1][1]) {
		s.Marks |= MarkDSACK
	}
}

// scaledWindow is the window in bytes. RFC 7323 §2.2: a SYN's is not scaled, and all others only if
// both have the option.
func (h *half) scaledWindow(raw uint16, s *Segment, them *half, flags uint8) int {
	if flags&flagSYN != 0 {
		h.scale = s.Scale
		return int(raw)
	}
	if h.synSeen && them.synSeen && h.scale >= 0 && them.scale >= 0 {
		return int(raw) << h.scale
	}
	return int(raw)
}

// look says what the segment's own numbers mean.
func (h *half) look(s *Segment, them *half, length uint64, flags uint8) (m Mark) {
	shut := them.answered && them.window == 0
	switch {
	case flags&flagRST != 0:
	case length <= 1 && flags&(flagSYN|flagFIN) == 0 && s.Seq+1 == h.next && h.next > 1 &&
		them.acked >= s.Seq+1:
		// Its number was acknowledged: only the answer is wanted.
		m = MarkKeepalive
		if shut {
			m = MarkProbe
		}
	case length == 0:
	case shut && length == 1 && s.Length == 1:
		m = MarkProbe
	case s.Seq > h.next:
		m = MarkGap
	case s.Seq < h.next:
		m = MarkAgain
		if h.missing(s.Seq, s.Seq+length) {
			m = MarkFills
		}
	}
	return m
}

// answer takes note of what a segment says of the other's.
func (h *half) answer(s *Segment, them *half, length uint64, flags uint8) {
	again := h.answered && s.Ack == h.acked
	outstanding := them.next > s.Ack
	switch {
	case flags&flagSYN != 0:
	case again && length == 0 && s.Window == h.window && outstanding:
		h.dups++
		s.DupAck = h.dups
		s.Marks |= MarkDupAck
	case again && length == 0 && s.Window > h.window:
		s.Marks |= MarkWindow
	case !again:
		h.dups = 0
	}
	if s.Window == 0 {
		s.Marks |= MarkZeroWindow
	}
	if !h.answered || s.Ack >= h.acked {
		h.acked, h.window, h.answered = max(h.acked, s.Ack), s.Window, true
	}
}

func (h *half) advance(seq, length uint64) {
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

// missing reports whether some of a range has not been seen.
func (h *half) missing(begin, end uint64) bool {
	return slices.ContainsFunc(h.gaps, func(g gap) bool { return begin < g.end && g.begin < end })
}

func (h *half) fill(begin, end uint64) {
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
