package tidepool

import (
	"context"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// Vir has the socket calls of founding document 004 §5.5. Sockets are numbers from 3 up, and errors
// are the exceptions of §5.6, which errors.Is and errors.As find. Blocked calls return the cause of
// their context when it ends.
type Vir struct{ vir *node.Vir }

// Socket is virSocket: it creates a socket with the smallest free number.
func (v *Vir) Socket() (socket int, err error) {
	err = v.vir.Do(context.Background(), func(calls *stack.Vir, _ clock.Time) error {
		socket, err = calls.VirSocket()
		return err
	})
	return socket, err
}

// Bind is virBind: it gives the socket a port, 1024 to 65535.
func (v *Vir) Bind(socket, port int) error {
	return v.vir.Do(context.Background(), func(calls *stack.Vir, _ clock.Time) error {
		return calls.VirBind(socket, port)
	})
}

// Listen is virListen: the bound socket accepts connections.
func (v *Vir) Listen(socket int) error {
	return v.vir.Do(context.Background(), func(calls *stack.Vir, _ clock.Time) error {
		return calls.VirListen(socket)
	})
}

// Connect is virConnect: it waits until the connection is established.
func (v *Vir) Connect(ctx context.Context, socket int, to netip.AddrPort) error {
	return v.vir.Do(ctx, func(calls *stack.Vir, now clock.Time) error {
		return calls.VirConnect(now, socket, to)
	})
}

// Accept is virAccept: it waits for a connection and returns its socket.
func (v *Vir) Accept(ctx context.Context, socket int) (accepted int, err error) {
	err = v.vir.Do(ctx, func(calls *stack.Vir, _ clock.Time) error {
		accepted, err = calls.VirAccept(socket)
		return err
	})
	return accepted, err
}

// Read is virRead: it waits for at least one byte. At the end of the stream it returns io.EOF.
func (v *Vir) Read(ctx context.Context, socket int, p []byte) (n int, err error) {
	err = v.vir.Do(ctx, func(calls *stack.Vir, now clock.Time) error {
		n, err = calls.VirRead(now, socket, p)
		return err
	})
	return n, err
}

// Write is virWrite: it waits until all of p is in the send buffer.
func (v *Vir) Write(ctx context.Context, socket int, p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		err = v.vir.Do(ctx, func(calls *stack.Vir, now clock.Time) error {
			k, err := calls.VirWrite(now, socket, p[n:])
			n += k
			return err
		})
	}
	return n, err
}

// ShutDown is virShutDown: it disables reading, writing or both, and keeps the number. A listening
// socket can only be shut down for both.
func (v *Vir) ShutDown(socket int, how How) error {
	return v.vir.Do(context.Background(), func(calls *stack.Vir, now clock.Time) error {
		return calls.VirShutDown(now, socket, how)
	})
}

// Close is virClose: written data is still delivered, and the number is free at once.
func (v *Vir) Close(socket int) error {
	return v.vir.Do(context.Background(), func(calls *stack.Vir, now clock.Time) error {
		return calls.VirClose(now, socket)
	})
}

// How selects what ShutDown disables.
type How = stack.VirHow

// The types of virShutDown.
const (
	ShutRead  = stack.ShutRead
	ShutWrite = stack.ShutWrite
	ShutBoth  = stack.ShutBoth
)

// VirError is one of the exceptions of founding document 004 §5.6. Its text begins with the
// document's name for it.
type VirError = stack.VirError

// The exceptions, in the document's order.
const (
	ErrBoundedSocket         = stack.ErrBoundedSocket         // bound or connected before
	ErrDestinationUnreadable = stack.ErrDestinationUnreadable // no route to the remote address
	ErrErrorTCPState         = stack.ErrErrorTCPState         // the call needs another state
	ErrInvalidPort           = stack.ErrInvalidPort           // not in 1024 to 65535
	ErrInvalidSocket         = stack.ErrInvalidSocket         // not in 3 to 65535
	ErrPortUsedUp            = stack.ErrPortUsedUp            // no free port
	ErrReadBlock             = stack.ErrReadBlock             // shut down for reading
	ErrServerCannotShutdown  = stack.ErrServerCannotShutdown  // a listening socket in one direction
	ErrServerHasClose        = stack.ErrServerHasClose        // the listening socket was shut down
	ErrServerClosed          = stack.ErrServerClosed          // the connection has ended
	ErrSocketUsedUp          = stack.ErrSocketUsedUp          // no free number
	ErrUnboundSocket         = stack.ErrUnboundSocket         // the socket has no port
	ErrUninitialSocket       = stack.ErrUninitialSocket       // no such socket
	ErrUsedPort              = stack.ErrUsedPort              // another socket uses the port
	ErrWriteBlock            = stack.ErrWriteBlock            // shut down for writing
)
