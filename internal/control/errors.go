package control

import (
	"context"
	"errors"
)

// These are the named errors. Errors of Do wrap them, for errors.Is, and begin with the subject of
// the request.
var (
	// ErrUsage means that the request itself is wrong (a percentage of 200, an unknown setting).
	ErrUsage = errors.New("invalid request")
	// ErrUnsupported means that this node cannot do that (no such request, congestion control or
	// platform).
	ErrUnsupported = errors.New("not supported")
	// ErrNoSuchSocket means that no socket has that number.
	ErrNoSuchSocket = errors.New("no such socket")
	// ErrNoSuchObject means that the server has no object with that name.
	ErrNoSuchObject = errors.New("no such object")
	// ErrNoSuchInterface means that no interface has that name or number.
	ErrNoSuchInterface = errors.New("no such interface")
	// ErrNoRoute means that no route matches the address.
	ErrNoRoute = errors.New("no route to host")
	// ErrRouteExists means that the static route to that prefix and next hop exists.
	ErrRouteExists = errors.New("route already exists")
	// ErrNoSuchRoute means that no static route to that prefix, or through that next hop, exists.
	ErrNoSuchRoute = errors.New("no such route")
	// ErrInterfaceDown means that the interface of the route is down.
	ErrInterfaceDown = errors.New("interface is down")
	// ErrPortInUse means that the port has a listener, or the connection already exists.
	ErrPortInUse = errors.New("address already in use")
	// ErrNoPorts means that every ephemeral port is in use, or that a limit of sockets is reached.
	ErrNoPorts = errors.New("no free local port")
	// ErrRefused means that the peer reset the connection request, or that its UDP port is closed.
	ErrRefused = errors.New("connection refused")
	// ErrReset means that the peer reset the connection.
	ErrReset = errors.New("connection reset by peer")
	// ErrTimeout means that the peer did not answer within the limits.
	ErrTimeout = errors.New("connection timed out")
	// ErrUnreachable means that the network reported the peer unreachable.
	ErrUnreachable = errors.New("host unreachable")
	// ErrNotConnected means that the socket is a listener, or a UDP socket without a peer.
	ErrNotConnected = errors.New("socket is not connected")
	// ErrClosed means that this direction of the socket, or the node, is already closed.
	ErrClosed = errors.New("already closed")
	// ErrTooBig means that the packet would exceed the route's MTU.
	ErrTooBig = errors.New("message too long")
	// ErrCapturing means that a capture is already running.
	ErrCapturing = errors.New("a capture is already running")
	// ErrNotCapturing means that no capture is running.
	ErrNotCapturing = errors.New("no capture is running")
	// ErrBusy means that another transfer is writing to that file.
	ErrBusy = errors.New("another transfer is writing to this file")
	// ErrChanged means that the file was changed during the transfer.
	ErrChanged = errors.New("file changed during the transfer")
	// ErrMismatch means that the received file is not the expected one.
	ErrMismatch = errors.New("not the expected file")
	// ErrNoSuchDoor means that no port forward has that number.
	ErrNoSuchDoor = errors.New("no such port forward")
	// ErrNoSuchTransfer means that no running transfer has that number.
	ErrNoSuchTransfer = errors.New("no such transfer")
	// ErrNoSuchName means that the DNS has no such name, or no address of it.
	ErrNoSuchName = errors.New("no such host")
	// ErrStopped means that the client or a StopTransfer stopped the request; the text has its
	// progress. It is also a context.Canceled.
	ErrStopped error = stopped{}
)

type stopped struct{}

func (stopped) Error() string        { return "stopped" }
func (stopped) Is(target error) bool { return target == context.Canceled }
