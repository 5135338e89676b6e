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

// DefaultBacklog is how many established connections may wait for Accept. The handshake of one more
// is not completed: its ACK is dropped, and the SYN-ACK retransmitted until there is room.
const DefaultBacklog = 1024

// accepting is what listeners of TCP and RCP have of a net.Listener: connections that wait for
// Accept, and calls that wait for connections.
type accepting[C interface {
	net.Conn
	Abort()
}] struct {
	node    *Node
	network string // as errors call it
	addr    netip.AddrPort
	backlog *lane.BoundDeque[C]
	ready   chan struct{}
	done    chan struct{}
	closing atomic.Bool
	by      deadline
}

// init has at most backlog connections wait; it returns that, or the default for 0.
func (a *accepting[C]) init(n *Node, network string, on netip.AddrPort, backlog int) int {
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
func (a *accepting[C]) accept() (c C, err error) {
	for {
		if a.closing.Load() {
			return c, a.opError("accept", net.ErrClosed)
		}
		if c, ok := a.backlog.Shift(); ok {
			wake(a.ready) // another Accept may wait beside this one
			return c, nil
		}
		select {
		case <-a.ready:
		case <-a.done:
		case <-a.by.wait():
			return c, a.opError("accept", os.ErrDeadlineExceeded)
		}
	}
}

// Accept waits for the next connection.
func (a *accepting[C]) Accept() (net.Conn, error) {
	c, err := a.accept()
	if err != nil {
		return nil, err // not a C that is nil
	}
	return c, nil
}

// waiting is how many connections wait for Accept.
func (a *accepting[C]) waiting() int { return int(a.backlog.Size()) }

// put has a connection wait for Accept. The loop's, which never has too many.
func (a *accepting[C]) put(c C) {
	a.backlog.Append(c)
	wake(a.ready)
}

// end has Accept fail from now on, and reports whether it did not before.
func (a *accepting[C]) end() bool {
	if a.closing.Swap(true) {
		return false
	}
	close(a.done)
	a.by.stop()
	return true
}

// close is Close: strike takes the listener from the stack. Connections that nobody has accepted
// are aborted.
func (a *accepting[C]) close(strike func(s *stack.Stack, now clock.Time) error) error {
	if a.closing.Load() || !a.end() {
		return a.opError("close", net.ErrClosed)
	}
	err := a.node.Call(strike)
	for {
		c, ok := a.backlog.Shift()
		if !ok {
			return err
		}
		c.Abort()
	}
}

// Addr returns a *net.TCPAddr, or a *net.UDPAddr over UDP, of the virtual network.
func (a *accepting[C]) Addr() net.Addr { return netAddr(a.network, a.addr) }

// Local is the virtual address and port of the listener.
func (a *accepting[C]) Local() netip.AddrPort { return a.addr }

// SetDeadline makes Accept give up at t; the zero time means never.
func (a *accepting[C]) SetDeadline(t time.Time) error {
	if a.closing.Load() {
		return a.opError("set", net.ErrClosed)
	}
	a.by.set(&a.node.Time, t)
	wake(a.ready)
	return nil
}

func (a *accepting[C]) opError(op string, err error) error {
	return &net.OpError{Op: op, Net: a.network, Addr: a.Addr(), Err: err}
}

// Listener takes connections. It implements net.Listener.
type Listener struct {
	accepting[*Conn]
	tl      *tcp.Listener // the loop's
	sid     int
	loud    bool          // the operator is told what becomes of its connections
	options tcp.Sockopts  // what its connections begin with
	screen  func(*Caught) // has its connections before they are answered; nil: nobody
}

// AcceptTCP is Accept with the connection's own type.
func (l *Listener) AcceptTCP() (*Conn, error) { return l.accept() }

// refill moves connections from TCP's queue into the deque, which TCP counts as well: so there is
// room for all. The loop's.
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

// Close stops listening. Connections that nobody has accepted are reset.
func (l *Listener) Close() error { return l.close(l.strike) }

// strike ends the listener for the stack. The loop's.
func (l *Listener) strike(s *stack.Stack, now clock.Time) error {
	l.tl.Close(now)
	s.Sockets().Remove(l.sid)
	delete(l.node.TCP.listeners, l.tl)
	return nil
}

// Socket returns what an operator sees of the listener.
func (l *Listener) Socket() (control.Socket, error) { return SocketInfo(l.node, l.sid) }

// SocketInfo returns what an operator sees of the socket with that number.
func SocketInfo(n *Node, sid int) (info control.Socket, err error) {
	err = n.Ask(func(s *stack.Stack, now clock.Time) error {
		info = s.Sockets().Info(sid, now)
		return nil
	})
	return info, err
}

// Done is closed with the listener.
func (l *Listener) Done() <-chan struct{} { return l.done }
