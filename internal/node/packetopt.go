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

// Options returns how the socket's datagrams leave.
func (c *PacketConn) Options() (o udp.Options, err error) {
	err = c.option(func(*Node) error { o = c.us.Options(); return nil })
	return o, err
}

// SetOptions changes how the socket's datagrams leave.
func (c *PacketConn) SetOptions(change func(*udp.Options)) error {
	return c.option(func(*Node) error {
		o := c.us.Options()
		change(&o)
		c.us.SetOptions(o)
		return nil
	})
}

// SetOutlet has datagrams to groups and to all on a link leave by the interface of that
// name; empty: by the one of the socket's address, or of the route there.
func (c *PacketConn) SetOutlet(iface string) error {
	return c.option(func(n *Node) error {
		i := -1
		if iface != "" {
			var err error
			if i, err = n.Face(iface); err != nil {
				return err
			}
		}
		o := c.us.Options()
		o.Outlet = i + 1
		c.us.SetOptions(o)
		return nil
	})
}

// Join has the socket receive what is for a group on the link of the interface of
// that name.
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
		i, err := n.Face(iface)
		if err != nil {
			return err
		}
		return change(n, i)
	})
}

// PathMTU returns what a router has reported of the way to the peer; 0: none has.
func (c *PacketConn) PathMTU() (mtu int, err error) {
	err = c.option(func(n *Node) error { mtu = c.us.PathMTU(n.Time.now()); return nil })
	return mtu, err
}

// option runs what reads or changes the socket's options.
func (c *PacketConn) option(do func(n *Node) error) error {
	if err := NetError(c.node.Call(func(*stack.Stack, clock.Time) error {
		if c.closed.Load() {
			return net.ErrClosed
		}
		return do(c.node)
	})); err != nil {
		return c.refuse("set", err)
	}
	return nil
}

// UDPOptions say how a socket's datagrams leave.
type UDPOptions = udp.Options

// SetReadBuffer sets how many bytes of datagrams wait for Read at the most.
func (c *PacketConn) SetReadBuffer(bytes int) error {
	return c.option(func(*Node) error {
		if bytes < tcp.MinBuffer || bytes > tcp.MaxBuffer {
			return fmt.Errorf("a buffer of %d bytes: %w", bytes, tcp.ErrOption)
		}
		c.rx.Resize(bytes)
		return nil
	})
}

// Info returns what the socket has seen, also after its end.
func (c *PacketConn) Info() (i udp.Info, err error) {
	err = c.node.Call(func(*stack.Stack, clock.Time) error { i = c.us.Info(); return nil })
	if err != nil {
		return i, c.refuse("info", err)
	}
	return i, nil
}
