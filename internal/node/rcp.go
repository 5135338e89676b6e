package node

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/rcp"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/udp"
)

// RCP holds the node's RCP ports.
type RCP struct{ node *Node }

// RCPConfig configures a port. The zero RCPConfig is the configuration of founding document 000.
type RCPConfig = rcp.Config

// rcpPort is a UDP port that RCP uses. It stays open while it has a listener or connections. Loop
// only.
type rcpPort struct {
	node     *Node
	port     *stack.RCP
	listener *RCPListener // listener of the port; nil: no listener
	conns    map[*RCPConn]struct{}
	closed   bool
}

// open opens a port. Loop only.
func (r *RCP) open(local, remote netip.AddrPort, cfg RCPConfig) (*rcpPort, error) {
	opened, err := r.node.stack.Ports().OpenRCP(local, remote, cfg)
	if err != nil {
		return nil, err
	}
	p := &rcpPort{node: r.node, port: opened, conns: map[*RCPConn]struct{}{}}
	opened.UDP.Owner = p
	return p, nil
}

// forget removes a connection that is gone.
func (p *rcpPort) forget(c *RCPConn) {
	delete(p.conns, c)
	p.settle()
}

// settle closes the port if it has no listener and no connections.
func (p *rcpPort) settle() {
	if p.listener == nil && len(p.conns) == 0 && !p.closed {
		p.closed = true
		p.node.stack.Ports().CloseRCP(p.port)
	}
}

// unlisten removes the listener and the connections that wait for Accept.
func (p *rcpPort) unlisten() {
	p.port.Router.Unlisten()
	p.listener = nil
	p.Notify(clock.Never)
	p.settle()
}

func (p *rcpPort) Shut() {
	if l := p.listener; l != nil {
		p.listener = nil
		l.end()
	}
	p.port.Router.Close()
	p.Notify(clock.Never)
	p.settle()
}

// Notify implements PortOwner. It reports events to the connections and the listener.
func (p *rcpPort) Notify(clock.Time) {
	for {
		s, ok := p.port.Router.Next()
		if !ok {
			return
		}
		if c, ok := s.Owner.(*RCPConn); ok {
			c.onEvent()
		} else if p.listener != nil {
			p.listener.refill()
		}
	}
}

// Undelivered implements PortOwner. It reports whether closed connections have undelivered data.
func (p *rcpPort) Undelivered() bool {
	for c := range p.conns {
		if c.closed.Load() && !c.delivered() {
			return true
		}
	}
	return false
}

// Report implements PortOwner. A refusal ends a connection only while it connects. Later errors are
// left to the connection's timeout.
func (p *rcpPort) Report(err error) {
	for c := range p.conns {
		if errors.Is(err, udp.ErrRefused) && c.socket.State() == rcp.Connecting {
			c.fail(err)
			c.socket.Abort()
		}
	}
}

func (p *rcpPort) BoundTo(addrs map[netip.Addr]bool) (list []Bound) {
	for c := range p.conns {
		if addrs[c.Local().Addr()] {
			text := fmt.Sprintf("rcp %v to %v", c.Local(), c.Remote())
			list = append(list, Bound{text, func(clock.Time) { c.abandon() }})
		}
	}
	if l := p.listener; l != nil && addrs[l.addr.Addr()] {
		list = append(list, Bound{fmt.Sprintf("rcp %v, listening", l.addr), func(clock.Time) {
			l.end()
			p.unlisten()
		}})
	}
	return list
}

// Dial connects to a virtual address from a new UDP port. The node chooses the parts of from that
// are zero. Dial waits until the peer has answered or ctx is done. If the peer is silent for
// RCPConfig.Timeout, the error is syscall.ETIMEDOUT.
func (r *RCP) Dial(ctx context.Context, from, to netip.AddrPort, cfg RCPConfig) (*RCPConn, error) {
	fail := func(err error) (*RCPConn, error) { return nil, dialError(rcpNetwork, from, to, err) }
	if ctx.Err() != nil {
		return fail(context.Cause(ctx)) // nothing has been sent yet
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

// Listen accepts connections at a UDP port of one of the node's addresses, or of all. Port 0 means
// a free port, backlog 0 means DefaultBacklog.
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
		return nil, listenError(rcpNetwork, on, err)
	}
	return l, nil
}

// ports returns the open ports. Loop only.
func (r *RCP) ports() (list []*rcpPort) {
	for _, port := range r.node.stack.Ports().List() {
		if p, ok := port.UDP.Owner.(*rcpPort); ok {
			list = append(list, p)
		}
	}
	return list
}

// Sockets lists the listeners and connections. Loop only.
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

// Close closes a port with its listener and connections. Loop only.
func (r *RCP) Close(number uint16) error {
	for _, p := range r.ports() {
		if p.port.UDP.Local().Port() == number {
			p.Shut()
			return nil
		}
	}
	return fmt.Errorf("RCP on port %d: %w", number, control.ErrNoSuchSocket)
}
