package tcp

import (
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/recovery"
)

func fired(at *clock.Time, now clock.Time) bool {
	if !at.Due(now) {
		return false
	}
	*at = clock.Never
	return true
}

// advance runs the timers that are due. The retransmission timer comes last, because the others may
// restart it.
func (c *Conn) advance(now clock.Time) {
	if c.snd.rec.Idle() && !c.deadline().Due(now) {
		return // the timer behind the heap's key no longer runs
	}
	c.leaveIdle()
	c.rcv.ack.advance(now)
	if fired(&c.idleAt, now) && c.snd.rec.Record.Empty() {
		c.trim(now)
	}
	if err := c.snd.advance(now); err != nil {
		c.giveUp(now, err)
		return
	}
	if c.keep != nil && fired(&c.keep.at, now) {
		lastSeen := max(c.rcv.lastDataAt, c.stats.lastAck)
		inFlight := !c.state.synchronized() || !c.snd.rec.Record.Empty()
		if err := c.keep.expired(now, lastSeen, inFlight, c.snd.wait.limit); err != nil {
			c.giveUp(now, err)
			return
		}
	}
	if fired(&c.finWait2, now) && c.state == StateFinWait2 {
		c.setState(now, evTimeout)
		return
	}
	if fired(&c.snd.rec.At.RTO, now) {
		c.onRTO(now)
	}
	c.snd.rec.ExpireControl(now)
}

// onRTO handles a retransmission timeout (RFC 6298 §5.4-5.6): it retransmits, or ends the
// connection after too many retries.
func (c *Conn) onRTO(now clock.Time) {
	retries := &c.host.cfg.Retries
	limit := retries.Data
	switch {
	case c.state == StateSynReceived && !c.hs.has(hsActive):
		limit = retries.SynAck
	case !c.state.synchronized():
		limit = retries.Syn
	case c.snd.onlyFIN():
		limit = retries.Fin
	}
	c.snd.rec.Retries++
	if c.snd.wait.exhausted(int(c.snd.rec.Retries), limit) {
		c.giveUp(now, ErrTimeout)
		return
	}
	c.host.counters.Timeouts++
	if !c.state.synchronized() {
		c.snd.rec.Backoff = min(c.snd.rec.Backoff+1, recovery.MaxBackoff)
		c.sendSYN(now)
		return
	}
	if mtu := c.snd.path.confirmed(c.snd.Una); mtu != 0 {
		c.host.peers.mtus.learn(now, c.tuple.RemoteAddr, mtu, mtuAge)
		c.snd.narrow(now, mtu)
	} else if c.snd.blackHole(now) {
		c.snd.path.onBlackHole(now, c.snd.probesMTU())
		c.snd.updateMSS()
	}
	c.snd.path.lost(c.snd.rec.OnTimeout(now))
	c.sample(now)
}
