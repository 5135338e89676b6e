package tcp

import (
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/recovery"
)

// Input processes one segment or train that arrived at now. It uses s and its payload only during
// the call.
func (h *Host) Input(now clock.Time, s *Segment) {
	h.now = now
	if s.Count == 0 {
		s.Count = 1
	}
	h.counters.SegmentsIn += uint64(s.Count)
	if c := h.recent; c != nil && c.tuple.is(&s.Tuple) {
		c.input(now, s)
		return
	}
	if c := h.lookup(now, &s.Tuple); c != nil {
		h.recent = c
		c.input(now, s)
		return
	}
	tw := h.timeWaits.byTuple[s.Tuple]
	l := h.listeners.find(s.Local())
	accepted := l != nil && !s.Foreign || h.catch.fallback != nil
	if tw != nil && !h.timeWaits.input(now, tw, s, accepted) {
		return
	}
	if l != nil && !s.Foreign {
		l.input(now, s, tw)
		return
	}
	if h.catchSegment(now, s, tw) {
		return
	}
	h.reject(DropNoConnection, s)
}

// is reports whether t and u are equal. Unlike ==, it needs no function call.
func (t *Tuple) is(u *Tuple) bool {
	return t.RemotePort == u.RemotePort && t.LocalPort == u.LocalPort &&
		t.RemoteAddr == u.RemoteAddr && t.LocalAddr == u.LocalAddr
}

// lookup returns the connection with a tuple. It restores a half-open one first. It returns nil for
// unknown tuples and for TIME-WAIT.
func (h *Host) lookup(now clock.Time, t *Tuple) *Conn {
	if c := h.conns.find(t); c != nil {
		return c
	}
	if o := h.half.byTuple[*t]; o != nil {
		return h.restore(now, o)
	}
	return nil
}

// input processes a segment of an existing connection (RFC 9293 §3.10.7, SEGMENT ARRIVES).
func (c *Conn) input(now clock.Time, s *Segment) {
	c.leaveIdle()
	c.stats.segsIn += uint64(s.Count)
	if s.Len > 0 {
		c.stats.dataSegsIn += uint64(s.Count)
		if c.state.synchronized() {
			c.rcv.notePause(now, s.Count, c.snd.rec.RTT.SRTT, c.snd.rec.RTT.RTO)
		}
		c.rcv.lastDataAt = now
	}
	if c.state == StateSynSent {
		c.inputSynSent(now, s)
	} else {
		c.inputOtherwise(now, s)
	}
	c.host.reschedule(c)
}

// inputOtherwise processes a segment in all states but CLOSED, LISTEN, SYN-SENT and TIME-WAIT, in
// the order of RFC 9293 §3.10.7.4 but without step 3 (security).
func (c *Conn) inputOtherwise(now clock.Time, s *Segment) {
	seq := widen(c.rcv.nxt, s.Seq)
	switch {
	case !c.checkStamp(now, s, seq):
		return
	case s.Flags.Has(SYN) && c.state == StateSynReceived && seq == c.rcv.irs:
		c.handleRepeatedSYN(now, s, seq) // the SYN is a retransmission, whatever its payload
		return
	case !c.rcv.acceptable(s, seq): // first step: sequence number
		c.offWindow(now, s, seq)
		return
	case s.Flags.Has(RST): // second step: RST
		c.handleReset(now, seq)
		return
	case s.Flags.Has(SYN): // fourth step: SYN
		c.handleSYN(now)
		return
	case !c.checkACK(now, s, seq): // fifth step: ACK
		return
	}
	if v := s.Options.UserTimeout; v != 0 {
		c.snd.adoptTimeout(now, v)
	}
	switch {
	case c.hs.has(hsDCTCP):
		c.rcv.handleMarkDCTCP(s)
	case c.hs.has(hsECN):
		c.rcv.handleMark(s)
	}
	c.handleContents(now, s, seq)
}

// checkStamp checks the timestamp before the first step, as RFC 7323 §5.3 requires. It reports
// false if it has dropped the segment.
func (c *Conn) checkStamp(now clock.Time, s *Segment, seq uint64) bool {
	switch {
	case !c.hs.has(hsStamps) || s.Flags.Has(RST):
		return true // RFC 7323 §5.2: resets skip PAWS
	case s.Flags.Has(SYN) && (c.state.synchronized() || !s.Options.HasTimestamps):
		return true // the SYN may be from a later connection: a challenge ACK answers it
	case !s.Options.HasTimestamps:
		c.host.drop(DropNoStamp) // RFC 7323 §3.2: without an answer
		return false
	case !c.stamps.old(now, s.Options.TSVal):
		return true
	}
	c.host.drop(DropOldStamp) // RFC 7323 §5.3 R1: drop the segment and acknowledge
	if s.Len == 0 {
		c.rcv.limitedACK(now)
		return false
	}
	c.rcv.reportDuplicate(seq, min(seq+s.segLen(), c.rcv.nxt))
	c.rcv.ackOutOfOrder(s)
	return false
}

