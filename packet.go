package tidepool

import (
	"context"
	"net"
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool/internal/node"
)

// PacketConn is a UDP socket. It implements net.PacketConn and, if Dial made it,
// net.Conn.
type PacketConn struct{ conn *node.PacketConn }

var (
	_ net.PacketConn = (*PacketConn)(nil)
	_ net.Conn       = (*PacketConn)(nil)
)

// ListenPacket opens a UDP socket at an address such as "10.0.0.1:53", or ":53"
// for any address of the node. Port 0 is one that is free. The network is "udp"
// or "udp4". With a network such as "ip4:icmp" or "ip4:89" and an address without a
// port it is an *IPConn, for the packets of that IP protocol.
func (n *Node) ListenPacket(network, address string) (net.PacketConn, error) {
	if isIP(network) {
		c, err := n.listenIP(network, address)
		if err != nil {
			return nil, err // not an *IPConn that is nil
		}
		return c, nil
	}
	on, err := n.resolve(context.Background(), "listen", network, "udp", address)
	if err != nil {
		return nil, err
	}
	c, err := n.ListenUDP(on)
	if err != nil {
		return nil, err // not a *PacketConn that is nil
	}
	return c, nil
}

// ListenUDP is ListenPacket with an address in its own type; the zero netip.Addr
// is any address of the node.
func (n *Node) ListenUDP(on netip.AddrPort) (*PacketConn, error) {
	if !on.Addr().IsValid() {
		on = netip.AddrPortFrom(netip.IPv4Unspecified(), on.Port())
	}
	c, err := n.inner().ListenPacket(unmap(on))
	if err != nil {
		return nil, err
	}
	return &PacketConn{c}, nil
}

// unmap makes the IPv4 address of one that is written as IPv6.
func unmap(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}

// Read is ReadFrom without the address.
func (c *PacketConn) Read(p []byte) (int, error) { return c.inner().Read(p) }

// ReadFrom waits for a datagram and copies it into p; what does not fit is lost.
// The address is a *net.UDPAddr.
func (c *PacketConn) ReadFrom(p []byte) (int, net.Addr, error) { return c.inner().ReadFrom(p) }

// ReadFromAddrPort is ReadFrom with the address in its own type.
func (c *PacketConn) ReadFromAddrPort(p []byte) (int, netip.AddrPort, error) {
	return c.inner().ReadFromAddrPort(p)
}

// Write sends a datagram to the address that was dialed.
func (c *PacketConn) Write(p []byte) (int, error) { return c.inner().Write(p) }

// WriteTo sends a datagram.
func (c *PacketConn) WriteTo(p []byte, to net.Addr) (int, error) { return c.inner().WriteTo(p, to) }

// WriteToAddrPort is WriteTo with the address in its own type.
func (c *PacketConn) WriteToAddrPort(p []byte, to netip.AddrPort) (int, error) {
	return c.inner().WriteToAddrPort(p, to)
}

// Close closes the socket; calls that wait return net.ErrClosed.
func (c *PacketConn) Close() error { return c.inner().Close() }

// LocalAddr returns a *net.UDPAddr.
func (c *PacketConn) LocalAddr() net.Addr { return c.inner().LocalAddr() }

// RemoteAddr returns a *net.UDPAddr, or nil if the socket was not dialed.
func (c *PacketConn) RemoteAddr() net.Addr { return c.inner().RemoteAddr() }

// SetDeadline sets the read and the write deadline.
func (c *PacketConn) SetDeadline(t time.Time) error { return c.inner().SetDeadline(t) }

// SetReadDeadline has reads give up at t; the zero time means never.
func (c *PacketConn) SetReadDeadline(t time.Time) error { return c.inner().SetReadDeadline(t) }

// SetWriteDeadline has writes give up at t; the zero time means never.
func (c *PacketConn) SetWriteDeadline(t time.Time) error { return c.inner().SetWriteDeadline(t) }
