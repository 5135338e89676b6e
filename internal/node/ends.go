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

// ends is what a socket for packets has of a net.PacketConn, whatever its packets are: two
// deadlines, those who wait, and that it is closed some day.
type ends struct {
	node *Node
	// refused is the socket's error of an operation that names no address.
	refused func(op string, err error) error
	// strike removes the socket from the books. The loop's.
	strike func()

	arrived chan struct{} // a token: look at what came
	readBy  deadline
	writeBy deadline
	closed  atomic.Bool
	done    chan struct{} // closed by Close, or with the node
}

func (e *ends) init(n *Node, refused func(op string, err error) error, strike func()) {
	e.node, e.refused, e.strike = n, refused, strike
	e.arrived, e.done = make(chan struct{}, 1), make(chan struct{})
	e.readBy.init()
	e.writeBy.init()
}

// initClosed is init for a socket that nobody has opened.
func (e *ends) initClosed(refused func(op string, err error) error) {
	e.init(Closed(), refused, nil)
	e.closed.Store(true)
	e.end()
}

// over is why a call does not begin, or does not go on waiting; nil: it may.
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

// awaitArrival waits until a read is worth another look.
func (e *ends) awaitArrival() {
	select {
	case <-e.arrived:
	case <-e.done:
	case <-e.readBy.wait():
	}
}

// awaitRoom waits until room is closed, or a write is over.
func (e *ends) awaitRoom(room <-chan struct{}) {
	select {
	case <-room:
	case <-e.done:
	case <-e.writeBy.wait():
	}
}

// Close closes the socket; calls that wait fail with net.ErrClosed.
func (e *ends) Close() error {
	if e.closed.Swap(true) {
		return e.refused("close", net.ErrClosed)
	}
	e.end()
	_ = e.node.Call(func(*stack.Stack, clock.Time) error { e.strike(); return nil })
	return nil
}

// shut is Close with the node. The loop's.
func (e *ends) shut() {
	if !e.closed.Swap(true) {
		e.end()
	}
	e.strike()
}

// end wakes whoever waits.
func (e *ends) end() {
	close(e.done)
	e.readBy.stop()
	e.writeBy.stop()
}

// SetDeadline sets both deadlines.
func (e *ends) SetDeadline(t time.Time) error {
	return cmp.Or(e.SetReadDeadline(t), e.SetWriteDeadline(t))
}

// SetReadDeadline makes reads give up at t; the zero time means never.
func (e *ends) SetReadDeadline(t time.Time) error { return e.setDeadline(&e.readBy, t) }

// SetWriteDeadline makes writes give up at t; the zero time means never.
func (e *ends) SetWriteDeadline(t time.Time) error { return e.setDeadline(&e.writeBy, t) }

func (e *ends) setDeadline(by *deadline, t time.Time) error {
	if e.closed.Load() {
		return e.refused("set", net.ErrClosed)
	}
	by.set(&e.node.Time, t)
	wake(e.arrived) // a read that waits looks at the new deadline
	return nil
}
