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

// RCP has the node's ports, listeners and connections of RCP.
type RCP struct{ node *Node }

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

// open opens a port. The loop's.
func (r *RCP) open(local, remote netip.AddrPort, cfg RCPConfig) (*rcpPort, error) {
	opened, err := r.node.stack.Ports().OpenRCP(local, remote, cfg)
	if err != nil {
		return nil, err
	}
	p := &rcpPort{node: r.node, port: opened, conns: map[*RCPConn]struct{}{}}
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

// Dial connects to a virtual address from a UDP port of its own. If from is set, it is the local
// address. Dial waits until the peer has answered or ctx is done. The error is syscall.ETIMEDOUT if
// the peer does not answer within RCPConfig.Timeout.
func (r *RCP) Dial(
	ctx context.Context, from, to netip.AddrPort, cfg RCPConfig,
) (*RCPConn, error) {
	fail := func(err error) (*RCPConn, error) {
		return nil, &net.OpError{
			Op: "dial", Net: rcpNetwork, Source: source(net.UDPAddrFromAddrPort(from), from),
			Addr: net.UDPAddrFromAddrPort(to), Err: err,
		}
	}
	if ctx.Err() != nil {
		return fail(context.Cause(ctx)) // before anything is sent
	}
	var c *RCPConn
	err := r.node.Call(func(s *stack.Stack, now clock.Time) error {
		if !control.IsHost(to.Addr()) || s.Interfaces().IsBroadcast(to.Addr()) {
			return fmt.Errorf("%v: %w", to, rcp.ErrAddress)
		}
		p, err := r.open(from, to, cfg)
		if err != nil {
			return err
		}
		socket, err := p.port.Router.Connect(now, to)
		if err != nil {
			p.settle()
			return err
		}
		c = p.adopt(socket)
		return nil
	})
	if err != nil {
		return fail(NetError(err))
	}
	if err := c.awaitAnswer(ctx); err != nil {
		return fail(err)
	}
	return c, nil
}

// Listen accepts connections at a UDP port of on, or of all of the node's addresses if its address
// is unspecified. Port 0 means a free port, backlog 0 means DefaultBacklog.
func (r *RCP) Listen(on netip.AddrPort, backlog int, cfg RCPConfig) (*RCPListener, error) {
	l := &RCPListener{}
	backlog = l.init(r.node, rcpNetwork, on, backlog)
	err := NetError(r.node.Call(func(*stack.Stack, clock.Time) (err error) {
		if l.port, err = r.open(on, netip.AddrPort{}, cfg); err != nil {
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

// ports lists the open ports. The loop's.
func (r *RCP) ports() (list []*rcpPort) {
	for _, port := range r.node.stack.Ports().List() {
		if p, ok := port.UDP.Owner.(*rcpPort); ok {
			list = append(list, p)
		}
	}
	return list
}

// Sockets lists the listeners and connections. The loop's.
func (r *RCP) Sockets() []control.RCPSocket {
	list := []control.RCPSocket{}
	for _, p := range r.ports() {
		if p.listener != nil {
			list = append(list, control.RCPSocket{
				Local: p.port.UDP.Local(), Remote: netip.AddrPortFrom(netip.IPv4Unspecified(), 0),
				State: "listening", RCPCounts: rcpCounts(p.port.Router.Counts()),
			})
		}
		for s := range p.port.Router.Sockets() {
			if c, ok := s.Owner.(*RCPConn); ok {
				list = append(list, c.describe())
			}
		}
	}
	return list
}

// Close closes a port, its listener and its connections. The loop's.
func (r *RCP) Close(number uint16) error {
	for _, p := range r.ports() {
		if p.port.UDP.Local().Port() == number {
			p.Shut()
			return nil
		}
	}
	return fmt.Errorf("RCP on port %d: %w", number, control.ErrNoSuchSocket)
}
