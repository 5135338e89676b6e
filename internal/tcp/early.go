package tcp

// What arrives early, beyond a gap, takes memory that no user can free by
// reading. A connection's is bounded by the window that it offered and by
// MaxReceiveRanges, and all connections' together by Limits.EarlyBytes.

// reach is how far early text extends beyond what is readable: what the ring
// holds for its sake.
func (c *Conn) reach() int {
	n := c.rcv.ooo.Len()
	if n == 0 {
		return 0
	}
	return int(c.rcv.ooo.At(n-1).End - c.rxOffset(c.rcv.nxt))
}

// mayHold reports whether the host has memory for early text up to a stream
// offset. What it has not is dropped, and its sender repeats it: by then it may
// be the next that is due, which is always taken.
func (c *Conn) mayHold(to uint64) bool {
	more := int(to-c.rxOffset(c.rcv.nxt)) - c.rcv.early
	return more <= 0 || c.host.early+more <= c.host.cfg.EarlyBytes
}

// countEarly keeps the books after the early text has changed.
func (c *Conn) countEarly() {
	n := c.reach()
	c.host.early += n - c.rcv.early
	c.rcv.early = n
}
