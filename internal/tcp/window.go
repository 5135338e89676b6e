package tcp

import "github.com/tidepool-net/tidepool/internal/clock"

// peerWindow returns the window that a segment offers.
func (c *Conn) peerWindow(s *Segment) int {
	if s.Flags.Has(SYN) {
		return int(s.Window) // RFC 7323 §2.2: never scaled
	}
	return int(s.Window) << c.snd.scale
}

// updateSendWindow takes the peer's window from the newest segment (RFC 9293
// §3.10.7.4, fifth step). The step asks for SND.WL2 =< SEG.ACK where SEG.SEQ is
// SND.WL1, and for SND.UNA =< SEG.ACK always. SND.WL2 never exceeds SND.UNA, so
// checkACK, which lets no older ACK come here, has checked both.
func (c *Conn) updateSendWindow(now clock.Time, s *Segment, seq uint64, r *round) {
	if seq < c.snd.wl1 {
		return
	}
	c.snd.wl1 = seq
	wnd := c.peerWindow(s)
	r.moved = wnd != c.snd.wnd
	c.snd.wnd = wnd
	c.snd.maxWnd = max(c.snd.maxWnd, wnd)
	if wnd > 0 && c.probing() {
		c.stopProbing(now)
	}
}

// usableWindow returns how many bytes of new data the peer's window admits; it
// is negative after the peer has taken a window back.
func (c *Conn) usableWindow() int { return c.snd.wnd - int(c.snd.nxt-c.snd.una) }

// windowField returns the window to advertise, and remembers the right edge
// that it promises: an edge is never taken back (RFC 9293 §3.8.6.2.1), and not
// moved by less than a segment or half the buffer (§3.8.6.2.2), lest the peer
// be invited to send crumbs.
func (c *Conn) windowField() uint16 {
	if edge := c.nextEdge(); edge >= c.rcv.edge+c.edgeStep() {
		c.rcv.edge = edge
	}
	scale := c.rcv.scale
	if c.state == StateSynSent || c.state == StateSynReceived {
		scale = 0
	}
	// Rounded up: what the peer reads may lie up to a unit beyond the edge, and less far beyond it
	// next time. RFC 7323 §2.4: all of it must be honoured, and limit does; nextEdge left room.
	unit := uint64(1) << scale
	return uint16(min((c.rcv.edge-c.rcv.nxt+unit-1)>>scale, 65535))
}

// limit returns the end of what the peer may have been told that it may send.
func (s *receiveSpace) limit() uint64 { return s.edge + 1<<s.scale - 1 }

// nextEdge returns the right edge that the free buffer allows.
func (c *Conn) nextEdge() uint64 {
	free := c.tune.recv
	if !c.has(flagReadClosed) {
		free -= c.rx.Len()
	}
	unit := 1 << c.rcv.scale
	if unit > 1 {
		free -= unit // so that rounding up cannot promise what is not there
	}
	most := 65535 << c.rcv.scale
	if !c.state.synchronized() {
		most = 65535
	}
	return c.rcv.nxt + uint64(min(max(free, 0), most))&^uint64(unit-1)
}

// edgeStep is the least by which the right edge moves.
func (c *Conn) edgeStep() uint64 {
	return uint64(max(1, min(c.tune.recv/2, max(c.rcv.mss, defaultMSS))))
}

// defaultMSS is RFC 9293 §3.7.1's.
const defaultMSS = 536

// Consumed is RECEIVE (§3.10.3): the user has read from Rx. The peer is told at
// once when it may be waiting for it: when the window that it knows is less
// than half the buffer, and can be doubled.
func (c *Conn) Consumed(now clock.Time) {
	if !c.state.mayReceive() {
		return
	}
	c.growReceive(now)
	known := c.rcv.edge - c.rcv.nxt
	if known >= uint64(c.tune.recv/2) || known >= uint64(32768)<<c.rcv.scale {
		return
	}
	edge := c.nextEdge()
	if edge >= c.rcv.edge+max(c.edgeStep(), known) {
		c.rcv.acks = max(c.rcv.acks, 1)
		c.touch()
	}
}

// probing reports whether a zero window is being probed.
func (c *Conn) probing() bool { return c.timers[timerPersist] != clock.Never }

// startProbing begins to probe a window that admits nothing while nothing is
// in flight to be answered (RFC 9293 §3.8.6.1).
func (c *Conn) startProbing(now clock.Time) {
	if c.probing() {
		return
	}
	c.snd.probes = 0
	c.timers[timerRTO] = clock.Never
	c.timers[timerPersist] = in(now, c.rtt.timeout(0, &c.host.cfg))
}

// stopProbing resumes: the byte that a probe carried, if the peer did not take
// it, goes first. It says nothing about congestion.
func (c *Conn) stopProbing(now clock.Time) {
	c.timers[timerPersist] = clock.Never
	c.snd.probeDue = false
	if c.sent.empty() {
		return
	}
	if rec := c.sent.at(c.sent.first); rec.place == inFlight {
		c.sent.move(c.sent.first, rec, lost)
	}
	c.armRTO(now)
}
