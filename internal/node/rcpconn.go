package node

import (
	"errors"
	"net"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
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
	c.ends.local, c.ends.peer = local, s.Peer()
	c.init(p.node, c, s.Rx(), s.Tx())
	s.Owner = c
	p.conns[c] = struct{}{}
	return c
}

func (c *RCPConn) network() string { return rcpNetwork }

// Local is this end.
func (c *RCPConn) Local() netip.AddrPort { return c.ends.local }

// Remote is the other end.
func (c *RCPConn) Remote() netip.AddrPort { return c.ends.peer }

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
		c.established.pass()
	}
	if s.State() == rcp.Closed && !c.gone {
		c.gone = true
		c.in.by.stop()
		c.out.by.stop()
		c.port.forget(c)
	}
	c.in.ready.ring()
	c.out.ready.ring()
	c.node.leading.newsFor(&c.duplex)
}

// delivered reports whether the peer has everything, and the FIN, or never will. The loop's.
func (c *RCPConn) delivered() bool {
	i := c.socket.Info()
	return c.gone || i.Counts.FIN > 0 && i.Una == i.End
}

// Info returns what there is to know about the connection, also when it is over; the zero
// rcp.Info when the node is closed.
func (c *RCPConn) Info() (i rcp.Info) {
	_ = c.node.Call(func(*stack.Stack, clock.Time) error { i = c.socket.Info(); return nil })
	return i
}

// Describe is what operators see of a connection; the zero RCPSocket when the node is closed.
func (c *RCPConn) Describe() (s control.RCPSocket) {
	_ = c.node.Call(func(*stack.Stack, clock.Time) error { s = c.describe(); return nil })
	return s
}

// describe is Describe. The loop's.
func (c *RCPConn) describe() control.RCPSocket {
	i := c.socket.Info()
	return control.RCPSocket{
		Local: c.Local(), Remote: c.Remote(), State: i.State.String(),
		Unacked: int(i.Nxt - i.Una), Held: i.Held, Unsent: i.Unsent, Unread: i.Unread,
		SRTT: i.SRTT, RCPCounts: rcpCounts(i.Counts),
	}
}

func rcpCounts(c rcp.Counts) control.RCPCounts {
	n := control.RCPCounts{
		DAT: c.DAT, ACK: c.ACK, FIN: c.FIN, Again: c.Again, Received: c.Received,
	}
	for _, dropped := range c.Dropped {
		n.Dropped += dropped
	}
	return n
}

// RCPListener takes connections of RCP: one router, many sockets. It implements
// net.Listener.
type RCPListener struct {
	accepting[*RCPConn]
	port *rcpPort // the loop's
}

var _ net.Listener = (*RCPListener)(nil)

// AcceptRCP is Accept with the connection's own type.
func (l *RCPListener) AcceptRCP() (*RCPConn, error) { return l.accept() }

// refill moves connections from the router's queue into the deque, which the router counts as well:
// so there is room for all. The loop's.
func (l *RCPListener) refill() {
	for {
		s, ok := l.port.port.Router.Accept()
		if !ok {
			return
		}
		c := l.port.adopt(s)
		c.heed() // data, or a FIN, may have come before us
		l.put(c)
	}
}

// Close stops listening. Connections that nobody has accepted are forgotten; the others
// live on, and the port is theirs until the last of them ends.
func (l *RCPListener) Close() error {
	return l.close(func(*stack.Stack, clock.Time) error { l.port.unlisten(); return nil })
}
