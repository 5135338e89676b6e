package node

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
	"github.com/tidepool-net/tidepool/internal/udp"
)

// SetOptions changes the options for outgoing datagrams.
func (c *PacketConn) SetOptions(change func(*udp.Options)) error {
	return c.option(func(*Node) error {
		o := c.us.Options()
		change(&o)
		c.us.SetOptions(o)
		return nil
	})
}

// SetOutlet chooses the interface for multicast and broadcast datagrams. If the name is empty, the
// socket's address or the route determines it.
func (c *PacketConn) SetOutlet(iface string) error {
	return c.option(func(n *Node) error {
		i := -1
		if iface != "" {
			var err error
			if i, err = n.Iface(iface); err != nil {
				return err
			}
		}
		o := c.us.Options()
		o.Outlet = i + 1
		c.us.SetOptions(o)
		return nil
	})
}

// Join joins a multicast group on the interface of that name.
func (c *PacketConn) Join(iface string, group netip.Addr) error {
	return c.membership(iface, func(n *Node, i int) error {
		return n.stack.Datagrams().Join(c.us, i, group)
	})
}

// Leave undoes Join. Close leaves all groups.
func (c *PacketConn) Leave(iface string, group netip.Addr) error {
	return c.membership(iface, func(n *Node, i int) error {
		return n.stack.Datagrams().Leave(c.us, i, group)
	})
}

func (c *PacketConn) membership(iface string, change func(n *Node, i int) error) error {
	return c.option(func(n *Node) error {
		i, err := n.Iface(iface)
		if err != nil {
			return err
		}
		return change(n, i)
	})
}

// PathMTU returns the path MTU that a router has reported, or 0 if no router has reported one.
func (c *PacketConn) PathMTU() (mtu int, err error) {
	err = c.option(func(n *Node) error { mtu = c.us.PathMTU(n.Time.now()); return nil })
	return mtu, err
}

// option runs do in the loop, unless the socket is closed.
func (c *PacketConn) option(do func(n *Node) error) error {
	if err := NetError(c.node.Call(func(*stack.Stack, clock.Time) error {
		if c.closed.Load() {
			return net.ErrClosed
		}
		return do(c.node)
	})); err != nil {
		return c.ownError("set", err)
	}
	return nil
}

// UDPOptions are the options for outgoing datagrams.
type UDPOptions = udp.Options

// SetReadBuffer limits the number of bytes in datagrams that wait for Read.
func (c *PacketConn) SetReadBuffer(bytes int) error {
	return c.option(func(*Node) error {
		if bytes < tcp.MinBuffer || bytes > tcp.MaxBuffer {
			return fmt.Errorf("a buffer of %d bytes: %w", bytes, tcp.ErrOption)
		}
		c.rx.Resize(bytes)
		return nil
	})
}

// Info returns the socket's counters, even after Close.
func (c *PacketConn) Info() (i udp.Info, err error) {
	err = c.node.Call(func(*stack.Stack, clock.Time) error { i = c.us.Info(); return nil })
	if err != nil {
		return i, c.ownError("info", err)
	}
	return i, nil
}
