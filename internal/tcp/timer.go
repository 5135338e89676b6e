package tcp

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
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
	at := &c.rec.at
	first := min(order(c.rcv.ack.timer), order(at.rto), order(at.probe), order(at.reorder))
	for _, at := range c.timers {
		first = min(first, order(at))
	}
	if c.rec.cc.timed {
		first = min(first, order(c.rec.cc.Controller.(congestion.Timed).Deadline()))
	}
	return clock.Time(first + 1)
}

// order makes never, which is zero, the last instant of all: less one, and without a sign.
func order(at clock.Time) uint64 { return uint64(at) - 1 }

// take reports whether a timer is due, and stops it.
func take(at *clock.Time, now clock.Time) bool {
	if !at.Due(now) {
		return false
	}
	*at = clock.Never
	return true
}

// maxBackoff bounds the doublings of a time-out that are counted: long before, it is RTOMax.
const maxBackoff = 32

// idleTime is how long a connection keeps the memory of its last transfer.
const idleTime = time.Second

// advance does what is due. Gentler remedies go first: each one restarts the
// retransmission time-out that may be due at the same instant.
func (c *Conn) advance(now clock.Time) {
	if c.rests() && !c.deadline().Due(now) {
		return // what was filed is over
	}
	c.busy()
	c.rec.awaken(now)
	take(&c.timers[timerPace], now) // what it let wait leaves by being asked again
	c.rcv.ack.advance(now)
	if take(&c.rec.at.reorder, now) {
		c.path.lost(c.rec.onReorderTimer(now))
	}
	if take(&c.rec.at.probe, now) {
		c.rec.onProbeTimer(now)
	}
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
	if take(&c.timers[timerKeepalive], now) {
		c.onKeepalive(now)
		if c.state == StateClosed {
			return
		}
	}
	if take(&c.timers[timerFinWait2], now) && c.state == StateFinWait2 {
		c.setState(now, evTimeout)
		return
	}
	if take(&c.rec.at.rto, now) {
		c.onRTO(now)
	}
	if c.rec.cc.timed {
		c.rec.expireControl(now)
	}
}

// onRTO is the retransmission time-out, RFC 6298 §5.4-5.6.
func (c *Conn) onRTO(now clock.Time) {
	if !c.state.synchronized() {
		c.onSYNTimeout(now)
		return
	}
	limit := c.host.cfg.DataRetries
	if c.snd.onlyFIN() {
		limit = c.host.cfg.FinRetries
	}
	c.rec.retries++
	if c.wait.exhausted(int(c.rec.retries), limit) {
		c.giveUp(now, ErrTimeout)
		return
	}
	c.rec.lasting.counts.Timeouts++
	c.rec.lasting.spells.begin(now)
	c.host.counters.Timeouts++
	c.mtuTimeout(now)
	c.path.lost(c.rec.onTimeout(now))
	c.sample(now)
}

// onSYNTimeout sends the SYN or SYN-ACK again, or gives up.
func (c *Conn) onSYNTimeout(now clock.Time) {
	c.rec.retries++
	most := c.host.cfg.SynRetries
	if c.state == StateSynReceived && !c.has(flagActive) {
		most = c.host.cfg.SynAckRetries
	}
	if c.wait.exhausted(int(c.rec.retries), most) {
		c.giveUp(now, ErrTimeout)
		return
	}
	c.rec.backoff = min(c.rec.backoff+1, maxBackoff)
	c.host.counters.Timeouts++
	c.sendSYN(now)
}

// synTimeout returns how long to wait for the answer to a SYN.
func (c *Conn) synTimeout() time.Duration {
	if d := c.host.cfg.SynTimeout; d != 0 {
		return d
	}
	return c.rec.rtt.timeout(c.rec.backoff, &c.host.cfg)
}

// onPersist probes the peer's window, ever more slowly (RFC 9293 §3.8.6.1). A
// peer that answers may keep it shut for ever; one that is silent is gone.
func (c *Conn) onPersist(now clock.Time) {
	c.rec.retries++
	if c.wait.exhausted(int(c.rec.retries), c.host.cfg.DataRetries) {
		c.giveUp(now, ErrTimeout)
		return
	}
	c.rec.lasting.counts.WindowProbes++
	c.snd.probeDue = true
	c.snd.probes = min(c.snd.probes+1, 32)
	c.timers[timerPersist] = in(now, c.rec.rtt.timeout(c.snd.probes, &c.host.cfg))
}

// stranded starts the clock of a connection that has something to say and no
// route to say it by: it must not hang silently.
func (c *Conn) stranded() {
	if c.state.synchronized() && c.rec.at.rto == clock.Never &&
		(c.snd.unsent() > 0 || c.snd.closed) && c.state != StateFinWait2 {
		c.doubt(ErrUnreachable)
		c.rec.armRTO(c.host.now)
	}
}

// armFinWait2 bounds the wait for the FIN of a peer whose data nobody would
// read: RFC 9293 §3.6 lets such a half-open end be given up.
func (c *Conn) armFinWait2(now clock.Time) {
	if c.state == StateFinWait2 && c.rcv.closed && c.snd.closed {
		c.timers[timerFinWait2] = in(now, c.host.cfg.FinWait2)
	}
}

// idle notes that nothing is in flight; a second later its memory goes (rest), unless
// the connection is busy again.
func (c *Conn) idle(now clock.Time) {
	if c.timers[timerIdle] == clock.Never {
		c.timers[timerIdle] = in(now, c.host.lull)
	}
}

func (c *Conn) onIdle(now clock.Time) {
	switch {
	case !c.rec.sent.empty(): // it is asked again when all is acknowledged
	case !c.silent(now):
		c.timers[timerIdle] = in(now, c.host.lull)
	default:
		c.trim()
	}
}

// silent reports whether no text has come or gone for as long as memory is kept.
func (c *Conn) silent(now clock.Time) bool {
	return now.Sub(max(c.rec.lastSent, c.rcv.heardAt)) >= c.host.lull
}

// trim gives the memory of the rings back, as far as they are empty.
func (c *Conn) trim() {
	c.snd.tx.TrimConsumer()
	if c.rcv.reassembly.ooo.Len() == 0 {
		c.rcv.rx.TrimProducer()
	}
}
