package control

import (
	"context"
	"errors"
)

// The named errors. An operator may hold each against an error of Do with errors.Is; the text says
// what was asked for in front of it.
var (
	// ErrUsage: the request itself is wrong (a percentage of 200, an unknown setting).
	ErrUsage = errors.New("invalid request")
	// ErrUnsupported: this node cannot do that (no such request, congestion control or platform).
	ErrUnsupported = errors.New("not supported")
	// ErrNoSuchSocket: no socket has that number.
	ErrNoSuchSocket = errors.New("no such socket")
	// ErrNoSuchObject: the server has no object of that name.
	ErrNoSuchObject = errors.New("no such object")
	// ErrNoSuchInterface: no interface has that name or number.
	ErrNoSuchInterface = errors.New("no such interface")
	// ErrNoRoute: the route table has nothing for that address.
	ErrNoRoute = errors.New("no route to host")
	// ErrRouteExists: there is a static route to that prefix by that next hop already.
	ErrRouteExists = errors.New("route already exists")
	// ErrNoSuchRoute: there is no static route to that prefix, or none by that next hop.
	ErrNoSuchRoute = errors.New("no such route")
	// ErrInterfaceDown: the interface that leads there is down.
	ErrInterfaceDown = errors.New("interface is down")
	// ErrPortInUse: something listens on that port or holds that connection already.
	ErrPortInUse = errors.New("address already in use")
	// ErrNoPorts: every ephemeral port is taken.
	ErrNoPorts = errors.New("no free local port")
	// ErrRefused: the peer answered the connection request with a reset.
	ErrRefused = errors.New("connection refused")
	// ErrReset: the peer reset the connection.
	ErrReset = errors.New("connection reset by peer")
	// ErrTimeout: the peer did not answer within the limits.
	ErrTimeout = errors.New("connection timed out")
	// ErrUnreachable: the network reported the peer unreachable.
	ErrUnreachable = errors.New("host unreachable")
	// ErrNotConnected: the socket listens, so it has no data to read or to write.
	ErrNotConnected = errors.New("socket is not connected")
	// ErrClosed: that direction of the socket, or the node, is closed already.
	ErrClosed = errors.New("already closed")
	// ErrTooBig: the packet would exceed the route's MTU.
	ErrTooBig = errors.New("message too long")
	// ErrCapturing: a capture runs already.
	ErrCapturing = errors.New("a capture is already running")
	// ErrNotCapturing: no capture runs.
	ErrNotCapturing = errors.New("no capture is running")
	// ErrBusy: another transfer writes to that file.
	ErrBusy = errors.New("another transfer is writing to it")
	// ErrChanged: the file grew or shrank while it was sent.
	ErrChanged = errors.New("file changed during the transfer")
	// ErrMismatch: what came is not what was expected.
	ErrMismatch = errors.New("not the expected file")
	// ErrNoSuchDoor: no door has that number.
	ErrNoSuchDoor = errors.New("no such port forward")
	// ErrNoSuchTransfer: no transfer that is under way has that number.
	ErrNoSuchTransfer = errors.New("no such transfer")
	// ErrStopped: whoever wanted it, or somebody by StopTransfer, had it end early; the text says
	// how far it had come. It is context.Canceled, too.
	ErrStopped error = stopped{}
)

type stopped struct{}

func (stopped) Error() string        { return "stopped" }
func (stopped) Is(target error) bool { return target == context.Canceled }
