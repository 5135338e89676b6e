package tidepool

import (
	"context"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
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
	c, err := n.inner().Node.ListenPacket(unmap(on))
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

// SetTTL sets the time to live of datagrams to one host, or to all on a link; 0: 64.
func (c *PacketConn) SetTTL(ttl uint8) error {
	return c.inner().SetOptions(func(o *node.UDPOptions) { o.TTL = ttl })
}

// SetTOS sets the type of service of the datagrams' IP header: the differentiated
// services codepoint in its upper six bits.
func (c *PacketConn) SetTOS(tos uint8) error {
	return c.inner().SetOptions(func(o *node.UDPOptions) { o.TOS = tos })
}

// SetDontFragment has datagrams leave whole or not at all. One that is too long for the
// link is answered with syscall.EMSGSIZE, and so is, on a socket that was dialed, the
// call after one was too long for a link on the way; PathMTU tells what is not, and
// longer ones are refused from then on. Without it they leave in fragments.
func (c *PacketConn) SetDontFragment(on bool) error {
	return c.inner().SetOptions(func(o *node.UDPOptions) { o.DontFragment = on })
}

// PathMTU returns how long a packet may be, its headers of 28 bytes included, to reach
// the address that was dialed in one piece: what a router has reported in the last ten
// minutes of a datagram that SetDontFragment kept whole. 0: none has.
func (c *PacketConn) PathMTU() (int, error) { return c.inner().PathMTU() }

// SetBroadcast permits datagrams to all on a link, such as those to 255.255.255.255.
// Without it, WriteTo answers syscall.EACCES to them.
func (c *PacketConn) SetBroadcast(permit bool) error {
	return c.inner().SetOptions(func(o *node.UDPOptions) { o.Broadcast = permit })
}

// SetMulticastTTL sets the time to live of datagrams to a multicast group; 0: 1, which
// keeps them on the link.
func (c *PacketConn) SetMulticastTTL(ttl uint8) error {
	return c.inner().SetOptions(func(o *node.UDPOptions) { o.MulticastTTL = ttl })
}

// SetMulticastLoopback says whether members of a group on the node itself, this socket
// among them, get what the socket sends to the group. They do unless told otherwise.
func (c *PacketConn) SetMulticastLoopback(on bool) error {
	return c.inner().SetOptions(func(o *node.UDPOptions) { o.NoLoop = !on })
}

// SetMulticastInterface names the interface that datagrams to groups, and to
// 255.255.255.255, leave by; empty: the one that has the socket's address, or that the
// route there leads over, or the first.
func (c *PacketConn) SetMulticastInterface(name string) error { return c.inner().SetOutlet(name) }

// JoinGroup has the socket receive what is for its port and a multicast group on the
// link of the interface of that name.
func (c *PacketConn) JoinGroup(iface string, group netip.Addr) error {
	return c.inner().Join(iface, group)
}

// LeaveGroup undoes JoinGroup. Close leaves all groups.
func (c *PacketConn) LeaveGroup(iface string, group netip.Addr) error {
	return c.inner().Leave(iface, group)
}

// SetReadBuffer sets how many bytes of datagrams wait for Read at the most, each counted
// as 256 at the least; 256 KiB unless told otherwise. What finds no room is lost. A size
// below 2 KiB or above 1 GiB is syscall.EINVAL.
func (c *PacketConn) SetReadBuffer(bytes int) error { return c.inner().SetReadBuffer(bytes) }

// PacketInfo counts what a UDP socket has seen.
type PacketInfo struct {
	// Received datagrams, of ReceivedBytes without headers, were queued for Read.
	Received, ReceivedBytes uint64
	// Dropped is how many found no room in the read buffer.
	Dropped uint64
	// Errors is how many times ICMP reported that a datagram did not arrive.
	Errors uint64
}

// Info returns what the socket has seen, also after its end. It fails once the node is
// closed.
func (c *PacketConn) Info() (PacketInfo, error) {
	i, err := c.inner().Info()
	return PacketInfo(i), err
}

// ICMPError is a report that a packet did not arrive, by a router or by the host that it
// was for (RFC 792). For errors.Is it is the system's error of that meaning too:
// ENETUNREACH, EHOSTUNREACH, ECONNREFUSED, EMSGSIZE and so on.
type ICMPError struct {
	From       netip.Addr // who reports
	Type, Code uint8      // of the message
	MTU        int        // of the link that a packet was too large for; 0: not told
	words      string
}

// Error is what ping says of it.
func (e *ICMPError) Error() string { return e.words }

// Is reports whether target is the system's error of this meaning.
func (e *ICMPError) Is(target error) bool {
	return target == error(node.ReportErrno(e.Type, e.Code))
}

// icmpError is the error of a reply, nil if it is none.
func icmpError(r *control.Reply) error {
	switch {
	case r.Local:
		return r.Err
	case r.Problem == "":
		return nil
	}
	return &ICMPError{From: r.From, Type: r.Type, Code: r.Code, MTU: r.MTU, words: r.Problem}
}

// IPConn is a socket for the packets of one IP protocol, as ListenPacket opens for a
// network such as "ip4:icmp". What is read and written is what is behind the IP header,
// and no checksum is filled in. It hears what is for the node, beside whatever the node
// itself does with it; what nobody reads is lost behind 256 KiB.
type IPConn struct{ conn *node.RawConn }

var _ net.PacketConn = (*IPConn)(nil)

// protocols are the names that a network may have behind its colon.
var protocols = map[string]uint8{
	"icmp": 1, "igmp": 2, "tcp": 6, "udp": 17, "gre": 47, "ospf": 89, "sctp": 132,
}

// listenIP opens a socket for a network such as "ip4:icmp", or "ip:1".
func (n *Node) listenIP(network, address string) (*IPConn, error) {
	fail := func(err error) (*IPConn, error) {
		return nil, &net.OpError{Op: "listen", Net: network, Err: err}
	}
	_, name, _ := strings.Cut(network, ":")
	protocol, known := protocols[name]
	if !known {
		number, err := strconv.ParseUint(name, 10, 8)
		if err != nil {
			return fail(&net.AddrError{Err: "unknown IP protocol specified", Addr: name})
		}
		protocol = uint8(number)
	}
	on := netip.IPv4Unspecified()
	if address != "" {
		var err error
		if on, err = n.lookup("listen", network, address); err != nil {
			return nil, err
		}
	}
	c, err := n.inner().Node.ListenRaw(network, protocol, on)
	if err != nil {
		return nil, err
	}
	return &IPConn{c}, nil
}

// isIP reports whether a network is that of an IPConn.
func isIP(network string) bool {
	family, _, named := strings.Cut(network, ":")
	return named && (family == "ip" || family == "ip4")
}

// ReadFrom waits for a packet and copies what is behind its IP header to p; what does
// not fit is lost. The address is a *net.IPAddr.
func (c *IPConn) ReadFrom(p []byte) (int, net.Addr, error) { return c.inner().ReadFrom(p) }

// WriteTo sends p to a *net.IPAddr, in fragments where a link takes no more; of TCP's
// protocol and of 0 and 200, the family's own, what is too long for the first link is
// EMSGSIZE.
func (c *IPConn) WriteTo(p []byte, to net.Addr) (int, error) { return c.inner().WriteTo(p, to) }

// SetTTL sets the TTL of what is sent from now on; 0: 64.
func (c *IPConn) SetTTL(ttl int) error { return c.inner().SetTTL(ttl) }

// Close closes the socket; calls that wait return net.ErrClosed.
func (c *IPConn) Close() error { return c.inner().Close() }

// LocalAddr returns a *net.IPAddr.
func (c *IPConn) LocalAddr() net.Addr { return c.inner().LocalAddr() }

// SetDeadline sets the read and the write deadline.
func (c *IPConn) SetDeadline(t time.Time) error { return c.inner().SetDeadline(t) }

// SetReadDeadline has reads give up at t; the zero time means never.
func (c *IPConn) SetReadDeadline(t time.Time) error { return c.inner().SetReadDeadline(t) }

// SetWriteDeadline has writes give up at t; the zero time means never.
func (c *IPConn) SetWriteDeadline(t time.Time) error { return c.inner().SetWriteDeadline(t) }
