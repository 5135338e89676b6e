package tcp

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
