package node

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// Vir implements the socket calls of founding document 004. Blocking calls wait until ctx is done.
type Vir struct {
	node *Node
	core *stack.Vir // loop only

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
			node: n, core: stack.NewVir(n.stack), changed: make(chan struct{}),
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

// resetVir resets the connections that are still open when the node closes.
func resetVir(s *stack.Stack, now clock.Time) {
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

// do runs a call in the loop, again and again until it does not block.
func (v *Vir) do(ctx context.Context, f func(now clock.Time) error) error {
	for {
		changed := v.watch()
		err := v.node.Call(func(_ *stack.Stack, now clock.Time) error { return f(now) })
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

// Socket is virSocket.
func (v *Vir) Socket() (h int, err error) {
	err = v.do(context.Background(), func(clock.Time) error {
		h, err = v.core.VirSocket()
		return err
	})
	return h, err
}

// Bind is virBind.
func (v *Vir) Bind(h, port int) error {
	return v.do(context.Background(), func(clock.Time) error { return v.core.VirBind(h, port) })
}

// Listen is virListen.
func (v *Vir) Listen(h int) error {
	return v.do(context.Background(), func(clock.Time) error { return v.core.VirListen(h) })
}

// Connect is virConnect. It waits until the connection is established.
func (v *Vir) Connect(ctx context.Context, h int, to netip.AddrPort) error {
	return v.do(ctx, func(now clock.Time) error { return v.core.VirConnect(now, h, to) })
}

// Accept is virAccept. It waits for a connection and returns its socket.
func (v *Vir) Accept(ctx context.Context, h int) (accepted int, err error) {
	err = v.do(ctx, func(clock.Time) error {
		accepted, err = v.core.VirAccept(h)
		return err
	})
	return accepted, err
}

// Read is virRead. It waits for at least one byte, or returns io.EOF.
func (v *Vir) Read(ctx context.Context, h int, p []byte) (n int, err error) {
	err = v.do(ctx, func(now clock.Time) error {
		n, err = v.core.VirRead(now, h, p)
		return err
	})
	return n, err
}

// Write is virWrite. It waits until the send buffer has accepted all of p.
func (v *Vir) Write(ctx context.Context, h int, p []byte) (n int, err error) {
	for n < len(p) {
		err = v.do(ctx, func(now clock.Time) error {
			k, err := v.core.VirWrite(now, h, p[n:])
			n += k
			return err
		})
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// ShutDown is virShutDown.
func (v *Vir) ShutDown(h int, how stack.VirHow) error {
	return v.do(context.Background(), func(now clock.Time) error {
		return v.core.VirShutDown(now, h, how)
	})
}

// Close is virClose.
func (v *Vir) Close(h int) error {
	return v.do(context.Background(), func(now clock.Time) error { return v.core.VirClose(now, h) })
}
