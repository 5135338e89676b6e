package node

import (
	"cmp"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// packetSocket is the part of a net.PacketConn that UDP and raw sockets share: deadlines and Close.
type packetSocket struct {
	node *Node
	// wrapError returns the socket's error for an operation without an address.
	wrapError func(op string, err error) error
	// remove removes the socket from Packets. Loop only.
	remove func()

	arrived chan struct{} // receives a token when something arrives
	readBy  deadline
	writeBy deadline
	closed  atomic.Bool
	done    chan struct{} // closed by Close, or when the node closes
}

func (e *packetSocket) init(n *Node, wrapError func(op string, err error) error, remove func()) {
	e.node, e.wrapError, e.remove = n, wrapError, remove
	e.arrived, e.done = make(chan struct{}, 1), make(chan struct{})
	e.readBy.init()
	e.writeBy.init()
}

// initClosed is like init, for a socket that was never open.
func (e *packetSocket) initClosed(wrapError func(op string, err error) error) {
	e.init(Closed(), wrapError, nil)
	e.closed.Store(true)
	e.end()
}

// over returns the error of a call on a closed socket or after the deadline, or nil.
func (e *packetSocket) over(by *deadline) error {
	if e.closed.Load() {
		return net.ErrClosed
	}
	select {
	case <-by.wait():
		return os.ErrDeadlineExceeded
	default:
		return nil
	}
}

// awaitArrival waits until there may be something to read.
func (e *packetSocket) awaitArrival() {
	defer e.node.Time.settle()
	select {
	case <-e.arrived:
	case <-e.done:
	case <-e.readBy.wait():
	}
}

// awaitRoom waits until room is closed, the socket is closed, or the write deadline has passed.
func (e *packetSocket) awaitRoom(room <-chan struct{}) {
	defer e.node.Time.settle()
	select {
	case <-room:
	case <-e.done:
	case <-e.writeBy.wait():
	}
}

// Close closes the socket. Blocked calls fail with net.ErrClosed.
func (e *packetSocket) Close() error {
	if e.closed.Swap(true) {
		return e.wrapError("close", net.ErrClosed)
	}
	e.end()
	_ = e.node.Call(func(*stack.Stack, clock.Time) error { e.remove(); return nil })
	return nil
}

// shut closes the socket when the node closes. Loop only.
func (e *packetSocket) shut() {
	if !e.closed.Swap(true) {
		e.end()
	}
	e.remove()
}

// end wakes up blocked calls.
func (e *packetSocket) end() {
	close(e.done)
	e.readBy.stop()
	e.writeBy.stop()
}

// SetDeadline sets both deadlines.
func (e *packetSocket) SetDeadline(t time.Time) error {
	return cmp.Or(e.SetReadDeadline(t), e.SetWriteDeadline(t))
}

// SetReadDeadline sets the deadline of reads. The zero time removes it.
func (e *packetSocket) SetReadDeadline(t time.Time) error { return e.setDeadline(&e.readBy, t) }

// SetWriteDeadline sets the deadline of writes. The zero time removes it.
func (e *packetSocket) SetWriteDeadline(t time.Time) error { return e.setDeadline(&e.writeBy, t) }

func (e *packetSocket) setDeadline(by *deadline, t time.Time) error {
	if e.closed.Load() {
		return e.wrapError("set", net.ErrClosed)
	}
	by.set(&e.node.Time, t)
	wake(e.arrived) // makes a blocked read use the new deadline
	return nil
}
