package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/rcp"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/udp"
)

// RCPConfig is how RCP behaves at a port. The zero RCPConfig is founding document 000's.
type RCPConfig = rcp.Config

// rcpPort is a UDP port whose datagrams are RCP's, and what the node has there. All of it
// is the loop's. It stays open for as long as somebody listens there or a connection lives.
type rcpPort struct {
	node     *Node
	port     *stack.RCP
	listener *RCPListener // nil: there is none, or it is closed
	conns    map[*RCPConn]struct{}
	closed   bool
}

// openRCP opens a port. The loop's.
func (n *Node) openRCP(local, remote netip.AddrPort, cfg RCPConfig) (*rcpPort, error) {
	opened, err := n.stack.Ports().OpenRCP(local, remote, cfg)
	if err != nil {
		return nil, err
	}
	p := &rcpPort{node: n, port: opened, conns: map[*RCPConn]struct{}{}}
	opened.UDP.Owner = p
	return p, nil
}

// forget strikes a connection that is gone from the books.
func (p *rcpPort) forget(c *RCPConn) {
	delete(p.conns, c)
	p.settle()
}

// settle closes the port when nobody has anything there.
func (p *rcpPort) settle() {
	if p.listener == nil && len(p.conns) == 0 && !p.closed {
		p.closed = true
		p.node.stack.Ports().CloseRCP(p.port)
	}
}

// unlisten takes the listener away. Connections that nobody has accepted are forgotten.
func (p *rcpPort) unlisten() {
	p.port.Router.Unlisten()
	p.listener = nil
	p.Tell(clock.Never)
	p.settle()
}

// Shut implements PortOwner: it ends everything at the port.
func (p *rcpPort) Shut() {
	if l := p.listener; l != nil {
		p.listener = nil
		l.end()
	}
	p.port.Router.Close()
	p.Tell(clock.Never)
	p.settle()
}

// Tell implements PortOwner: it passes the port's news on to its connections and its listener.
func (p *rcpPort) Tell(clock.Time) {
	for {
		s, ok := p.port.Router.Next()
		if !ok {
			return
		}
		if c, ok := s.Owner.(*RCPConn); ok {
			c.heed()
		} else if p.listener != nil {
			p.listener.refill()
		}
	}
}

// Undelivered implements PortOwner: it reports whether a connection that its program has closed has
// something that the peer lacks.
func (p *rcpPort) Undelivered() bool {
	for c := range p.conns {
		if c.closed.Load() && !c.delivered() {
			return true
		}
	}
	return false
}

// Report implements PortOwner. Only where nobody has answered yet does a refusal mean that nobody
// will: a peer that has gone is silent.
func (p *rcpPort) Report(err error) {
	for c := range p.conns {
		if errors.Is(err, udp.ErrRefused) && c.socket.State() == rcp.Connecting {
			c.fail(err)
			c.socket.Abort()
		}
	}
}

// DialRCP connects to a virtual address by RCP, from a UDP port of the connection's own and
// the given address as far as they are given, and waits until the peer has answered or
// ctx ends. A peer who is silent for RCPConfig.Timeout is syscall.ETIMEDOUT.
func (n *Node) DialRCP(
	ctx context.Context, from, to netip.AddrPort, cfg RCPConfig,
) (*RCPConn, error) {
	fail := func(err error) (*RCPConn, error) {
		return nil, &net.OpError{
			Op: "dial", Net: rcpNetwork, Source: source(net.UDPAddrFromAddrPort(from), from),
			Addr: net.UDPAddrFromAddrPort(to), Err: err,
		}
	}
	if ctx.Err() != nil {
		return fail(context.Cause(ctx)) // before anybody hears of us
	}
	var c *RCPConn
	err := n.Call(func(_ *stack.Stack, now clock.Time) (err error) {
		c, err = n.connectRCP(now, from, to, cfg)
		return err
	})
	if err != nil {
		return fail(NetError(err))
	}
	if err := c.awaitAnswer(ctx); err != nil {
		return fail(err)
	}
	return c, nil
}

// connectRCP begins to connect. The loop's.
func (n *Node) connectRCP(
	now clock.Time, from, to netip.AddrPort, cfg RCPConfig,
) (*RCPConn, error) {
	if !control.IsHost(to.Addr()) || n.stack.Interfaces().IsBroadcast(to.Addr()) {
		return nil, fmt.Errorf("%v: %w", to, rcp.ErrAddress)
	}
	p, err := n.openRCP(from, to, cfg)
	if err != nil {
		return nil, err
	}
	s, err := p.port.Router.Connect(now, to)
	if err != nil {
		p.settle()
		return nil, err
	}
	return p.adopt(s), nil
}

// ListenRCP takes RCP's connections on a UDP port of any of the node's addresses, or of the
// given one. Port 0 has one chosen; a backlog of 0 means DefaultBacklog.
func (n *Node) ListenRCP(on netip.AddrPort, backlog int, cfg RCPConfig) (*RCPListener, error) {
	l := &RCPListener{}
	backlog = l.init(n, rcpNetwork, on, backlog)
	err := NetError(n.Call(func(*stack.Stack, clock.Time) (err error) {
		if l.port, err = n.openRCP(on, netip.AddrPort{}, cfg); err != nil {
			return err
		}
		l.addr = l.port.port.UDP.Local()
		l.port.listener = l
		l.port.port.Router.CountAhead(l.waiting)
		return l.port.port.Router.Listen(backlog)
	}))
	if err != nil {
		return nil, &net.OpError{
			Op: "listen", Net: rcpNetwork, Addr: net.UDPAddrFromAddrPort(on), Err: err,
		}
	}
	return l, nil
}
