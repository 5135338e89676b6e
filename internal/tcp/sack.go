package tcp

import "github.com/tidepool-net/tidepool/internal/buffer"

// takeSACK marks what the peer's SACK blocks report (RFC 2018 §5).
func (c *Conn) takeSACK(o *Options, ack uint64, r *round) {
	for i := range int(o.SACKCount) {
		start := widen(c.snd.una, o.SACK[i].Start)
		end := start + uint64(o.SACK[i].End-o.SACK[i].Start)
		if start >= end || end > c.snd.nxt || end-start > 1<<31 {
			continue // not of this connection
		}
		if i == 0 && (end <= ack || c.withinNext(o, start, end)) {
			// RFC 2883 §4: a first block below the acknowledgment, or within the second, reports
			// a duplicate.
			r.dsack, r.dsackEnd = true, end
			c.stats.dsacks++
			c.undo.reported(start, end)
			continue
		}
		if start >= c.snd.una && start >= ack {
			c.markSacked(start, end, r)
		}
	}
}

// withinNext reports whether [start, end) lies within the second block.
func (c *Conn) withinNext(o *Options, start, end uint64) bool {
	if o.SACKCount < 2 {
		return false
	}
	s := widen(c.snd.una, o.SACK[1].Start)
	e := s + uint64(o.SACK[1].End-o.SACK[1].Start)
	return s <= start && end <= e
}

// markSacked marks the segments wholly within [start, end). It steps over runs
// that are marked already, and remembers how far the run from its first segment
// goes: a block that grows by one segment costs two steps, however long it is.
func (c *Conn) markSacked(start, end uint64, r *round) {
	q := &c.sent
	from := q.find(start)
	id := from
	for q.has(id) {
		rec := q.at(id)
		if rec.end() > end {
			break
		}
		if rec.place == sacked {
			id += rec.skip
			continue
		}
		c.deliver(rec, r)
		q.move(id, rec, sacked)
		c.board.noteSacked(id)
		id++
	}
	if id != from {
		q.at(from).skip = id - from
	}
}

// renege forgets what was sacked: RFC 2018 §8, the peer may have thrown it
// away, and a time-out of a segment that it once reported says that it did.
func (c *Conn) renege() {
	q := &c.sent
	for id := q.first; id != q.next; id++ {
		if rec := q.at(id); rec.place == sacked {
			q.move(id, rec, lost)
		}
	}
	c.board = scoreboard{judged: q.first, highest: q.first, tried: q.first}
}

// sackBlocks adds to an acknowledgment what was received out of order: first
// the duplicate if there is one (RFC 2883 §4), then the range that changed last
// and the other recent ones (RFC 2018 §4), then the lowest.
func (c *Conn) sackBlocks(o *Options) {
	base := c.rcv.irs + 1
	most := o.maxBlocks()
	// An acknowledgment must fit the path too; a narrow one leaves room for fewer.
	if room := (fitting(c.path.MTU) - o.size() - 4) / 8; room < int(most) {
		most = uint8(max(room, 1))
	}
	if d := c.rcv.dsack; d.Start < d.End {
		o.addBlock(d.Start, d.End)
	}
	first := o.SACKCount
	add := func(b buffer.Range) {
		start, end := b.Start+base, b.End+base
		if end == c.rcv.fin {
			end++ // RFC 2018 §3: the FIN behind it has its number, and is held as well
		}
		for i := first; i < o.SACKCount; i++ {
			if o.SACK[i].Start == uint32(start) {
				return
			}
		}
		o.addBlock(start, end)
	}
	if c.rcv.told != 0 && c.tellFurther(add, o, most) {
		return
	}
	fin, alone := c.finAlone()
	if alone && c.rcv.finLast {
		add(fin)
	}
	for _, pos := range c.rcv.recent {
		if b, ok := c.rcv.ooo.Find(pos); ok && o.SACKCount < most {
			add(b)
			c.rcv.told = lower(c.rcv.told, b.Start)
		}
	}
	for i := 0; i < c.rcv.ooo.Len() && o.SACKCount < most; i++ {
		add(c.rcv.ooo.At(i))
	}
	if alone && o.SACKCount < most {
		add(fin)
	}
}

// tellFurther reports the ranges below those that the acknowledgment before this one reported,
// if nothing has arrived since: RFC 2018 §4 wants each reported again and again, of which a copy
// of the same blocks does nothing for the others. It is false at the bottom.
func (c *Conn) tellFurther(add func(buffer.Range), o *Options, most uint8) bool {
	ooo := &c.rcv.ooo
	i := ooo.Below(c.rcv.told) - 1
	c.rcv.told = 0
	if i < 0 {
		return false
	}
	for ; i >= 0 && o.SACKCount < most; i-- {
		add(ooo.At(i))
		c.rcv.told = ooo.At(i).Start
	}
	return true
}

// lower returns the lower of two stream offsets, of which the first may be none.
func lower(a, b uint64) uint64 {
	if a == 0 {
		return b
	}
	return min(a, b)
}

// finAlone returns where a FIN is held whose text is missing, as an empty range in
// front of it: RFC 2018 §3 reports its number like a byte's, and the peer need not send
// it again. It is false where there is none, or it ends the last range.
func (c *Conn) finAlone() (buffer.Range, bool) {
	if c.rcv.fin == 0 || c.rcv.nxt >= c.rcv.fin {
		return buffer.Range{}, false
	}
	at := c.rxOffset(c.rcv.fin)
	n := c.rcv.ooo.Len()
	return buffer.Range{Start: at, End: at}, n == 0 || c.rcv.ooo.At(n-1).End < at
}

// noteRecent remembers that the range at stream offset pos changed last.
func (s *receiveSpace) noteRecent(pos uint64) {
	b, ok := s.ooo.Find(pos)
	if !ok {
		return
	}
	next := [maxSACKBlocks]uint64{b.Start}
	n := 1
	for _, p := range s.recent {
		if n < len(next) && (p < b.Start || p >= b.End) {
			next[n] = p
			n++
		}
	}
	s.recent, s.finLast = next, false
}

// reportDuplicate has the next acknowledgment report [start, end) as received
// twice (RFC 2883).
func (c *Conn) reportDuplicate(start, end uint64) {
	d := &c.rcv.dsack
	switch {
	case !c.has(flagSACK) || start >= end:
	case d.Start < d.End && start <= d.End && end > d.End && start >= d.Start:
		d.End = end // RFC 2883 §4 (3): one report covers one contiguous duplicate
	default:
		*d = buffer.Range{Start: start, End: end}
	}
}
