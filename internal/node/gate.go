package node

import (
	"sync"
	"sync/atomic"
)

// A connection that nobody waits for has no channel: who waits makes it.

// gate is something that happens once.
type gate struct {
	mu sync.Mutex
	c  chan struct{} // opened once it has; nil: nobody waits
}

// opened is the channel of gates that are open.
var opened = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// pass opens the gate for good.
func (g *gate) pass() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.c != nil && g.c != opened {
		close(g.c)
	}
	g.c = opened
}

// passed returns a channel that is closed once the gate is open.
func (g *gate) passed() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.c == nil {
		g.c = make(chan struct{})
	}
	return g.c
}

// bell wakes one who waits, or will. Who rings before anybody has armed it is not heard:
// after arm one looks again before one waits.
type bell struct{ c atomic.Pointer[chan struct{}] }

// arm reports whether the bell had not been armed before.
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

// heard returns where the tokens of an armed bell are.
func (b *bell) heard() <-chan struct{} { return *b.c.Load() }
