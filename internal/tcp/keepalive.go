package tcp

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Keepalive asks a silent peer whether it is still there (RFC 9293 §3.8.4).
type Keepalive struct {
	// Idle is how long nothing has to arrive before the first question; zero: never.
	Idle time.Duration
	// Interval is the time between questions; zero: a tenth of Idle.
	Interval time.Duration
	// Count is how many go unanswered before the connection is given up; zero: 9.
	Count int
}

func (k Keepalive) withDefaults() Keepalive {
	orDefault(&k.Interval, k.Idle/10)
	orDefault(&k.Count, 9)
	return k
}

// keepalive is a connection's side of it.
type keepalive struct {
	Keepalive
	since clock.Time // it is on
	asked int        // questions since something arrived
	due   bool       // one is to be sent
	last  clock.Time // when the last was asked
}

// SetKeepalive has a silent peer asked, or no more.
func (c *Conn) SetKeepalive(now clock.Time, k Keepalive) {
	c.keep, c.timers[timerKeepalive] = nil, clock.Never
	if k.Idle > 0 {
		c.keep = &keepalive{Keepalive: k.withDefaults(), since: now}
		c.armKeepalive(now)
	}
	c.touch()
}

// armKeepalive starts to count the peer's silence.
func (c *Conn) armKeepalive(now clock.Time) {
	c.timers[timerKeepalive] = in(now, c.keep.Idle)
}

// asks reports whether a question is to be sent.
func (c *Conn) asks() bool { return c.keep != nil && c.keep.due }

// onKeepalive finds out how long the peer has been silent: arrivals note their
// time and leave the timer alone.
func (c *Conn) onKeepalive(now clock.Time) {
	if !c.state.synchronized() || !c.rec.sent.empty() {
		// What is in flight asks the same question, with time-outs of its own.
		c.keep.asked = 0
		c.armKeepalive(now)
		return
	}
	heard := max(c.rcv.heardAt, c.stats.lastAck, c.keep.since)
	if next := heard.Add(c.keep.Idle); next > now {
		c.keep.asked = 0
		c.timers[timerKeepalive] = next
		return
	}
	if heard >= c.keep.last {
		c.keep.asked = 0 // the answer came in no time, or just after the last look
	}
	// A user timeout counts time, not questions; one at least must have gone unanswered.
	if limit := c.wait.limit; limit > 0 {
		if c.keep.asked > 0 && now.Sub(heard) >= limit {
			c.giveUp(now, ErrUserTimeout)
			return
		}
	} else if c.keep.asked >= c.keep.Count {
		c.giveUp(now, ErrTimeout)
		return
	}
	c.keep.asked++
	c.keep.due, c.keep.last = true, now
	c.timers[timerKeepalive] = in(now, c.keep.Interval)
}

// outputKeepalive asks: a segment from just before the window, which the peer
// has to answer with an acknowledgment and can do nothing else with.
func (c *Conn) outputKeepalive(now clock.Time, t *Train) {
	c.keep.due = false
	c.begin(t, c.snd.nxt-1, 0)
	c.leave(now, t)
}
