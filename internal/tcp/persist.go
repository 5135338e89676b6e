package tcp

import "github.com/tidepool-net/tidepool/internal/clock"

// defaultMSS is RFC 9293 §3.7.1's.
const defaultMSS = 536

// probing reports whether a zero window is being probed.
func (c *Conn) probing() bool { return c.timers[timerPersist] != clock.Never }

// startProbing begins to probe a window that admits nothing while nothing is
// in flight to be answered (RFC 9293 §3.8.6.1).
func (c *Conn) startProbing(now clock.Time) {
	if c.probing() {
		return
	}
	c.snd.probes = 0
	c.rec.At.RTO = clock.Never
	c.timers[timerPersist] = now.Later(c.rec.RTT.Timeout(0, &c.host.recoveries.Options))
}

// stopProbing resumes: the byte that a probe carried, if the peer did not take
// it, goes first. It says nothing about congestion.
func (c *Conn) stopProbing(now clock.Time) {
	c.timers[timerPersist] = clock.Never
	c.snd.probeDue = false
	c.rec.LoseFirst(now)
}

// outputWindowProbe sends one byte into a shut window: the first that waits, or
// the one that the last probe carried.
func (c *Conn) outputWindowProbe(now clock.Time, t *Train) bool {
	c.snd.probeDue = false
	if c.rec.Record.Empty() {
		return c.firstWindowProbe(now, t)
	}
	c.again(now, t, c.rec.RepeatByte(now))
	return true
}

func (c *Conn) firstWindowProbe(now clock.Time, t *Train) bool {
	n := min(c.snd.unsent(), max(1, c.snd.usable()), c.snd.MSS)
	finish := n == c.snd.unsent() && c.finishes(now, n)
	if n == 0 && !finish {
		return false
	}
	seq := c.snd.Nxt
	var flags Flags
	if finish {
		flags, c.snd.fin = FIN, seq+uint64(n)
	}
	open := c.snd.usable() > 0
	c.begin(t, seq, flags)
	c.snd.lend(t, seq, n, c.snd.MSS)
	c.rec.Restart(now)
	c.record(now, seq, n, finish)
	c.snd.smallEnd = c.snd.Una // a probe is short by nature, and holds nothing up
	c.rec.At.Probe = clock.Never
	if open {
		c.timers[timerPersist] = clock.Never // ordinary data, if less than we like to send
	} else {
		c.rec.At.RTO = clock.Never // the persist timer is in charge
	}
	c.leave(now, t)
	return true
}

// onPersist probes the peer's window, ever more slowly (RFC 9293 §3.8.6.1). A
// peer that answers may keep it shut for ever; one that is silent is gone.
func (c *Conn) onPersist(now clock.Time) {
	c.rec.Retries++
	if c.wait.exhausted(int(c.rec.Retries), c.host.cfg.Retries.Data) {
		c.giveUp(now, ErrTimeout)
		return
	}
	c.rec.Kept.Counts.WindowProbes++
	c.snd.probeDue = true
	c.snd.probes = min(c.snd.probes+1, 32)
	c.timers[timerPersist] = now.Later(c.rec.RTT.Timeout(c.snd.probes, &c.host.recoveries.Options))
}
