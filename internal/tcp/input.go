package tcp

import "github.com/tidepool-net/tidepool/internal/clock"

// Input takes one segment or train that arrived at now. It borrows s and its
// payload for the call.
func (h *Host) Input(now clock.Time, s *Segment) {
	h.now = now
	if s.Count == 0 {
		s.Count = 1
	}
	h.counters.SegmentsIn += uint64(s.Count)
	if c := h.recent; c != nil && c.tuple == s.Tuple {
		c.input(now, s)
		return
	}
	if c := h.lookup(now, s.Tuple); c != nil {
		h.recent = c
		c.input(now, s)
		return
	}
	last := h.waits.byTuple[s.Tuple]
	l := h.listeners.find(s.Tuple)
	if last != nil && !h.waits.input(now, last, s, l != nil) {
		return
	}
	if l != nil && !s.Foreign {
		l.input(now, s, last)
		return
	}
	if h.take(now, s, last) {
		return
	}
	h.drop(DropNoConnection)
	h.replies.refuse(s)
}

// input is SEGMENT ARRIVES (RFC 9293 §3.10.7) for a connection that exists.
func (c *Conn) input(now clock.Time, s *Segment) {
	c.busy()
	c.stats.segsIn += uint64(s.Count)
	if s.Len > 0 {
		c.stats.dataSegsIn += uint64(s.Count)
		if c.state.synchronized() {
			c.rcv.notePause(now, s.Count, c.snd.rec.RTT.SRTT, c.snd.rec.RTT.RTO)
		}
		c.rcv.heardAt = now
	}
	if c.state == StateSynSent {
		c.inputSynSent(now, s)
	} else {
		c.inputOtherwise(now, s)
	}
	c.touch()
}

// inputOtherwise is §3.10.7.4, for every state but CLOSED, LISTEN and SYN-SENT, in the RFC's order.
// Its third step, security, has not been anyone's for decades. TIME-WAIT is in timewait.go.
func (c *Conn) inputOtherwise(now clock.Time, s *Segment) {
	seq := widen(c.rcv.nxt, s.Seq)
	if !c.checkStamp(now, s, seq) || // first, RFC 7323 §5.3 R1
		!c.checkSequence(now, s, seq) ||
		!c.checkReset(now, s, seq) || // second
		!c.checkSYN(now, s) || // fourth
		!c.checkACK(now, s, seq) { // fifth
		return
	}
	c.snd.takeTimeout(now, s.Options.UserTimeout)
	switch {
	case c.hs.has(flagDCTCP):
		c.rcv.takeMarkDCTCP(s)
	case c.hs.has(flagECN):
		c.rcv.takeMark(s)
	}
	c.takeContents(now, s, seq)
}

// takeContents is the sixth step to the eighth: the urgent pointer, the data and the
// FIN. Seq is the number of the first byte of data.
func (c *Conn) takeContents(now clock.Time, s *Segment, seq uint64) {
	if !c.state.mayReceive() {
		if s.Flags.Has(FIN) {
			c.offWindowACK(now) // another FIN behind the first: its sender learns where we are
		}
		return
	}
	if c.rcv.urgent(s) {
		c.raise(Urgent)
	}
	if s.Len > 0 {
		if c.flags.has(flagOrphan) && seq+uint64(s.Len) > c.rcv.nxt {
			// RFC 1122 §4.2.2.13: text that nobody will read; the peer must learn that it is lost,
			// and the connection is gone, as RFC 9293 §3.10.7.1 has it.
			c.host.drop(DropClosed)
			c.host.replies.refuse(s)
			c.fail(now, ErrAborted)
			return
		}
		if c.rcv.text(now, s, seq) {
			c.raise(Readable)
		}
	}
	if s.Flags.Has(FIN) && c.rcv.holdFIN(seq+uint64(s.Len), s.Len == 0) {
		c.offWindowACK(now)
	}
	if c.rcv.takeFIN() {
		c.raise(Readable)
		c.setState(now, evFIN)
	}
}

// checkSequence is the first step: is any of the segment within the window?
func (c *Conn) checkSequence(now clock.Time, s *Segment, seq uint64) bool {
	// The peer's SYN again is not a new one, whatever payload is behind it.
	again := s.Flags.Has(SYN) && c.state == StateSynReceived && seq == c.rcv.irs
	if !again && c.rcv.acceptable(s, seq) {
		return true
	}
	c.offWindow(now, s, seq, seq+s.space())
	return false
}

