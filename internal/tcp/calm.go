package tcp

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// calm is what the path has shown of losses. While it has lost nothing, silence is most
// likely a pause: the peer, or a router, waits for a processor. Then what would end a loss
// of 150 µs only sends what has arrived, and where a time-out of a millisecond is allowed
// a pause of four is the rule on a busy machine.
type calm struct {
	// again is how many segments must have been delivered until the path is taken for one
	// that loses nothing once more; zero: it never has lost any.
	again uint64
}

const (
	// calmFloor is the least that a probe or a time-out waits on a path that loses nothing:
	// longer than a process waits for its processor among a few others. It is what a first
	// loss costs at most, if nothing that arrives behind it tells of it sooner.
	calmFloor = 10 * time.Millisecond
	// calmAfter is how many segments without a loss make a path one that loses nothing.
	calmAfter = 1 << 14
	// calmMemory is for how long a loss makes new connections expect some of their own.
	calmMemory = time.Minute
)

// isCalm reports whether silence is rather a pause than a loss.
func (c *Conn) isCalm() bool { return c.stats.delivered >= c.calm.again }

// disturbed notes that the path has lost something.
func (c *Conn) disturbed(now clock.Time) {
	c.calm.again = c.stats.delivered + calmAfter
	c.host.lossAt = now
}

// inherit has a new connection begin with what others have seen of losses lately (RFC 9040
// §3.1): of a short one nothing may arrive behind its only loss.
func (c *Conn) inherit(now clock.Time) {
	if at := c.host.lossAt; at != clock.Never && now.Sub(at) < calmMemory {
		c.calm.again = calmAfter
	}
}

// timeout returns the retransmission time-out as it is now. RFC 6298 §2.4 has a lower bound
// of a second, of which RTOMin is what remains where losses are known.
func (c *Conn) timeout() time.Duration {
	d := c.rtt.timeout(c.stats.backoff, &c.host.cfg)
	if c.isCalm() {
		d = min(max(d, calmFloor<<min(c.stats.backoff, 16)), c.host.cfg.RTOMax)
	}
	return d
}

// awaken puts off, once in a silence, what waits for an answer and is late by about as much
// as it was to wait: this process slept, the sockets were looked at as it woke up, and if
// the whole machine stood still, who answers has slept as well.
func (c *Conn) awaken(now clock.Time) {
	if c.has(flagOverslept) || !c.isCalm() {
		return
	}
	for _, i := range [...]int{timerProbe, timerRTO} {
		if at := c.timers[i]; at.Due(now) && now.Sub(at) >= calmFloor/2 {
			c.timers[i] = in(now, calmFloor)
			c.flags |= flagOverslept
		}
	}
}
