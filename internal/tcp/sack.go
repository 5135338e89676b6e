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
			c.trouble.dsacks++
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
// and the other recent ones (RFC 2018 §4), then the lowest. One that others follow reports what is
// recent as it was when the first of that arrived.
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
		for _, k := range o.SACK[first:o.SACKCount] {
			if uint32(start)-k.Start < k.End-k.Start || k.Start-uint32(start) < uint32(end-start) {
				return // of a range that has grown: only duplicates overlap (RFC 2883 §4)
			}
		}
		o.addBlock(start, end)
	}
	fin, alone := c.finAlone()
	if alone && c.rcv.finLast {
		add(fin)
	}
	for i := c.rcv.toldLater(int(most - first)); i < c.rcv.noted() && o.SACKCount < most &&
		int(o.SACKCount-first) < c.rcv.ooo.Len(); i++ {
		if b, ok := c.rcv.change(i); ok {
			add(b)
		}
	}
	for i := 0; i < c.rcv.ooo.Len() && o.SACKCount < most; i++ {
		add(c.rcv.ooo.At(i))
	}
	if alone && o.SACKCount < most {
		add(fin)
	}
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
	s.finLast = false
	if last := s.recent[(s.changes-1)%maxRuns]; last.Start < b.Start || last.Start >= b.End {
		s.changes++
		s.runs = min(s.runs+1, maxRuns)
	}
	s.runs = max(s.runs, 1)
	s.recent[(s.changes-1)%maxRuns] = b
}

// toldLater returns how many of the latest changes the acknowledgment that leaves now does not
// report, because others follow it. There are none if it has room for all that there is.
func (s *receiveSpace) toldLater(room int) int {
	s.runs -= uint8(ceilDiv(int(s.runs), max(s.acks, 1)))
	if s.ooo.Len() <= room {
		s.runs = 0
	}
	return int(s.runs)
}

// noted returns how many changes are remembered.
func (s *receiveSpace) noted() int { return int(min(s.changes, maxRuns)) }

// change returns the range that changed, the latest for zero: as it is now, or if acknowledgments
// are to follow, as it was then. It is false for one that nothing is missing in front of any more.
func (s *receiveSpace) change(i int) (buffer.Range, bool) {
	then := s.recent[(s.changes-1-uint32(i))%maxRuns]
	b, ok := s.ooo.Find(then.End - 1)
	if ok && s.runs > 0 {
		b = buffer.Range{Start: max(b.Start, then.Start), End: then.End}
	}
	return b, ok
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

// reportHeld adds to the next acknowledgment a report of the first part of [start, end) that was
// already received out of order (RFC 2883 §4.2). It returns true if that part is the whole range.
func (c *Conn) reportHeld(start, end uint64) bool {
	held, ok := c.rcv.ooo.Overlap(c.rxOffset(start), c.rxOffset(end))
	if !ok {
		return false
	}
	base := c.rcv.irs + 1
	c.reportDuplicate(held.Start+base, held.End+base)
	return held.Len() == end-start
}
