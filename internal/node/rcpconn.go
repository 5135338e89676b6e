package node

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/rcp"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// rcpNetwork is what errors call it.
const rcpNetwork = "rcp"

// RCPConn is a connection of RCP as an application holds it. What is written leaves with
// the next round of its port's send loop, so nobody has to ring for it.
type RCPConn struct {
	duplex
	port   *rcpPort    // the loop's
	socket *rcp.Socket // the loop's, but for the rings
	ends   struct{ local, peer netip.AddrPort }

	gone bool // the socket has ended; the loop's
}

var _ net.Conn = (*RCPConn)(nil)

// adopt makes a connection of a socket. The loop's.
func (p *rcpPort) adopt(s *rcp.Socket) *RCPConn {
	local := p.port.UDP.Local()
	if local.Addr().IsUnspecified() {
		local = netip.AddrPortFrom(p.node.stack.Routing().LocalTo(s.Peer().Addr()), local.Port())
	}
	c := &RCPConn{port: p, socket: s}
	c.node, c.carrier = p.node, c
	c.ends.local, c.ends.peer = local, s.Peer()
	c.init(s.Rx(), s.Tx())
	s.Owner = c
	p.conns[c] = struct{}{}
	return c
}

func (c *RCPConn) network() string       { return rcpNetwork }
func (c *RCPConn) local() netip.AddrPort { return c.ends.local }
func (c *RCPConn) peer() netip.AddrPort  { return c.ends.peer }

// Close closes both directions and returns at once. What was written is still delivered,
// as long as the peer is not silent; what he still sends is discarded.
func (c *RCPConn) Close() error {
	if c.closed.Swap(true) {
		return c.opError("close", net.ErrClosed)
	}
	c.out.closed.Store(true)
	c.finishWrites(closeBoth)
	return nil
}

// Abort forgets the connection: nothing that waits is delivered. The protocol has no word
// for that, so the peer notices the silence.
func (c *RCPConn) Abort() {
	c.closed.Store(true)
	c.out.closed.Store(true)
	c.finishWrites(abort)
}

// tell has the loop see what the application did, where that is not in the rings.
func (c *RCPConn) tell(what uint32) {
	if what&(closeWrite|closeBoth|abort) != 0 {
		c.node.Post(func(clock.Time) { c.serve(what) })
	}
}

// serve does what the application has asked for. The loop's side of tell.
func (c *RCPConn) serve(what uint32) {
	switch {
	case c.gone:
	case what&abort != 0:
		c.socket.Abort()
	case what&closeBoth != 0:
		c.socket.Close()
	case what&closeWrite != 0:
		c.socket.CloseWrite()
	}
}

// fail says what ended the connection, unless that is known. The loop's.
func (c *RCPConn) fail(err error) {
	translated := NetError(err)
	if errors.Is(err, rcp.ErrClosed) {
		translated = net.ErrClosed
	}
	c.failure.CompareAndSwap(nil, &translated)
}

// heed passes news of the socket on to the application. The loop's.
func (c *RCPConn) heed() {
	s := c.socket
	if err := s.Err(); err != nil {
		c.fail(err)
	}
	if s.Finished() || s.State() == rcp.Closed && s.Err() == nil {
		c.eof.Store(true)
	}
	if s.State() != rcp.Connecting {
		c.answered()
	}
	if s.State() == rcp.Closed && !c.gone {
		c.gone = true
		c.in.by.stop()
		c.out.by.stop()
		c.port.forget(c)
	}
	c.in.ready.ring()
	c.out.ready.ring()
	c.node.newsFor(&c.duplex)
}

// delivered reports whether the peer has everything, and the FIN, or never will. The loop's.
func (c *RCPConn) delivered() bool {
	i := c.socket.Info()
	return c.gone || i.Counts.FIN > 0 && i.Una == i.End
}

// RCPInfo describes a connection of RCP.
type RCPInfo = rcp.Info

// Info returns what there is to know about the connection, also when it is over; the zero
// RCPInfo when the node is closed.
func (c *RCPConn) Info() (i RCPInfo) {
	_ = c.node.Call(func(*stack.Stack, clock.Time) error { i = c.socket.Info(); return nil })
	return i
}

// RCPListener takes connections of RCP: one router, many sockets. It implements
// net.Listener.
type RCPListener struct {
	node     *Node
	port     *rcpPort // the loop's
	addr     netip.AddrPort
	accepted chan *RCPConn
	ready    chan struct{}
	done     chan struct{}
	closing  atomic.Bool
	by       deadline
}

var _ net.Listener = (*RCPListener)(nil)

// Accept waits for the next connection.
func (l *RCPListener) Accept() (net.Conn, error) {
	c, err := l.AcceptRCP()
	if err != nil {
		return nil, err // not an *RCPConn that is nil
	}
	return c, nil
}

// AcceptRCP is Accept with the connection's own type.
func (l *RCPListener) AcceptRCP() (*RCPConn, error) {
	for {
		if l.closing.Load() {
			return nil, l.opError("accept", net.ErrClosed)
		}
		select {
		case <-l.by.wait():
			return nil, l.opError("accept", os.ErrDeadlineExceeded)
		default:
		}
		select {
		case c := <-l.accepted:
			return c, nil
		case <-l.ready: // somebody has moved the deadline
		case <-l.done:
		case <-l.by.wait():
		}
	}
}

// refill moves connections from the router's queue into accepted, which the router counts as well:
// so there is room for all. The loop's.
func (l *RCPListener) refill() {
	for {
		s, ok := l.port.port.Router.Accept()
		if !ok {
			return
		}
		c := l.port.adopt(s)
		c.heed() // data, or a FIN, may have come before us
		l.accepted <- c
	}
}

// Close stops listening. Connections that nobody has accepted are forgotten; the others
// live on, and the port is theirs until the last of them ends.
func (l *RCPListener) Close() error {
	if l.closing.Load() || !l.end() {
		return l.opError("close", net.ErrClosed)
	}
	err := l.node.Call(func(*stack.Stack, clock.Time) error { l.port.unlisten(); return nil })
	for {
		select {
		case c := <-l.accepted:
			c.Abort()
		default:
			return err
		}
	}
}

// end has Accept fail from now on, and reports whether it did not before.
func (l *RCPListener) end() bool {
	if l.closing.Swap(true) {
		return false
	}
	close(l.done)
	l.by.stop()
	return true
}

// Addr returns a *net.UDPAddr of the virtual network.
func (l *RCPListener) Addr() net.Addr { return net.UDPAddrFromAddrPort(l.addr) }

// Local is the virtual address and port of the listener.
func (l *RCPListener) Local() netip.AddrPort { return l.addr }

// SetDeadline makes Accept give up at t; the zero time means never.
func (l *RCPListener) SetDeadline(t time.Time) error {
	if l.closing.Load() {
		return l.opError("set", net.ErrClosed)
	}
	l.by.set(l.node, t)
	wake(l.ready)
	return nil
}

func (l *RCPListener) opError(op string, err error) error {
	return &net.OpError{Op: op, Net: rcpNetwork, Addr: l.Addr(), Err: err}
}