// old reports whether a timestamp is older than TS.Recent (PAWS, RFC 7323 §5.3 R1).
func (s *stamps) old(now clock.Time, val uint32) bool {
	return after(s.recent, val) && now.Sub(s.recentAt) <= stampLife
}

// offWindow answers an unacceptable segment with an acknowledgment, unless it is a reset.
func (c *Conn) offWindow(now clock.Time, s *Segment, seq uint64) {
	end := seq + s.segLen()
	switch {
	case s.Flags.Has(RST):
		c.host.drop(DropSequence)
	case s.Flags.Has(SYN) && c.state.synchronized():
		c.handleSYN(now)
	case s.Len > 0 && end <= c.rcv.nxt:
		c.host.drop(DropDuplicate)
		c.rcv.reportDuplicate(seq, end)
		c.rcv.ackOutOfOrder(s)
	case s.Flags.Has(FIN) && end <= c.rcv.nxt:
		c.host.drop(DropDuplicate)
		if c.rcv.allowACK(now) {
			c.rcv.reportDuplicate(seq, end)
			c.rcv.ack.atOnce()
		}
	case s.Len > 0:
		c.host.drop(DropSequence)
		c.rcv.ackOutOfOrder(s)
	default:
		c.host.drop(DropSequence)
		c.rcv.limitedACK(now)
	}
}

// handleReset processes a reset (second step). Only a reset at exactly RCV.NXT closes the
// connection; any other in the window gets a challenge ACK (RFC 5961 §3.2).
func (c *Conn) handleReset(now clock.Time, seq uint64) {
	if seq != c.rcv.nxt {
		c.rcv.challengeACK(now, DropReset)
		return
	}
	switch c.state {
	case StateSynReceived:
		if c.hs.has(hsActive) {
			c.fail(now, ErrRefused)
		} else {
			c.setState(now, evDelete) // back to LISTEN
		}
	case StateClosing, StateLastAck:
		// RFC 9293 §3.10.7.4 reports no error here. We report one if the peer has not acknowledged
		// all data.
		if c.snd.delivered() {
			c.setState(now, evDelete)
		} else {
			c.fail(now, ErrReset)
		}
	default:
		c.fail(now, ErrReset)
	}
}

// handleSYN processes a SYN in the window (fourth step). After a passive OPEN it ends SYN-RECEIVED.
// Otherwise it gets a challenge ACK (RFC 5961 §4.2), which a restarted peer answers by a reset at
// RCV.NXT.
func (c *Conn) handleSYN(now clock.Time) {
	if c.state == StateSynReceived && !c.hs.has(hsActive) {
		c.host.drop(DropSYN)
		c.setState(now, evDelete) // RFC 9293 §3.10.7.4: back to LISTEN
		return
	}
	c.rcv.challengeACK(now, DropSYN)
}

// checkACK processes the acknowledgment (fifth step). It reports whether to process the rest of the
// segment.
func (c *Conn) checkACK(now clock.Time, s *Segment, seq uint64) bool {
	if !s.Flags.Has(ACK) {
		if s.Flags.Has(FIN) && s.Len == 0 && c.hs.has(hsPlain) && c.state.synchronized() {
			// RFC 9293 drops such a segment, but some nodes of the course send a bare FIN and wait
			// forever for its acknowledgment. These nodes send no options. From a peer with
			// options, the segment may come from an attacker who does not know what to acknowledge
			// (RFC 5961 §5).
			return true
		}
		c.host.drop(DropNoAck)
		return false
	}
	ack := widen(c.snd.Una, s.Ack)
	if c.state == StateSynReceived {
		if ack != c.snd.Nxt {
			c.host.reject(DropAck, s)
			return false
		}
		if l := c.links.listener; l != nil && l.backlogged() {
			c.host.drop(DropBacklog)
			return false
		}
		c.completeHandshake(now, s)
	}
	if ack > c.snd.Nxt || ack < c.snd.Una && c.snd.Una-ack > uint64(c.snd.maxWnd) {
		// RFC 5961 §5.2 requires SND.UNA - MAX.SND.WND =< SEG.ACK =< SND.NXT.
		c.rcv.challengeACK(now, DropAck)
		return false
	}
	c.stamps.remember(now, s, seq) // RFC 7323 §5.3 R3, after the ACK is known to be valid
	if ack < c.snd.Una {
		return true // an old ACK; the data may be new
	}
	c.ackArrives(now, s, seq, ack)
	if c.hs.echoed(s) {
		c.snd.rec.ECNEcho(now, c.snd.probing())
	}
	if c.snd.fin != 0 && c.snd.Una > c.snd.fin {
		switch c.state {
		case StateFinWait1, StateClosing, StateLastAck:
			c.setState(now, evACKOfFIN)
		default:
		}
	}
	return !c.state.over()
}

