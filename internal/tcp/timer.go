package tcp

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// The time-outs of a connection, apart from those of recovery and of delayed acknowledgments.
const (
	timerPersist   = iota // zero window probe
	timerFinWait2         // an orphan's patience with its peer
	timerKeepalive        // the peer's silence
	timerIdle             // memory of an idle connection
	timerPace             // the next train of a paced connection
	timerCork             // how long a cork holds
	timerUser             // the user timeout
	numTimers
)

// timers are the instants at which a connection must be advanced.
type timers [numTimers]clock.Time

// deadline returns when the connection must be advanced.
func (c *Conn) deadline() clock.Time {
	at := &c.rec.At
	first := min(c.rcv.ack.timer.Order(), at.RTO.Order(), at.Probe.Order(), at.Reorder.Order())
	for _, at := range c.timers {
		first = min(first, at.Order())
	}
	if c.rec.CC.Timed {
		first = min(first, c.rec.CC.Deadline().Order())
	}
	return clock.Time(first + 1)
}

// take reports whether a timer is due, and stops it.
func take(at *clock.Time, now clock.Time) bool {
	if !at.Due(now) {
		return false
	}
	*at = clock.Never
	return true
}

// idleTime is how long a connection keeps the memory of its last transfer.
const idleTime = time.Second

// advance does what is due. Gentler remedies go first: each one restarts the
// retransmission time-out that may be due at the same instant.
func (c *Conn) advance(now clock.Time) {
	if c.rec.Resting() && !c.deadline().Due(now) {
		return // what was filed is over
	}
	c.busy()
	take(&c.timers[timerPace], now) // what it let wait leaves by being asked again
	c.rcv.ack.advance(now)
	c.path.lost(c.rec.Advance(now))
	if take(&c.timers[timerPersist], now) {
		c.onPersist(now)
	}
	if take(&c.timers[timerIdle], now) {
		c.onIdle(now)
	}
	if take(&c.timers[timerCork], now) {
		c.snd.nagle.corkOut = true
	}
	if take(&c.timers[timerUser], now) && c.wait.expired(now, c.waits(), &c.timers[timerUser]) {
		c.giveUp(now, ErrUserTimeout)
		return
	}
	if take(&c.timers[timerKeepalive], now) && !c.onKeepalive(now) {
		return
	}
	if take(&c.timers[timerFinWait2], now) && c.state == StateFinWait2 {
		c.setState(now, evTimeout)
		return
	}
	if take(&c.rec.At.RTO, now) {
		c.onRTO(now)
	}
	c.rec.ExpireControl(now)
}

// onRTO is the retransmission time-out, RFC 6298 §5.4-5.6.
func (c *Conn) onRTO(now clock.Time) {
	if !c.state.synchronized() {
		c.onSYNTimeout(now)
		return
	}
	limit := c.host.cfg.Retries.Data
	if c.snd.onlyFIN() {
		limit = c.host.cfg.Retries.Fin
	}
	c.rec.Retries++
	if c.wait.exhausted(int(c.rec.Retries), limit) {
		c.giveUp(now, ErrTimeout)
		return
	}
	c.host.counters.Timeouts++
	if mtu := c.path.confirmed(c.snd.Una); mtu != 0 {
		c.narrow(now, mtu)
	} else if c.swallowed(now) {
		c.path.escape(now, c.probesMTU())
		c.refit()
	}
	c.path.lost(c.rec.OnTimeout(now))
	c.sample(now)
}

// swallowed reports whether the path may swallow large packets without a report. If not even a
// small one arrives, it is not the size.
func (c *Conn) swallowed(now clock.Time) bool {
	return c.host.cfg.MTUProbing != MTUProbingOff && c.rec.Retries >= blackHoleRetries &&
		!c.rec.Record.Empty() && now.Sub(c.wait.since) >= blackHoleTime &&
		c.path.MTU > leastMTU && c.rec.Record.FirstSize() >= c.snd.MSS
}

// stranded starts the clock of a connection that has something to say and no
// route to say it by: it must not hang silently.
func (c *Conn) stranded() {
	if c.state.synchronized() && c.rec.At.RTO == clock.Never &&
		(c.snd.unsent() > 0 || c.snd.closed) && c.state != StateFinWait2 {
		c.doubt(ErrUnreachable)
		c.rec.ArmRTO(c.host.now)
	}
}

// armFinWait2 bounds the wait for the FIN of a peer whose data nobody would
// read: RFC 9293 §3.6 lets such a half-open end be given up.
func (c *Conn) armFinWait2(now clock.Time) {
	if c.state == StateFinWait2 && c.rcv.closed && c.snd.closed {
		c.timers[timerFinWait2] = now.Later(c.host.cfg.FinWait2)
	}
}

