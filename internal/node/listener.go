package node

import (
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"time"

	"github.com/oleiade/lane/v2"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// DefaultBacklog is how many established connections may wait for Accept. If more arrive, their
// handshakes do not complete: the node drops the ACK, and retransmits the SYN-ACK until there is
// room.
const DefaultBacklog = 1024

// acceptQueue is the part of a net.Listener that TCP and RCP share: a queue of connections for
// Accept.
type acceptQueue[C interface {
	net.Conn
	Abort()
}] struct {
	node    *Node
	network string // name of the network in errors
	addr    netip.AddrPort
	backlog *lane.BoundDeque[C]
	ready   chan struct{}
	done    chan struct{}
	closing atomic.Bool
	by      deadline
}

// init sets the length of the queue, where 0 means the default, and returns it.
func (a *acceptQueue[C]) init(n *Node, network string, on netip.AddrPort, backlog int) int {
	if backlog <= 0 {
		backlog = DefaultBacklog
	}
	a.node, a.network, a.addr = n, network, on
	a.backlog = lane.NewBoundDeque[C](uint(backlog))
	a.ready, a.done = make(chan struct{}, 1), make(chan struct{})
	a.by.init()
	return backlog
}

// accept waits for the next connection.
func (a *acceptQueue[C]) accept() (c C, err error) {
	for {
		if a.closing.Load() {
			return c, a.opError("accept", net.ErrClosed)
		}
		if c, ok := a.backlog.Shift(); ok {
			wake(a.ready) // lets the next Accept continue
			return c, nil
		}
		select {
		case <-a.ready:
		case <-a.done:
		case <-a.by.wait():
			return c, a.opError("accept", os.ErrDeadlineExceeded)
		}
		a.node.Time.settle()
	}
}

// Accept waits for the next connection.
func (a *acceptQueue[C]) Accept() (net.Conn, error) {
	c, err := a.accept()
	if err != nil {
		return nil, err // c would be a nil pointer in a non-nil net.Conn
	}
	return c, nil
}

// waiting returns how many connections wait for Accept.
func (a *acceptQueue[C]) waiting() int { return int(a.backlog.Size()) }

// put queues a connection. The caller must know from the stack that there is room. Loop only.
func (a *acceptQueue[C]) put(c C) {
	a.backlog.Append(c)
	wake(a.ready)
}

// end makes Accept fail. It returns false if it has been called before.
func (a *acceptQueue[C]) end() bool {
	if a.closing.Swap(true) {
		return false
	}
	close(a.done)
	a.by.stop()
	return true
}

// close closes the listener and aborts the queued connections. The function remove removes the
// listener from the stack.
func (a *acceptQueue[C]) close(remove func(s *stack.Stack, now clock.Time) error) error {
	if a.closing.Load() || !a.end() {
		return a.opError("close", net.ErrClosed)
	}
	err := a.node.Call(remove)
	for {
		c, ok := a.backlog.Shift()
		if !ok {
			return err
		}
		c.Abort()
	}
}

// Addr returns a *net.TCPAddr, or a *net.UDPAddr over UDP, of the virtual network.
func (a *acceptQueue[C]) Addr() net.Addr { return netAddr(a.network, a.addr) }

// Local returns the listener's virtual address and port.
func (a *acceptQueue[C]) Local() netip.AddrPort { return a.addr }

// SetDeadline sets the deadline of Accept. The zero time removes it.
func (a *acceptQueue[C]) SetDeadline(t time.Time) error {
	if a.closing.Load() {
		return a.opError("set", net.ErrClosed)
	}
	a.by.set(&a.node.Time, t)
	wake(a.ready)
	return nil
}

func (a *acceptQueue[C]) opError(op string, err error) error {
	return &net.OpError{Op: op, Net: a.network, Addr: a.Addr(), Err: err}
}

// Listener accepts TCP connections. It implements net.Listener.
type Listener struct {
	acceptQueue[*Conn]
	tl        *tcp.Listener // loop only
	sid       int
	announces bool          // the node announces its connections and their ends
	options   tcp.Sockopts  // socket options of new connections
	screen    func(*Caught) // gets connections before they are answered; may be nil
}

// AcceptTCP is like Accept, but returns the concrete type.
func (l *Listener) AcceptTCP() (*Conn, error) { return l.accept() }

// refill moves connections from TCP's queue to Accept's queue. TCP limits the sum of both. Loop
// only.
func (l *Listener) refill() {
	for {
		tc, ok := l.tl.Accept()
		if !ok {
			return
		}
		c := newConn(l.node, tc)
		l.node.TCP.adopt(c, l)
		l.put(c)
	}
}

// Close stops listening and resets connections that wait for Accept.
func (l *Listener) Close() error { return l.close(l.remove) }

// remove removes the listener from the stack. Loop only.
func (l *Listener) remove(s *stack.Stack, now clock.Time) error {
	l.tl.Close(now)
	s.Sockets().Remove(l.sid)
	delete(l.node.TCP.listeners, l.tl)
	return nil
}

// closeNow closes the listener. Accept fails with net.ErrClosed. Loop only.
func (l *Listener) closeNow(now clock.Time) {
	if l.end() {
		_ = l.remove(l.node.stack, now) // never fails
	}
}

// Socket returns a snapshot of the listener.
func (l *Listener) Socket() (control.Socket, error) { return SocketInfo(l.node, l.sid) }

// SocketInfo returns a snapshot of the socket with that number.
func SocketInfo(n *Node, sid int) (info control.Socket, err error) {
	err = n.Ask(func(s *stack.Stack, now clock.Time) error {
		info = s.Sockets().Info(sid, now)
		return nil
	})
	return info, err
}

// Done returns a channel that is closed when the listener closes.
func (l *Listener) Done() <-chan struct{} { return l.done }