// remember stores the timestamp to echo, if the segment begins at or before the last acknowledgment
// (RFC 7323 §4.3 (2)). So a delayed acknowledgment echoes the first segment that it covers, and
// after a gap the segment that filled it.
func (s *stamps) remember(now clock.Time, g *Segment, seq uint64) {
	if g.Options.HasTimestamps && seq <= s.lastAck && !s.old(now, g.Options.TSVal) {
		s.recent, s.recentAt = g.Options.TSVal, now
	}
}

func (c *Conn) ackArrives(now clock.Time, s *Segment, seq, ack uint64) {
	c.stats.lastAck = now
	r := c.snd.rec.BeginAck(now)
	r.Marked, r.Exact = c.hs.echoed(s), c.hs.has(hsDCTCP)
	if c.hs.has(hsStamps) && s.Options.HasTimestamps {
		r.Echo = recovery.Echo{
			Tick: s.Options.TSEcr - c.stamps.offset, Known: true,
			Transit: s.Options.TSVal - s.Options.TSEcr,
		}
	}
	if ack > c.snd.Una { // the path works, so the ICMP report is out of date
		c.err, c.flags = nil, c.flags&^connSoft
	}
	room, mtuFound, news := c.snd.handleACK(now, s, seq, ack, r)
	if room {
		c.raise(Writable)
	}
	if mtuFound {
		c.host.peers.found(now, c.tuple.RemoteAddr, &c.snd.path)
	}
	if !news {
		return
	}
	if c.snd.rec.Record.Empty() && c.idleAt == clock.Never {
		c.idleAt = now.Later(c.host.idleTime)
	}
	c.sample(now)
}

// handleContents performs steps 6 to 8: the urgent pointer, the data and the FIN. seq is the
// sequence number of the first data byte.
func (c *Conn) handleContents(now clock.Time, s *Segment, seq uint64) {
	if !c.state.mayReceive() {
		if s.Flags.Has(FIN) {
			c.rcv.limitedACK(now) // another FIN
		}
		return
	}
	if s.Flags.Has(URG) && c.rcv.urgent(s) {
		c.raise(Urgent)
	}
	if s.Len > 0 {
		if c.flags.has(connOrphan) && seq+uint64(s.Len) > c.rcv.nxt {
			// The application has closed the connection and cannot read this data: RFC 1122
			// §4.2.2.13 requires a reset.
			c.host.reject(DropClosed, s)
			c.fail(now, ErrAborted)
			return
		}
		if c.rcv.text(now, s, seq) {
			c.raise(Readable)
		}
	}
	if s.Flags.Has(FIN) && c.rcv.holdFIN(seq+uint64(s.Len), s.Len == 0) {
		c.rcv.limitedACK(now)
	}
	if c.rcv.fin == c.rcv.nxt {
		c.rcv.acceptFIN()
		c.raise(Readable)
		c.setState(now, evFIN)
	}
}

// connTable holds connections by their tuples. Keys of IPv4 contain the addresses as bytes: a key
// of 12 bytes takes half the memory of one with two netip.Addr, and half the time to hash.
type connTable struct {
	v4 map[key4]*Conn
	v6 map[Tuple]*Conn // Tuple keeps the zone of link-local addresses
}

type key4 struct {
	local, remote         [4]byte
	localPort, remotePort uint16
}

func (t *Tuple) key4() (k key4, ok bool) {
	if !t.LocalAddr.Is4() || !t.RemoteAddr.Is4() {
		return k, false
	}
	return key4{t.LocalAddr.As4(), t.RemoteAddr.As4(), t.LocalPort, t.RemotePort}, true
}

func (m *connTable) find(t *Tuple) *Conn {
	if k, ok := t.key4(); ok {
		return m.v4[k]
	}
	return m.v6[*t]
}

func (h *Host) drop(d Drop) { h.drops[d]++ }

// reject drops a segment, counts why, and answers it with a reset.
func (h *Host) reject(reason Drop, s *Segment) {
	h.drop(reason)
	h.replies.reset(s)
}
