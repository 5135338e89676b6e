package tidepool

import (
	"context"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// Vir is the socket calls of founding document 004 §5.5: sockets are numbers from
// 3 on, and an error is one of §5.6's, which errors.Is and errors.As find. Calls
// that wait give up when their context ends, with its cause.
type Vir struct{ vir *node.Vir }

// Socket is virSocket: it registers a socket under the smallest number that is free.
func (v *Vir) Socket() (int, error) { return v.vir.Socket() }

// Bind is virBind: the socket gets a port, 1024 to 65535.
func (v *Vir) Bind(socket, port int) error { return v.vir.Bind(socket, port) }

// Listen is virListen: the socket, which is bound, takes connections.
func (v *Vir) Listen(socket int) error { return v.vir.Listen(socket) }

// Connect is virConnect: it waits until the connection is established.
func (v *Vir) Connect(ctx context.Context, socket int, to netip.AddrPort) error {
	return v.vir.Connect(ctx, socket, to)
}

// Accept is virAccept: it waits for a connection and returns that one's socket.
func (v *Vir) Accept(ctx context.Context, socket int) (int, error) {
	return v.vir.Accept(ctx, socket)
}

// Read is virRead: it waits for at least one byte. Behind the last it is io.EOF.
func (v *Vir) Read(ctx context.Context, socket int, p []byte) (int, error) {
	return v.vir.Read(ctx, socket, p)
}

// Write is virWrite: it waits until the send buffer has taken all of p.
func (v *Vir) Write(ctx context.Context, socket int, p []byte) (int, error) {
	return v.vir.Write(ctx, socket, p)
}

// ShutDown is virShutDown: it blocks reading, writing or both, and the number stays.
// A socket that listens can only be shut down for both.
func (v *Vir) ShutDown(socket int, how How) error {
	return v.vir.ShutDown(socket, how)
}

// Close is virClose: what was written is delivered, and the number is free at once.
func (v *Vir) Close(socket int) error { return v.vir.Close(socket) }

// How is what a ShutDown blocks.
type How = stack.VirHow

// The types of virShutDown.
const (
	ShutRead  = stack.ShutRead
	ShutWrite = stack.ShutWrite
	ShutBoth  = stack.ShutBoth
)

// VirError is one of the exceptions of founding document 004 §5.6. It is an error, whose
// text begins with the document's name for it.
type VirError = stack.VirError

// The exceptions, in the document's order.
const (
	ErrBoundedSocket         = stack.ErrBoundedSocket         // bound or connected before
	ErrDestinationUnreadable = stack.ErrDestinationUnreadable // no way leads to the remote address
	ErrErrorTCPState         = stack.ErrErrorTCPState         // the call needs another state
	ErrInvalidPort           = stack.ErrInvalidPort           // not from 1024 to 65535
	ErrInvalidSocket         = stack.ErrInvalidSocket         // not from 3 to 65535
	ErrPortUsedUp            = stack.ErrPortUsedUp            // no port is left
	ErrReadBlock             = stack.ErrReadBlock             // shut down for reading
	ErrServerCannotShutdown  = stack.ErrServerCannotShutdown  // a server in one direction
	ErrServerHasClose        = stack.ErrServerHasClose        // it listened, and was shut down
	ErrServerClosed          = stack.ErrServerClosed          // the connection has ended
	ErrSocketUsedUp          = stack.ErrSocketUsedUp          // no number is left
	ErrUnboundSocket         = stack.ErrUnboundSocket         // it has no port
	ErrUninitialSocket       = stack.ErrUninitialSocket       // no such socket
	ErrUsedPort              = stack.ErrUsedPort              // another socket has the port
	ErrWriteBlock            = stack.ErrWriteBlock            // shut down for writing
)
