package node

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// Dial is DialFrom with address and port left to the node.
func (n *Node) Dial(ctx context.Context, to netip.AddrPort) (*Conn, error) {
	return n.DialFrom(ctx, netip.AddrPort{}, to)
}

// DialForFile is Dial that offers a file's digest, as tcp.Conn.OfferFileDigest does.
func (n *Node) DialForFile(ctx context.Context, to netip.AddrPort) (*Conn, error) {
	return n.dial(ctx, netip.AddrPort{}, to, (*tcp.Conn).OfferFileDigest)
}

// DialFrom connects to a virtual address, from the given address and port as far as
// they are given, and waits until the connection stands or ctx ends.
func (n *Node) DialFrom(ctx context.Context, from, to netip.AddrPort) (*Conn, error) {
	return n.dial(ctx, from, to, func(*tcp.Conn) {})
}

// dial connects; prepare changes the connection before its SYN is sent.
func (n *Node) dial(
	ctx context.Context, from, to netip.AddrPort, prepare func(*tcp.Conn),
) (*Conn, error) {
	fail := func(err error) (*Conn, error) {
		return nil, &net.OpError{
			Op: "dial", Net: "tcp", Source: source(net.TCPAddrFromAddrPort(from), from),
			Addr: net.TCPAddrFromAddrPort(to), Err: err,
		}
	}
	if ctx.Err() != nil {
		return fail(context.Cause(ctx)) // before anybody hears of us
	}
	var c *Conn
	err := n.Call(func(s *stack.Stack, now clock.Time) error {
		tc, err := s.DialTCP(now, from, to)
		if err == nil {
			prepare(tc)
			c = newConn(n, tc)
			n.adopt(c, nil)
		}
		return err
	})
	if err != nil {
		return fail(NetError(err))
	}
	if err := c.awaitAnswer(ctx, c.Abort); err != nil {
		return fail(err)
	}
	return c, nil
}

// ConnectBy is Dial, or another way to dial, in an operator's terms.
func ConnectBy(
	ctx context.Context, dial func(context.Context, netip.AddrPort) (*Conn, error),
	addr netip.Addr, port uint16,
) (*Conn, error) {
	to := netip.AddrPortFrom(addr, port)
	if !control.IsHost(addr) || port == 0 {
		return nil, fmt.Errorf("%v: %w: want the address of a host and a port from 1",
			to, control.ErrUsage)
	}
	c, err := dial(ctx, to)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", to, control.Reason(err))
	}
	return c, nil
}

// source is an address for an error's text, nil if it says nothing.
func source(a net.Addr, from netip.AddrPort) net.Addr {
	if from == (netip.AddrPort{}) {
		return nil
	}
	return a
}
