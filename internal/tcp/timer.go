package tcp

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// The timeouts of a connection, apart from those of its parts.
const (
	timerFinWait2  = iota // an orphan's patience with its peer
	timerKeepalive        // the peer's silence
	timerIdle             // memory of an idle connection
	numTimers
)

// timers are the instants at which a connection must be advanced.
type timers [numTimers]clock.Time

// deadline returns when the connection must be advanced.
func (c *Conn) deadline() clock.Time {
	first := min(c.rcv.ack.timer.Order(), c.snd.deadline())
	for _, at := range c.timers {
		first = min(first, at.Order())
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
	if c.snd.rec.Resting() && !c.deadline().Due(now) {
		return // what was filed is over
	}
	c.busy()
	c.rcv.ack.advance(now)
	if take(&c.timers[timerIdle], now) {
		c.onIdle(now)
	}
	if err := c.snd.advance(now); err != nil {
		c.giveUp(now, err)
		return
	}
	if take(&c.timers[timerKeepalive], now) && !c.onKeepalive(now) {
		return
	}
	if take(&c.timers[timerFinWait2], now) && c.state == StateFinWait2 {
		c.setState(now, evTimeout)
		return
	}
	if take(&c.snd.rec.At.RTO, now) {
		c.onRTO(now)
	}
	c.snd.rec.ExpireControl(now)
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
	c.snd.rec.Retries++
	if c.snd.wait.exhausted(int(c.snd.rec.Retries), limit) {
		c.giveUp(now, ErrTimeout)
		return
	}
	c.host.counters.Timeouts++
	if mtu := c.snd.path.confirmed(c.snd.Una); mtu != 0 {
		c.host.peers.mtus.learn(now, c.tuple.RemoteAddr, mtu, mtuAge)
		c.snd.narrow(now, mtu)
	} else if c.snd.swallowed(now) {
		c.snd.path.escape(now, c.snd.probesMTU())
		c.snd.refit()
	}
	c.snd.path.lost(c.snd.rec.OnTimeout(now))
	c.sample(now)
}

// stranded starts the clock of a connection that has something to say and no
// route to say it by: it must not hang silently.
func (c *Conn) stranded() {
	if c.state.synchronized() && c.snd.rec.At.RTO == clock.Never &&
		(c.snd.unsent() > 0 || c.snd.closed) && c.state != StateFinWait2 {
		c.doubt(ErrUnreachable)
		c.snd.rec.ArmRTO(c.host.now)
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
	case !c.snd.rec.Record.Empty(): // it is asked again when all is acknowledged
	case !c.silent(now):
		c.timers[timerIdle] = now.Later(c.host.lull)
	default:
		c.trim()
	}
}

// silent reports whether no text has come or gone for as long as memory is kept.
func (c *Conn) silent(now clock.Time) bool {
	return now.Sub(max(c.snd.rec.LastSent, c.rcv.heardAt)) >= c.host.lull
}

// trim gives the memory of the rings back, as far as they are empty.
func (c *Conn) trim() {
	c.snd.tx.TrimConsumer()
	if c.rcv.reassembly.ooo.Len() == 0 {
		c.rcv.rx.TrimProducer()
	}
}

// An idle connection gives back what recovery and the receiver need while data is on its way. What
// is called from outside begins with busy, and the host settles whom it has served.

// busy makes sure that the connection has it.
func (c *Conn) busy() {
	if c.snd.rec.Resting() {
		c.snd.rec.Wake(c.host.now)
		c.rcv.wake()
	}
}

// rest gives it back, all but what is worth remembering.
func (c *Conn) rest() {
	c.snd.rec.Rest()
	c.rcv.rest()
	c.timers[timerIdle] = clock.Never
}

// end gives it back once the connection is over.
func (c *Conn) end() {
	c.snd.rec.End()
	c.rcv.rest()
}

// settle has a connection rest that has nothing to do and will not have soon: one that
// carried no text yet, and one that carries none any more.
func (c *Conn) settle(now clock.Time) {
	switch {
	case c.snd.rec.Resting() || !c.quiet():
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
func (c *Conn) quiet() bool { return c.snd.quiet() && !c.wants() && c.rcv.quiet() }

// wants reports whether the connection has something to send, now or once it may.
func (c *Conn) wants() bool {
	return c.hs.has(flagSynDue) || c.rcv.ack.owed > 0 || c.keep.asks() || c.snd.wants()
}

// over reports whether the connection is none any more, but perhaps a TIME-WAIT.
func (c *Conn) over() bool { return c.state == StateClosed || c.state == StateTimeWait }

// onKeepalive is the keepalive's timer: arrivals note their time and leave it alone. It reports
// whether there is still a connection.
func (c *Conn) onKeepalive(now clock.Time) bool {
	if !c.state.synchronized() || !c.snd.rec.Record.Empty() {
		// What is in flight asks the same question, with time-outs of its own.
		c.keep.asked, c.timers[timerKeepalive] = 0, now.Later(c.keep.Idle)
		return true
	}
	next, err := c.keep.expired(now, max(c.rcv.heardAt, c.stats.lastAck), c.snd.wait.limit)
	c.timers[timerKeepalive] = next
	if err != nil {
		c.giveUp(now, err)
	}
	return err == nil
}

// outputKeepalive asks: a segment from just before the window, which the peer
// has to answer with an acknowledgment and can do nothing else with.
func (c *Conn) outputKeepalive(now clock.Time, t *Train) {
	c.keep.due = false
	c.begin(t, c.snd.Nxt-1, 0)
	c.leave(now, t)
}
