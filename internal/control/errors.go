package control

import (
	"context"
	"errors"
)

// The named errors. Errors of Do wrap them, for errors.Is, and begin with the subject of the
// request.
var (
	// ErrUsage: the request itself is wrong (a percentage of 200, an unknown setting).
	ErrUsage = errors.New("invalid request")
	// ErrUnsupported: this node cannot do that (no such request, congestion control or platform).
	ErrUnsupported = errors.New("not supported")
	// ErrNoSuchSocket: no socket has that number.
	ErrNoSuchSocket = errors.New("no such socket")
	// ErrNoSuchObject: the server has no object with that name.
	ErrNoSuchObject = errors.New("no such object")
	// ErrNoSuchInterface: no interface has that name or number.
	ErrNoSuchInterface = errors.New("no such interface")
	// ErrNoRoute: no route matches the address.
	ErrNoRoute = errors.New("no route to host")
	// ErrRouteExists: the static route to that prefix through that next hop already exists.
	ErrRouteExists = errors.New("route already exists")
	// ErrNoSuchRoute: there is no static route to that prefix, or not through that next hop.
	ErrNoSuchRoute = errors.New("no such route")
	// ErrInterfaceDown: the interface of the route is down.
	ErrInterfaceDown = errors.New("interface is down")
	// ErrPortInUse: the port has a listener, or the connection already exists.
	ErrPortInUse = errors.New("address already in use")
	// ErrNoPorts: every ephemeral port is in use.
	ErrNoPorts = errors.New("no free local port")
	// ErrRefused: the peer answered the connection request with a reset.
	ErrRefused = errors.New("connection refused")
	// ErrReset: the peer reset the connection.
	ErrReset = errors.New("connection reset by peer")
	// ErrTimeout: the peer did not answer within the limits.
	ErrTimeout = errors.New("connection timed out")
	// ErrUnreachable: the network reported the peer unreachable.
	ErrUnreachable = errors.New("host unreachable")
	// ErrNotConnected: the socket is a listener, so it has no data to read or write.
	ErrNotConnected = errors.New("socket is not connected")
	// ErrClosed: that direction of the socket, or the node, is already closed.
	ErrClosed = errors.New("already closed")
	// ErrTooBig: the packet would exceed the route's MTU.
	ErrTooBig = errors.New("message too long")
	// ErrCapturing: a capture is already running.
	ErrCapturing = errors.New("a capture is already running")
	// ErrNotCapturing: no capture is running.
	ErrNotCapturing = errors.New("no capture is running")
	// ErrBusy: another transfer is writing to that file.
	ErrBusy = errors.New("another transfer is writing to this file")
	// ErrChanged: the file grew or shrank during the transfer.
	ErrChanged = errors.New("file changed during the transfer")
	// ErrMismatch: the received file is not the expected one.
	ErrMismatch = errors.New("not the expected file")
	// ErrNoSuchDoor: no port forward has that number.
	ErrNoSuchDoor = errors.New("no such port forward")
	// ErrNoSuchTransfer: no running transfer has that number.
	ErrNoSuchTransfer = errors.New("no such transfer")
	// ErrNoSuchName: the DNS has no such name, or no address of it.
	ErrNoSuchName = errors.New("no such host")
	// ErrStopped: the client or a StopTransfer stopped the request; the text has its progress. It
	// is also a context.Canceled.
	ErrStopped error = stopped{}
)

type stopped struct{}

func (stopped) Error() string        { return "stopped" }
func (stopped) Is(target error) bool { return target == context.Canceled }
