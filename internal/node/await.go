package node

import (
	"cmp"
	"context"
	"net"
)

// awaitAnswer waits until the connection is established or has failed. If ctx ends first, it aborts
// the connection.
func (d *duplex) awaitAnswer(ctx context.Context) error {
	defer d.node.Time.settle()
	select {
	case <-d.established.passed():
	case <-ctx.Done():
		d.Abort()
		return context.Cause(ctx)
	case <-d.node.stopped:
		return net.ErrClosed
	}
	if failure := d.failure.Load(); failure != nil {
		return *failure
	}
	return nil
}

// AwaitRead waits until Read would not block. It holds no lock, so nothing else may read meanwhile.
func (d *duplex) AwaitRead() error {
	for d.waits() {
		if !d.in.ready.arm() && !d.node.leading.lead(d) {
			d.in.parked.Store(true)
			<-d.in.ready.tokens()
			d.in.parked.Store(false)
		}
	}
	if d.closed.Load() {
		return d.opError("read", net.ErrClosed)
	}
	return nil
}

// waits reports whether Read would block.
func (d *duplex) waits() bool {
	return d.in.ring.Len() == 0 && !d.eof.Load() && d.failure.Load() == nil && !d.closed.Load()
}

// AwaitFailure waits, after the peer's FIN, until the connection fails, and returns the error. If
// the application closes the connection, the error is net.ErrClosed. Nothing else may read
// meanwhile.
func (d *duplex) AwaitFailure() error {
	for d.failure.Load() == nil && !d.closed.Load() {
		if !d.in.ready.arm() {
			<-d.in.ready.tokens()
		}
	}
	return cmp.Or(d.Failed(), d.opError("read", net.ErrClosed))
}
