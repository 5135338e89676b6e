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

// Listener takes connections. It implements net.Listener.
type Listener struct {
	node    *Node
	tl      *tcp.Listener // the loop's
	addr    netip.AddrPort
	sid     int
	loud    bool         // the operator is told what becomes of its connections
	options tcp.Sockopts // what its connections begin with
	backlog *lane.BoundDeque[*Conn]
	ready   chan struct{}
	done    chan struct{}
	closing atomic.Bool
	by      deadline
	screen  func(*Caught) // has its connections before they are answered; nil: nobody
}

// Accept waits for the next connection.
func (l *Listener) Accept() (net.Conn, error) { return l.AcceptTCP() }

// AcceptTCP is Accept with the connection's own type.
func (l *Listener) AcceptTCP() (*Conn, error) {
	for {
		if l.closing.Load() {
			return nil, l.opError("accept", net.ErrClosed)
		}
		if c, ok := l.backlog.Shift(); ok {
			wake(l.ready) // another Accept may wait beside this one
			return c, nil
		}
		select {
		case <-l.ready:
		case <-l.done:
		case <-l.by.wait():
			return nil, l.opError("accept", os.ErrDeadlineExceeded)
		}
	}
}

// refill moves connections from TCP's queue into the deque, which TCP counts as well: so there is
// room for all. The loop's.
func (l *Listener) refill() {
	for {
		tc, ok := l.tl.Accept()
		if !ok {
			return
		}
		c := newConn(l.node, tc)
		l.node.adopt(c, l)
		l.backlog.Append(c)
		wake(l.ready)
	}
}

// Close stops listening. Connections that nobody has accepted are reset.
func (l *Listener) Close() error {
	if l.closing.Swap(true) {
		return l.opError("close", net.ErrClosed)
	}
	close(l.done)
	l.by.stop()
	err := l.node.Call(l.strike)
	for {
		c, ok := l.backlog.Shift()
		if !ok {
			return err
		}
		c.Abort()
	}
}

// strike ends the listener for the stack. The loop's.
func (l *Listener) strike(s *stack.Stack, now clock.Time) error {
	l.tl.Close(now)
	s.Sockets().Remove(l.sid)
	delete(l.node.listeners, l.tl)
	return nil
}

// Addr returns a *net.TCPAddr of the virtual network.
func (l *Listener) Addr() net.Addr { return net.TCPAddrFromAddrPort(l.addr) }

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

// SetDeadline makes Accept give up at t; the zero time means never.
func (l *Listener) SetDeadline(t time.Time) error {
	if l.closing.Load() {
		return l.opError("set", net.ErrClosed)
	}
	l.by.set(l.node, t)
	wake(l.ready)
	return nil
}

func (l *Listener) opError(op string, err error) error {
	return &net.OpError{Op: op, Net: "tcp", Addr: l.Addr(), Err: err}
}