// idle notes that nothing is in flight; a second later its memory goes (rest), unless
// the connection is busy again.
func (c *Conn) idle(now clock.Time) {
	if c.timers[timerIdle] == clock.Never {
		c.timers[timerIdle] = now.Later(c.host.lull)
	}
}

func (c *Conn) onIdle(now clock.Time) {
	switch {
	case !c.rec.Record.Empty(): // it is asked again when all is acknowledged
	case !c.silent(now):
		c.timers[timerIdle] = now.Later(c.host.lull)
	default:
		c.trim()
	}
}

// silent reports whether no text has come or gone for as long as memory is kept.
func (c *Conn) silent(now clock.Time) bool {
	return now.Sub(max(c.rec.LastSent, c.rcv.heardAt)) >= c.host.lull
}

// trim gives the memory of the rings back, as far as they are empty.
func (c *Conn) trim() {
	c.snd.tx.TrimConsumer()
	if c.rcv.reassembly.ooo.Len() == 0 {
		c.rcv.rx.TrimProducer()
	}
}

// limitBy notes what limits the sender now. Whoever listens hears of a change.
func (c *Conn) limitBy(now clock.Time, by Limit) {
	changed := by != c.limit.by
	c.limit.set(now, by)
	if by == LimitCwnd || by == LimitRecovery {
		c.rec.CwndLimited()
	}
	if changed {
		c.sample(now)
	}
}

// An idle connection gives back what recovery and the receiver need while data is on its way. What
// is called from outside begins with busy, and the host settles whom it has served.

// busy makes sure that the connection has it.
func (c *Conn) busy() {
	if c.rec.Resting() {
		c.rec.Wake(c.host.now)
		c.rcv.wake()
	}
}

// rest gives it back, all but what is worth remembering.
func (c *Conn) rest() {
	c.rec.Rest()
	c.rcv.rest()
	c.timers[timerIdle] = clock.Never
}

// end gives it back once the connection is over.
func (c *Conn) end() {
	c.rec.End()
	c.rcv.rest()
}

// settle has a connection rest that has nothing to do and will not have soon: one that
// carried no text yet, and one that carries none any more.
func (c *Conn) settle(now clock.Time) {
	switch {
	case c.rec.Resting() || !c.quiet():
	case c.stats.bytesSent == 0 && c.rcv.bytes == 0:
		c.rest()
	case c.silent(now):
		c.trim()
		c.rest()
	default:
		c.idle(now)
	}
}

// quiet reports whether nothing is in flight, held, owed or being mended.
func (c *Conn) quiet() bool {
	return c.rec.Record.Empty() && !c.wants() && !c.probing() &&
		c.rec.Episode.Open() && c.timers[timerPace] == clock.Never && c.rcv.quiet()
}

// wants reports whether the connection has something to send, now or once it may.
func (c *Conn) wants() bool {
	return c.hs.has(flagSynDue) || c.rcv.ack.owed > 0 || c.keep.asks() || c.wait.due ||
		c.snd.probeDue || !c.rec.Resting() && c.rec.Kept.TLP.Due ||
		c.state.synchronized() && c.snd.waits()
}

// over reports whether the connection is none any more, but perhaps a TIME-WAIT.
func (c *Conn) over() bool { return c.state == StateClosed || c.state == StateTimeWait }

// onKeepalive is the keepalive's timer: arrivals note their time and leave it alone. It reports
// whether there is still a connection.
func (c *Conn) onKeepalive(now clock.Time) bool {
	if !c.state.synchronized() || !c.rec.Record.Empty() {
		// What is in flight asks the same question, with time-outs of its own.
		c.keep.asked, c.timers[timerKeepalive] = 0, now.Later(c.keep.Idle)
		return true
	}
	next, err := c.keep.expired(now, max(c.rcv.heardAt, c.stats.lastAck), c.wait.limit)
	c.timers[timerKeepalive] = next
	if err != nil {
		c.giveUp(now, err)
	}
	return err == nil
}

// waits reports whether anything is on its way, or would be.
func (c *Conn) waits() bool {
	return !c.state.synchronized() || !c.rec.Record.Empty() || c.probing()
}

// outputKeepalive asks: a segment from just before the window, which the peer
// has to answer with an acknowledgment and can do nothing else with.
func (c *Conn) outputKeepalive(now clock.Time, t *Train) {
	c.keep.due = false
	c.begin(t, c.snd.Nxt-1, 0)
	c.leave(now, t)
}
