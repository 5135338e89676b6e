package tcp

import (
	"github.com/tidepool-net/tidepool/internal/clock"
)

// An idle connection gives back what recovery and the receiver need while data is on its way. What
// is called from outside begins with busy, and the host settles whom it has served.

// rests reports whether the connection has given that back.
func (c *Conn) rests() bool { return c.rec.outstanding == nil }

// busy makes sure that the connection has it.
func (c *Conn) busy() {
	if c.rests() {
		c.rec.wake(c.host.now)
		c.rcv.wake()
	}
}

// rest gives it back, all but what is worth remembering.
func (c *Conn) rest() {
	c.rec.rest()
	c.rcv.rest()
	c.timers[timerIdle] = clock.Never
}

// end gives it back once the connection is over.
func (c *Conn) end() {
	c.rec.end()
	c.rcv.rest()
}

// pool keeps objects that nobody has for those that need one next, at most maxPool.
type pool[T any] struct{ free []*T }

const maxPool = 64

func (p *pool[T]) take() *T {
	n := len(p.free) - 1
	if n < 0 {
		return new(T)
	}
	v := p.free[n]
	p.free[n], p.free = nil, p.free[:n]
	return v
}

func (p *pool[T]) put(v *T) {
	if len(p.free) < maxPool {
		p.free = append(p.free, v)
	}
}

// settle has a connection rest that has nothing to do and will not have soon: one that
// carried no text yet, and one that carries none any more.
func (c *Conn) settle(now clock.Time) {
	switch {
	case c.rests() || !c.quiet():
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
	return c.rec.sent.empty() && !c.wants() && !c.probing() &&
		c.rec.ep.kind == steady && c.timers[timerPace] == clock.Never && c.rcv.quiet()
}

// wants reports whether the connection has something to send, now or once it may.
func (c *Conn) wants() bool {
	return c.has(flagSynDue) || c.rcv.ack.owed > 0 || c.asks() || c.wait.due || c.snd.probeDue ||
		!c.rests() && c.rec.lasting.tlp.due || c.state.synchronized() && c.snd.waits()
}

// over reports whether the connection is none any more, but perhaps a TIME-WAIT.
func (c *Conn) over() bool { return c.state == StateClosed || c.state == StateTimeWait }
