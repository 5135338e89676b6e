package node

import (
	"context"
	"errors"
	"net"
	"sync"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// Vir runs the socket calls of founding document 004 in the node's loop.
type Vir struct {
	node  *Node
	calls *stack.Vir // loop only

	mu      sync.Mutex
	changed chan struct{} // closed when a socket changes
}

// virCalls creates the node's Vir on its first use.
type virCalls struct {
	once sync.Once
	vir  *Vir
	used bool // loop only
}

// Vir returns the node's socket calls.
func (n *Node) Vir() *Vir {
	n.vir.once.Do(func() {
		n.vir.vir = &Vir{
			node: n, calls: stack.NewVir(n.stack), changed: make(chan struct{}),
		}
		n.Post(func(clock.Time) { n.vir.used = true })
	})
	return n.vir.vir
}

// changed wakes up blocked calls. Loop only.
func (vc *virCalls) changed() {
	if !vc.used {
		return
	}
	v := vc.vir
	v.mu.Lock()
	defer v.mu.Unlock()
	close(v.changed)
	v.changed = make(chan struct{})
}

// resetVirSockets resets the connections that are still open when the node closes.
func resetVirSockets(s *stack.Stack, now clock.Time) {
	var open []*tcp.Conn
	for c := range s.TCP().Conns() {
		if _, ok := c.Owner.(stack.VirSocketEnd); ok {
			open = append(open, c)
		}
	}
	for _, c := range open {
		c.Abort(now)
	}
}

func (v *Vir) watch() <-chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.changed
}

// Do runs f in the loop. While f returns stack.ErrWouldBlock, Do runs it again after each event,
// until ctx is done.
func (v *Vir) Do(ctx context.Context, f func(calls *stack.Vir, now clock.Time) error) error {
	for {
		changed := v.watch()
		err := v.node.Call(func(_ *stack.Stack, now clock.Time) error { return f(v.calls, now) })
		if !errors.Is(err, stack.ErrWouldBlock) {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-v.node.stopped:
			return net.ErrClosed
		}
		v.node.Time.settle()
	}
}
