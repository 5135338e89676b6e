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

// ends is the part of a net.PacketConn that UDP and raw sockets share: two deadlines, and Close.
type ends struct {
	node *Node
	// refused returns the socket's error for an operation without an address.
	refused func(op string, err error) error
	// remove removes the socket from Packets. Loop only.
	remove func()

	arrived chan struct{} // receives a token when something arrives
	readBy  deadline
	writeBy deadline
	closed  atomic.Bool
	done    chan struct{} // closed by Close, or when the node closes
}

func (e *ends) init(n *Node, refused func(op string, err error) error, remove func()) {
	e.node, e.refused, e.remove = n, refused, remove
	e.arrived, e.done = make(chan struct{}, 1), make(chan struct{})
	e.readBy.init()
	e.writeBy.init()
}

// initClosed is like init, for a socket that was never open.
func (e *ends) initClosed(refused func(op string, err error) error) {
	e.init(Closed(), refused, nil)
	e.closed.Store(true)
	e.end()
}

// over returns the error of a call on a closed socket or after the deadline, or nil.
func (e *ends) over(by *deadline) error {
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
func (e *ends) awaitArrival() {
	defer e.node.Time.settle()
	select {
	case <-e.arrived:
	case <-e.done:
	case <-e.readBy.wait():
	}
}

// awaitRoom waits until room is closed, the socket is closed, or the write deadline has passed.
func (e *ends) awaitRoom(room <-chan struct{}) {
	defer e.node.Time.settle()
	select {
	case <-room:
	case <-e.done:
	case <-e.writeBy.wait():
	}
}

// Close closes the socket. Blocked calls fail with net.ErrClosed.
func (e *ends) Close() error {
	if e.closed.Swap(true) {
		return e.refused("close", net.ErrClosed)
	}
	e.end()
	_ = e.node.Call(func(*stack.Stack, clock.Time) error { e.remove(); return nil })
	return nil
}

// shut closes the socket when the node closes. Loop only.
func (e *ends) shut() {
	if !e.closed.Swap(true) {
		e.end()
	}
	e.remove()
}

// end wakes up blocked calls.
func (e *ends) end() {
	close(e.done)
	e.readBy.stop()
	e.writeBy.stop()
}

// SetDeadline sets both deadlines.
func (e *ends) SetDeadline(t time.Time) error {
	return cmp.Or(e.SetReadDeadline(t), e.SetWriteDeadline(t))
}

// SetReadDeadline sets the deadline of reads. The zero time removes it.
func (e *ends) SetReadDeadline(t time.Time) error { return e.setDeadline(&e.readBy, t) }

// SetWriteDeadline sets the deadline of writes. The zero time removes it.
func (e *ends) SetWriteDeadline(t time.Time) error { return e.setDeadline(&e.writeBy, t) }

func (e *ends) setDeadline(by *deadline, t time.Time) error {
	if e.closed.Load() {
		return e.refused("set", net.ErrClosed)
	}
	by.set(&e.node.Time, t)
	wake(e.arrived) // makes a blocked read use the new deadline
	return nil
}