// offWindow answers an unacceptable segment: "an acknowledgment should be sent
// in reply (unless the RST bit is set)".
func (c *Conn) offWindow(now clock.Time, s *Segment, seq, end uint64) {
	switch {
	case s.Flags.Has(RST):
		c.host.drop(DropSequence)
	case s.Flags.Has(SYN) && c.state == StateSynReceived && seq == c.rcv.irs:
		// The peer has not seen our SYN-ACK, and says nothing new.
		c.host.drop(DropDuplicate)
		if !s.Flags.Has(ACK) {
			c.takeStamp(now, s, seq)
			c.hs.repeated(s)
			if c.mayRepeat(now) {
				c.hs.flags |= flagSynDue // for a stranger may repeat it faster than any TCP does
			}
			return
		}
		c.bothOpened(now, s, seq)
		c.offWindowACK(now)
	case s.Flags.Has(SYN) && c.state.synchronized():
		c.checkSYN(now, s)
	case s.Len > 0 && end <= c.rcv.nxt:
		c.host.drop(DropDuplicate)
		c.rcv.reportDuplicate(seq, end)
		c.rcv.ackOutOfOrder(s)
	case s.Flags.Has(FIN) && end <= c.rcv.nxt:
		c.host.drop(DropDuplicate)
		if c.mayRepeat(now) {
			c.rcv.reportDuplicate(seq, end)
			c.rcv.ack.now()
		}
	case s.Len > 0:
		c.host.drop(DropSequence)
		c.rcv.ackOutOfOrder(s)
	default:
		c.host.drop(DropSequence)
		c.offWindowACK(now)
	}
}

// checkReset is the second step, with RFC 5961 §3.2: only a reset at exactly
// rcv.nxt counts; one elsewhere in the window is asked to prove itself.
func (c *Conn) checkReset(now clock.Time, s *Segment, seq uint64) bool {
	if !s.Flags.Has(RST) {
		return true
	}
	if seq != c.rcv.nxt {
		c.host.drop(DropReset)
		c.challengeACK(now)
		return false
	}
	switch c.state {
	case StateSynReceived:
		if c.hs.has(flagActive) {
			c.fail(now, ErrRefused)
		} else {
			c.setState(now, evDelete) // back to LISTEN: the listener never left
		}
	case StateClosing, StateLastAck:
		// RFC 9293 §3.10.7.4 has it end in silence, for both sides have closed. But the user must
		// not take for delivered what the peer never acknowledged.
		if c.snd.delivered() {
			c.setState(now, evDelete)
		} else {
			c.fail(now, ErrReset)
		}
	default:
		c.fail(now, ErrReset)
	}
	return false
}

// checkSYN is the fourth step, with RFC 5961 §4.2: a SYN draws a challenge ACK,
// whatever else it may be and wherever it lies. A peer that has lost its memory
// answers with a reset that matches exactly.
func (c *Conn) checkSYN(now clock.Time, s *Segment) bool {
	if !s.Flags.Has(SYN) {
		return true
	}
	c.host.drop(DropSYN)
	if c.state == StateSynReceived && !c.hs.has(flagActive) {
		c.setState(now, evDelete) // RFC 9293 §3.10.7.4: back to LISTEN
		return false
	}
	c.challengeACK(now)
	return false
}

// checkACK is the fifth step. The window part of it is in ack.go.
func (c *Conn) checkACK(now clock.Time, s *Segment, seq uint64) bool {
	if !s.Flags.Has(ACK) {
		if s.Flags.Has(FIN) && s.Len == 0 && c.hs.has(flagPlain) && c.state.synchronized() {
			// RFC 9293 says to drop it. Nodes of the family send a bare FIN and wait for its
			// acknowledgment for ever; it is in the window, and it is clear what it means. From
			// peers with options, and with text, it is nobody's but a stranger's who does not know
			// what to acknowledge (RFC 5961 §5).
			return true
		}
		c.host.drop(DropNoAck)
		return false
	}
	ack := widen(c.snd.Una, s.Ack)
	if c.state == StateSynReceived {
		if ack != c.snd.Nxt {
			c.host.drop(DropAck)
			c.host.replies.refuse(s)
			return false
		}
		if l := c.links.listener; l != nil && l.backlogged() {
			c.host.drop(DropBacklog)
			return false
		}
		c.acceptSYNACK(now, s)
	}
	if ack > c.snd.Nxt || ack < c.snd.Una && c.snd.Una-ack > uint64(c.snd.maxWnd) {
		// RFC 5961 §5.2: SND.UNA - MAX.SND.WND =< SEG.ACK =< SND.NXT.
		c.host.drop(DropAck)
		c.challengeACK(now)
		return false
	}
	c.takeStamp(now, s, seq) // RFC 7323 §5.3 R3, once the ACK vouches for the segment
	if ack < c.snd.Una {
		return true // old, but its text may be new
	}
	c.ackArrives(now, s, seq, ack)
	if c.echoed(s) {
		c.snd.rec.ECNEcho(now, c.snd.probing())
	}
	if c.snd.fin != 0 && c.snd.Una > c.snd.fin {
		switch c.state {
		case StateFinWait1, StateClosing, StateLastAck:
			c.setState(now, evACKOfFIN)
		default:
		}
	}
	return !c.over()
}
