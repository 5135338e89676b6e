package tcp

import "github.com/tidepool-net/tidepool/internal/clock"

// takeText is the seventh step of RFC 9293 §3.10.7.4: text goes to its place in
// the receive ring, in order or not, and becomes readable when nothing before
// it is missing.
func (c *Conn) takeText(now clock.Time, s *Segment, seq uint64) {
	end := seq + uint64(s.Len)
	if s.Len == 0 || !c.state.mayReceive() {
		return
	}
	if c.has(flagOrphan) && end > c.rcv.nxt {
		// RFC 1122 §4.2.2.13: text that nobody will read; the peer must learn that it is lost,
		// and the connection is gone, as RFC 9293 §3.10.7.1 has it.
		c.host.drop(DropClosed)
		c.host.refuse(s)
		c.fail(now, ErrAborted)
		return
	}
	start := seq
	if start < c.rcv.nxt {
		start = min(c.rcv.nxt, end)
		c.reportDuplicate(seq, start)
	}
	limit := c.rcv.limit()
	if !c.has(flagReadClosed) {
		// What rounding has let in is not to be let in again and again: the buffer ends somewhere.
		limit = min(limit, c.rcv.nxt+uint64(c.rx.Free()))
	}
	if c.rcv.fin != 0 {
		limit = min(limit, c.rcv.fin) // nothing comes after a FIN
	}
	if end > limit {
		c.host.drop(DropWindow)
		end = limit
	}
	if start >= end {
		c.rcv.acks = max(c.rcv.acks, 1)
		return
	}
	c.rcv.mss = min(max(c.rcv.mss, s.Len/s.Count), maxMSS)
	if start == c.rcv.nxt {
		c.takeInOrder(now, s, seq, start, end)
	} else {
		c.takeOutOfOrder(s, seq, start, end)
	}
}

// takeInOrder appends text to what is readable, and whatever it joins up with.
func (c *Conn) takeInOrder(now clock.Time, s *Segment, seq, start, end uint64) {
	c.place(s, seq, start, end)
	c.rcv.nxt = end
	c.rcv.edge = max(c.rcv.edge, end)
	filled := c.rcv.ooo.Len() > 0
	if filled {
		if seq == start { // otherwise the older part, below RCV.NXT, is reported
			c.reportHeld(start, end)
		}
		c.rcv.ooo.RemoveBefore(c.rxOffset(end))
		if c.rcv.ooo.Len() > 0 {
			if first := c.rcv.ooo.At(0); first.Start == c.rxOffset(end) {
				c.rcv.nxt = end + first.Len()
				c.rcv.edge = max(c.rcv.edge, c.rcv.nxt)
				c.rcv.ooo.RemoveBefore(first.End)
			}
		}
	}
	c.stats.bytesReceived += c.rcv.nxt - start
	c.timeWindow(now)
	if !c.has(flagReadClosed) {
		c.rx.Commit(c.rxOffset(c.rcv.nxt))
		c.raise(Readable)
	}
	if filled {
		c.rcv.hurry() // RFC 5681 §4.2: at once when a segment fills a gap
		c.countEarly()
	}
	c.ackInOrder(now, s, int(end-start))
	if start > seq {
		c.rcv.acks = max(c.rcv.acks, 1) // a duplicate is reported at once
	}
}

// takeOutOfOrder stores text that is ahead of its time.
func (c *Conn) takeOutOfOrder(s *Segment, seq, start, end uint64) {
	from, to := c.rxOffset(start), c.rxOffset(end)
	c.trouble.unordered += uint64(s.Count)
	if c.reportHeld(start, end) {
		c.host.drop(DropDuplicate)
	} else if !c.mayHold(to) {
		c.host.drop(DropMemory)
	} else if !c.rcv.ooo.Add(from, to) {
		// The gaps that are kept are bounded, or a peer that sends every other byte decides how
		// much memory it gets.
		c.host.drop(DropRanges)
	} else {
		c.place(s, seq, start, end)
		c.countEarly()
	}
	c.rcv.noteRecent(from)
	c.rcv.hurry()
	c.ackOutOfOrder(s)
}

// place copies the part [start, end) of a segment that begins at seq into the
// ring. A user who reads no more needs no copy.
func (c *Conn) place(s *Segment, seq, start, end uint64) {
	if c.has(flagReadClosed) {
		return
	}
	at := seq
	for _, p := range s.Payload {
		next := at + uint64(len(p))
		lo, hi := max(at, start), min(next, end)
		if lo < hi {
			c.rx.WriteAt(c.rxOffset(lo), p[lo-at:hi-at])
		}
		at = next
	}
}

// takeFIN is the eighth step.
func (c *Conn) takeFIN(now clock.Time, s *Segment, seq uint64) {
	if !c.state.mayReceive() {
		if s.Flags.Has(FIN) {
			c.offWindowACK(now) // another FIN behind the first: its sender learns where we are
		}
		return
	}
	if s.Flags.Has(FIN) {
		c.holdFIN(now, seq+uint64(s.Len), s.Len == 0)
	}
	if c.rcv.fin == 0 || c.rcv.nxt != c.rcv.fin {
		return
	}
	c.rcv.nxt++
	c.rcv.edge = max(c.rcv.edge, c.rcv.nxt)
	c.rcv.ooo.Clear()
	c.countEarly()
	c.rcv.acks = max(c.rcv.acks, 1)
	c.raise(Readable)
	c.setState(now, evFIN)
}

// holdFIN remembers a FIN ahead of missing text, like the text (RFC 9293 §3.10.7.4:
// segments may be held for later). Bare, it is acknowledged here, for nothing else
// does: at once as it comes (RFC 5681 §4.2), and now and then when it comes again.
func (c *Conn) holdFIN(now clock.Time, fin uint64, bare bool) {
	fresh := c.rcv.fin == 0 && fin >= c.rcv.nxt && fin <= c.rcv.limit()
	if fresh {
		c.rcv.fin = fin
	}
	if !bare || c.rcv.nxt >= c.rcv.fin {
		return
	}
	if !fresh {
		if fin == c.rcv.fin {
			c.reportDuplicate(fin, fin+1)
		}
		c.offWindowACK(now)
		return
	}
	c.rcv.finLast = true
	c.rcv.hurry()
	c.rcv.acks = max(c.rcv.acks, 1)
}
