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

// defaultMSS is RFC 9293 §3.7.1's.
const defaultMSS = 536

// Consumed is RECEIVE (§3.10.3): the user has read from Rx.
func (c *Conn) Consumed(now clock.Time) {
	if c.state.mayReceive() && c.rcv.consumed(now, c.rtt.srtt) {
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
	if c.rec.sent.empty() {
		return
	}
	if rec := c.rec.sent.at(c.rec.sent.first); rec.place == inFlight {
		c.rec.sent.move(c.rec.sent.first, rec, lost)
	}
	c.armRTO(now)
}
