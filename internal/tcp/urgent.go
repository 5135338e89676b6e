package tcp

// takeUrgent is the sixth step of RFC 9293 §3.10.7.4. Urgent data is part of
// the stream and is read in line (§3.8.5); what the pointer tells is where it
// ends. We never send one: new programs should not (SHLD-13), and a stream has
// no use for it.
func (c *Conn) takeUrgent(s *Segment) {
	if !s.Flags.Has(URG) || !c.state.mayReceive() {
		return
	}
	// RFC 9293 §3.8.5 (MUST-62): the pointer is the number of the octet that follows. The user is
	// signaled while it is ahead of the data consumed (§3.10.7.4), received or not.
	up := widen(c.rcv.nxt, s.Seq) + uint64(s.Urgent)
	if up > c.rcv.up && streamed(up, c.rcv.irs) > c.rx.Head() {
		c.rcv.up = up
		c.raise(Urgent) // MUST-32: whenever the pointer advances
	}
}

// Urgent returns how many bytes, from the next that is read on, belong to
// urgent data or come before it; they need not have arrived yet. Zero: nothing
// is urgent (RFC 9293 §3.8.5, MUST-33).
func (c *Conn) Urgent() int {
	if end := streamed(c.rcv.up, c.rcv.irs); end > c.rx.Head() {
		return int(end - c.rx.Head())
	}
	return 0
}
