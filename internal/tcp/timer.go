package tcp

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/recovery"
)

func (c *Conn) deadline() clock.Time {
	first := min(c.rcv.ack.timer.Order(), c.snd.deadline(), c.finWait2.Order(), c.idleAt.Order())
	if c.keep != nil {
		first = min(first, c.keep.at.Order())
	}
	return clock.Time(first + 1)
}

func fired(at *clock.Time, now clock.Time) bool {
	if !at.Due(now) {
		return false
	}
	*at = clock.Never
	return true
}

// advance runs the timers that are due, those with the mildest effect first: each restarts the
// retransmission timer, which may be due at the same instant.
func (c *Conn) advance(now clock.Time) {
	if c.snd.rec.Idle() && !c.deadline().Due(now) {
		return // what was filed is over
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
		heard := max(c.rcv.heardAt, c.stats.lastAck)
		inFlight := !c.state.synchronized() || !c.snd.rec.Record.Empty()
		if err := c.keep.expired(now, heard, inFlight, c.snd.wait.limit); err != nil {
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

// onRTO is the retransmission timeout, RFC 6298 §5.4-5.6.
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
	} else if c.snd.swallowed(now) {
		c.snd.path.escape(now, c.snd.probesMTU())
		c.snd.refit()
	}
	c.snd.path.lost(c.snd.rec.OnTimeout(now))
	c.sample(now)
}

// An idle connection frees the state that recovery and the receiver need only while data is in
// flight. Calls from outside begin with leaveIdle, and Output ends them with idleIfQuiet.

// leaveIdle allocates that state if the connection is idle.
func (c *Conn) leaveIdle() {
	if c.snd.rec.Idle() {
		c.snd.rec.LeaveIdle(c.host.now)
		c.rcv.leaveIdle()
	}
}

func (r *receiver) leaveIdle() {
	r.reassembly = r.shared.spare.take()
	r.reassembly.head, r.reassembly.ooo.Max = r.rx.Head(), r.shared.cfg.Limits.MaxReceiveRanges
}

// idleIfQuiet makes a connection idle if it has nothing to do, and has carried no data at all or
// none for a while.
func (c *Conn) idleIfQuiet(now clock.Time) {
	if c.snd.rec.Idle() || !c.snd.quiet() || c.wants() || !c.rcv.quiet() {
		return
	}
	if c.stats.bytesSent == 0 && c.rcv.bytes == 0 || c.trim(now) {
		c.enterIdle()
	}
}

// wants reports whether the connection has something to send, now or later.
func (c *Conn) wants() bool {
	return c.hs.has(hsSynDue) || c.rcv.ack.owed > 0 || c.keep.asks() || c.snd.wants()
}

// quiet reports whether nothing is held, and nothing owed to the peer.
func (r *receiver) quiet() bool {
	return r.ack.owed == 0 && r.ack.pending == 0 && r.reassembly.held == 0 &&
		!r.reassembly.reports()
}

// idleTime is how long a connection keeps buffer memory after its last data.
const idleTime = time.Second

// trim frees the memory of empty rings and returns true if the connection has carried no data for a
// while. Otherwise it sets the idle timer.
func (c *Conn) trim(now clock.Time) bool {
	if now.Sub(max(c.snd.rec.LastSent, c.rcv.heardAt)) < c.host.idleTime {
		if c.idleAt == clock.Never {
			c.idleAt = now.Later(c.host.idleTime)
		}
		return false
	}
	c.snd.tx.TrimConsumer()
	if c.rcv.reassembly.ooo.Len() == 0 {
		c.rcv.rx.TrimProducer()
	}
	return true
}

// enterIdle frees the state that only data in flight needs, and keeps what later transfers need.
func (c *Conn) enterIdle() {
	c.snd.rec.EnterIdle()
	c.rcv.freeReassembly()
	c.idleAt = clock.Never
}

// freeState does so once the connection is over.
func (c *Conn) freeState() {
	c.snd.rec.End()
	c.rcv.freeReassembly()
}

func (r *receiver) freeReassembly() {
	if q := r.reassembly; q != nil {
		*q, r.reassembly = reassembly{}, nil
		r.shared.spare.put(q)
	}
}
