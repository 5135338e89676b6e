package node

import (
	"errors"
	"net"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/rcp"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// rcpNetwork is the name of the network in errors.
const rcpNetwork = "rcp"

// RCPConn is an RCP connection as an application uses it. The next round of the port's send loop
// sends written data, so Write need not ring.
type RCPConn struct {
	duplex
	port   *rcpPort    // loop only
	socket *rcp.Socket // only the loop uses it, except for its rings
	addrs  struct{ local, peer netip.AddrPort }

	gone bool // the socket is closed; loop only
}

var _ net.Conn = (*RCPConn)(nil)

// adopt returns the connection of a new socket. Loop only.
func (p *rcpPort) adopt(s *rcp.Socket) *RCPConn {
	local := p.port.UDP.Local()
	if local.Addr().IsUnspecified() {
		local = netip.AddrPortFrom(p.node.stack.Routing().LocalTo(s.Peer().Addr()), local.Port())
	}
	c := &RCPConn{port: p, socket: s}
	c.addrs.local, c.addrs.peer = local, s.Peer()
	c.init(p.node, c, s.Rx(), s.Tx())
	s.Owner = c
	p.conns[c] = struct{}{}
	return c
}

func (c *RCPConn) network() string { return rcpNetwork }

// Local returns the local address and port.
func (c *RCPConn) Local() netip.AddrPort { return c.addrs.local }

// Remote returns the peer's address and port.
func (c *RCPConn) Remote() netip.AddrPort { return c.addrs.peer }

// Close closes both directions and returns at once. Written data is still delivered, unless the
// peer times out. Received data is discarded.
func (c *RCPConn) Close() error {
	if c.closed.Swap(true) {
		return c.opError("close", net.ErrClosed)
	}
	c.out.closed.Store(true)
	c.finishWrites(closeBoth)
	return nil
}

// tell posts a close or an abort. The loop finds everything else in the rings.
func (c *RCPConn) tell(what uint32) {
	if what&(closeWrite|closeBoth|abort) != 0 {
		c.node.Post(func(clock.Time) { c.serve(what) })
		c.node.Time.settle()
	}
}

// serve processes a close or an abort that tell posted. Loop only.
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

// fail records the first error. Loop only.
func (c *RCPConn) fail(err error) {
	translated := NetError(err)
	if errors.Is(err, rcp.ErrClosed) {
		translated = net.ErrClosed
	}
	c.failure.CompareAndSwap(nil, &translated)
}

// onEvent reports the socket's state to the application. Loop only.
func (c *RCPConn) onEvent() {
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
	c.node.leading.markReadable(&c.duplex)
}

// abandon ends a connection whose address was removed. The peer times out.
func (c *RCPConn) abandon() {
	c.fail(tcp.ErrAddressGone)
	c.socket.Abort()
	c.port.Notify(clock.Never)
}

// delivered reports whether the peer has acknowledged everything, or the socket is closed. Loop
// only.
func (c *RCPConn) delivered() bool {
	i := c.socket.Info()
	return c.gone || i.Counts.FIN > 0 && i.Una == i.End
}

// Info returns the connection's state, even after its end. It is zero if the node is closed.
func (c *RCPConn) Info() (i rcp.Info) {
	_ = c.node.Call(func(*stack.Stack, clock.Time) error { i = c.socket.Info(); return nil })
	return i
}

// Describe returns a snapshot of the connection. It is zero if the node is closed.
func (c *RCPConn) Describe() (s control.RCPSocket) {
	_ = c.node.Call(func(*stack.Stack, clock.Time) error { s = c.describe(); return nil })
	return s
}

// describe is like Describe. Loop only.
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

// RCPListener accepts RCP connections. It implements net.Listener.
type RCPListener struct {
	acceptQueue[*RCPConn]
	port *rcpPort // loop only
}

var _ net.Listener = (*RCPListener)(nil)

// AcceptRCP is like Accept, but returns the concrete type.
func (l *RCPListener) AcceptRCP() (*RCPConn, error) { return l.accept() }

// refill moves connections from the router's queue to Accept's queue. The router limits the sum of
// both. Loop only.
func (l *RCPListener) refill() {
	for {
		s, ok := l.port.port.Router.Accept()
		if !ok {
			return
		}
		c := l.port.adopt(s)
		c.onEvent() // data or a FIN may have arrived already
		l.put(c)
	}
}

// Close stops listening and drops the connections that wait for Accept. Other connections and the
// port stay open.
func (l *RCPListener) Close() error {
	return l.close(func(*stack.Stack, clock.Time) error { l.port.unlisten(); return nil })
}
