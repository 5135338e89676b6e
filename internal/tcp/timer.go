package tcp

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
)

// The time-outs of a connection.
const (
	timerRTO       = iota // retransmission, of the SYN too (RFC 6298)
	timerProbe            // tail loss probe (RFC 8985 §7)
	timerReorder          // RACK's reordering window (§6.2)
	timerPersist          // zero window probe
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

// first returns the earliest of them and another instant.
func (t *timers) first(other clock.Time) clock.Time {
	// Never is zero: less one, and without a sign, it is the last of all.
	first := uint64(other) - 1
	for _, at := range t {
		first = min(first, uint64(at)-1)
	}
	return clock.Time(first + 1)
}

// deadline returns when the connection must be advanced.
func (c *Conn) deadline() clock.Time {
	first := c.timers.first(c.rcv.ack.timer)
	if c.has(flagTimed) {
		return clock.Earliest(first, controlDeadline(c))
	}
	return first
}

// take reports whether a timer is due, and stops it.
func (t *timers) take(i int, now clock.Time) bool {
	if !t[i].Due(now) {
		return false
	}
	t[i] = clock.Never
	return true
}

// maxBackoff bounds the doublings of a time-out that are counted: long before, it is RTOMax.
const maxBackoff = 32

// idleTime is how long a connection keeps the memory of its last transfer.
const idleTime = time.Second

// advance does what is due. Gentler remedies go first: each one restarts the
// retransmission time-out that may be due at the same instant.
func (c *Conn) advance(now clock.Time) {
	if c.work == nil && !c.deadline().Due(now) {
		return // what was filed is over
	}
	c.busy()
	c.awaken(now)
	c.timers.take(timerPace, now) // what it let wait leaves by being asked again
	c.rcv.ack.advance(now)
	if c.timers.take(timerReorder, now) {
		c.onReorderTimer(now)
	}
	if c.timers.take(timerProbe, now) {
		c.onProbeTimer(now)
	}
	if c.timers.take(timerPersist, now) {
		c.onPersist(now)
	}
	if c.timers.take(timerIdle, now) {
		c.onIdle(now)
	}
	if c.timers.take(timerCork, now) {
		c.snd.nagle.corkOut = true
	}
	if c.timers.take(timerUser, now) && c.wait.expired(now, c.waits(), &c.timers[timerUser]) {
		c.giveUp(now, ErrUserTimeout)
		return
	}
	if c.timers.take(timerKeepalive, now) {
		c.onKeepalive(now)
		if c.state == StateClosed {
			return
		}
	}
	if c.timers.take(timerFinWait2, now) && c.state == StateFinWait2 {
		c.setState(now, evTimeout)
		return
	}
	if c.timers.take(timerRTO, now) {
		c.onRTO(now)
	}
	if c.has(flagTimed) {
		expireControl(c, now)
	}
}

// armRTO starts the retransmission time-out.
func (c *Conn) armRTO(now clock.Time) {
	d := c.timeout()
	if c.snd.onlyFIN() && c.host.cfg.FinTimeout != 0 {
		d = c.host.cfg.FinTimeout
	}
	c.timers[timerRTO] = in(now, d)
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
	c.stats.retries++
	if c.wait.exhausted(c.stats.retries, limit) {
		c.timedOut(now)
		return
	}
	c.trouble.counts.Timeouts++
	c.trouble.spells.begin(now)
	c.host.counters.Timeouts++
	c.stats.backoff = min(c.stats.backoff+1, maxBackoff)
	c.mtuTimeout(now)
	if !c.rec.sent.empty() {
		c.loseAll(now)
	}
	c.armRTO(now)
	c.sample(now)
}

// loseAll thinks everything lost that has had time to arrive, and starts over from one segment.
func (c *Conn) loseAll(now clock.Time) {
	v, r := &c.rec, c.beginRound(now)
	v.loseOverdue(r)
	c.path.lost(r.mtu.lost)
	kind := congestion.Timeout
	if v.kind == restarting && v.timedOut == c.snd.una {
		kind = congestion.TimeoutAgain
	}
	next := episode{kind: restarting, point: c.snd.nxt, timedOut: c.snd.una, force: true}
	if v.mayForward(r) {
		next.forward = forwardFirst
	}
	switch v.kind {
	case steady:
		c.beginUndo(true)
	case recovering:
		v.undo.open = false // what fast recovery did must not be credited to the time-out
	case restarting:
	}
	v.episode = next
	c.trouble.tlp = tlp{}
	c.flags &^= flagOverslept
	c.timers[timerProbe], c.timers[timerReorder] = clock.Never, clock.Never
	c.cc.OnLoss(c.lossEvent(now, kind, r.flight))
}

// onSYNTimeout sends the SYN or SYN-ACK again, or gives up.
func (c *Conn) onSYNTimeout(now clock.Time) {
	c.stats.retries++
	most := c.host.cfg.SynRetries
	if c.state == StateSynReceived && !c.has(flagActive) {
		most = c.host.cfg.SynAckRetries
	}
	if c.wait.exhausted(c.stats.retries, most) {
		c.timedOut(now)
		return
	}
	c.stats.backoff = min(c.stats.backoff+1, maxBackoff)
	c.host.counters.Timeouts++
	c.sendSYN(now)
}

// synTimeout returns how long to wait for the answer to a SYN.
func (c *Conn) synTimeout() time.Duration {
	if d := c.host.cfg.SynTimeout; d != 0 {
		return d
	}
	return c.rtt.timeout(c.stats.backoff, &c.host.cfg)
}

// onPersist probes the peer's window, ever more slowly (RFC 9293 §3.8.6.1). A
// peer that answers may keep it shut for ever; one that is silent is gone.
func (c *Conn) onPersist(now clock.Time) {
	c.stats.retries++
	if c.wait.exhausted(c.stats.retries, c.host.cfg.DataRetries) {
		c.timedOut(now)
		return
	}
	c.trouble.counts.WindowProbes++
	c.snd.probeDue = true
	c.snd.probes = min(c.snd.probes+1, 32)
	c.timers[timerPersist] = in(now, c.rtt.timeout(c.snd.probes, &c.host.cfg))
}

// stranded starts the clock of a connection that has something to say and no
// route to say it by: it must not hang silently.
func (c *Conn) stranded() {
	if c.state.synchronized() && c.timers[timerRTO] == clock.Never &&
		(c.snd.unsent() > 0 || c.snd.closed) && c.state != StateFinWait2 {
		c.doubt(ErrUnreachable)
		c.armRTO(c.host.now)
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
	return now.Sub(max(c.stats.lastSent, c.rcv.heardAt)) >= c.host.lull
}

// trim gives the memory of the rings back, as far as they are empty.
func (c *Conn) trim() {
	c.snd.tx.TrimConsumer()
	if c.rcv.reassembly.ooo.Len() == 0 {
		c.rcv.rx.TrimProducer()
	}
}
