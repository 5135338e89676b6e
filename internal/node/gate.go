package node

import (
	"sync"
	"sync/atomic"
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

// arm reports whether the bell was not armed before.
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

// heard returns the channel of tokens of an armed bell.
func (b *bell) heard() <-chan struct{} { return *b.c.Load() }

// wake leaves a token for a goroutine that waits, or for the next one that will.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
