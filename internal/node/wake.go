package node

import (
	"sync"
	"sync/atomic"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// A channel is created when a goroutine first waits, because most connections need none.

// gate is an event that happens once.
type gate struct {
	mu sync.Mutex
	c  chan struct{} // closed when the gate is open; nil until a goroutine waits
}

// opened is the channel of every open gate.
var opened = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

func (g *gate) pass() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.c != nil && g.c != opened {
		close(g.c)
	}
	g.c = opened
}

// passed returns a channel that is closed when the gate is open.
func (g *gate) passed() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.c == nil {
		g.c = make(chan struct{})
	}
	return g.c
}

// bell wakes up a waiting goroutine. A ring before the first arm is lost, so check the condition
// again after arm and before waiting.
type bell struct{ c atomic.Pointer[chan struct{}] }

// arm arms the bell. It returns false if the bell was already armed.
func (b *bell) arm() bool {
	if b.c.Load() != nil {
		return false
	}
	c := make(chan struct{}, 1)
	b.c.CompareAndSwap(nil, &c)
	return true
}

// ring leaves a token.
func (b *bell) ring() {
	if c := b.c.Load(); c != nil {
		wake(*c)
	}
}

// tokens returns the channel of tokens of an armed bell.
func (b *bell) tokens() <-chan struct{} { return *b.c.Load() }

// wake leaves a token for a goroutine that waits, or for the next one that will.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// notify reports events to connections and listeners.
func (t *TCP) notify(now clock.Time) {
	for n := t.node; ; {
		tc, tl, ev, ok := n.stack.TCP().NextEvent()
		if !ok {
			return
		}
		if tl != nil {
			n.leading.woke = true
			if l, ok := t.listeners[tl]; ok {
				l.refill()
				continue
			}
		} else if c, ok := tc.Owner.(*Conn); ok {
			n.leading.woke = c.onEvent(ev) || n.leading.woke
			t.relays.event(c, now)
			continue
		}
		n.vir.changed()
	}
}

// onEvent reports an event to the application, and returns whether it woke a goroutine.
func (c *Conn) onEvent(ev tcp.Event) (woke bool) {
	if err := c.tc.Err(); err != nil && c.failure.Load() == nil {
		translated := NetError(err)
		c.failure.Store(&translated)
		ev |= tcp.Readable | tcp.Writable
	}
	if c.tc.ReadDone() {
		c.eof.Store(true)
		ev |= tcp.Readable
	}
	if ev&(tcp.Established|tcp.Closed) != 0 {
		c.established.pass()
	}
	if ev&tcp.Readable != 0 {
		woke = c.in.parked.Load()
		c.in.ready.ring()
		c.node.leading.markReadable(&c.duplex)
	}
	if ev&tcp.Writable != 0 {
		woke = woke || c.out.parked.Load()
		c.out.ready.ring()
	}
	if s := c.tc.State(); !c.finAcked && (s == tcp.StateFinWait2 || s == tcp.StateTimeWait ||
		s == tcp.StateClosed && c.tc.Err() == nil && c.out.closed.Load()) {
		c.finAcked = true
		c.delivered.pass()
	}
	if ev&tcp.Closed != 0 && !c.gone {
		c.gone = true
		if c.tc.Err() == nil {
			c.eof.Store(true)
		}
		c.in.ready.ring()
		c.out.ready.ring()
		c.node.leading.markReadable(&c.duplex)
		c.ended.pass()
		c.in.by.stop()
		c.out.by.stop()
		c.endProbe()
		c.node.Taps.flights.end(c)
		c.node.Taps.endTraces(c.tc)
		c.node.TCP.release(c)
	}
	c.announceEnd()
	return woke
}
