package tcp

import "github.com/tidepool-net/tidepool/internal/clock"

// defaultMSS is RFC 9293 §3.7.1's.
const defaultMSS = 536

// Consumed is RECEIVE (§3.10.3): the user has read from Rx.
func (c *Conn) Consumed(now clock.Time) {
	if c.state.mayReceive() && c.rcv.consumed(now, c.rec.rtt.srtt) {
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
	c.rec.at.rto = clock.Never
	c.timers[timerPersist] = in(now, c.rec.rtt.timeout(0, &c.host.cfg))
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
	c.rec.armRTO(now)
}
