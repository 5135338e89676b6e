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

// PacketConn is a UDP socket. It implements net.PacketConn and, if Dial made it, net.Conn.
type PacketConn struct{ conn *node.PacketConn }

var (
	_ net.PacketConn = (*PacketConn)(nil)
	_ net.Conn       = (*PacketConn)(nil)
)

// ListenPacket opens a UDP socket at an address such as "10.0.0.1:53", or ":53" for all addresses
// of the node. Port 0 means a free port. The network is "udp", "udp4" for IPv4 only, or "udp6" for
// IPv6 only. With a network such as "ip4:icmp" or "ip6:89" and an address without a port, it
// returns an *IPConn for the packets of that IP protocol.
func (n *Node) ListenPacket(network, address string) (net.PacketConn, error) {
	if isIP(network) {
		c, err := n.listenIP(network, address)
		if err != nil {
			return nil, err // a nil *IPConn would be a non-nil net.PacketConn
		}
		return c, nil
	}
	on, err := n.local(network, "udp", address)
	if err != nil {
		return nil, err
	}
	listen := n.inner().Node.Packets.Listen
	if network == "udp6" {
		listen = n.inner().Node.Packets.ListenIPv6
	}
	c, err := listen(on)
	if err != nil {
		return nil, err
	}
	return &PacketConn{c}, nil
}

// ListenUDP is ListenPacket with a netip.AddrPort. The zero netip.Addr means all addresses of the
// node, and so does :: if it has IPv6; 0.0.0.0 means all of IPv4.
func (n *Node) ListenUDP(on netip.AddrPort) (*PacketConn, error) {
	if !on.Addr().IsValid() {
		on = n.inner().Node.AllAddrs(on.Port())
	}
	return packetConnOf(n.inner().Node.Packets.Listen(unmap(on)))
}

func packetConnOf(c *node.PacketConn, err error) (*PacketConn, error) {
	if err != nil {
		return nil, err
	}
	return &PacketConn{c}, nil
}

// unmap converts an IPv4-mapped IPv6 address to IPv4.
func unmap(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}

// Read is ReadFrom without the address.
func (c *PacketConn) Read(p []byte) (int, error) { return c.inner().Read(p) }

// ReadFrom waits for a datagram and copies it into p. Longer datagrams are truncated. The address
// is a *net.UDPAddr.
func (c *PacketConn) ReadFrom(p []byte) (int, net.Addr, error) { return c.inner().ReadFrom(p) }

// ReadFromAddrPort is ReadFrom with a netip.AddrPort.
func (c *PacketConn) ReadFromAddrPort(p []byte) (int, netip.AddrPort, error) {
	return c.inner().ReadFromAddrPort(p)
}

// Write sends a datagram to the dialed address.
func (c *PacketConn) Write(p []byte) (int, error) { return c.inner().Write(p) }

// WriteTo sends a datagram.
func (c *PacketConn) WriteTo(p []byte, to net.Addr) (int, error) { return c.inner().WriteTo(p, to) }

// WriteToAddrPort is WriteTo with a netip.AddrPort.
func (c *PacketConn) WriteToAddrPort(p []byte, to netip.AddrPort) (int, error) {
	return c.inner().WriteToAddrPort(p, to)
}

// Close closes the socket. Blocked calls return net.ErrClosed.
func (c *PacketConn) Close() error { return c.inner().Close() }

// LocalAddr returns a *net.UDPAddr.
func (c *PacketConn) LocalAddr() net.Addr { return c.inner().LocalAddr() }

// RemoteAddr returns a *net.UDPAddr, or nil if the socket was not dialed.
func (c *PacketConn) RemoteAddr() net.Addr { return c.inner().RemoteAddr() }

// SetDeadline sets the read and the write deadline.
func (c *PacketConn) SetDeadline(t time.Time) error { return c.inner().SetDeadline(t) }

// SetReadDeadline sets the deadline of reads. The zero time means no deadline.
func (c *PacketConn) SetReadDeadline(t time.Time) error { return c.inner().SetReadDeadline(t) }

// SetWriteDeadline sets the deadline of writes. The zero time means no deadline.
func (c *PacketConn) SetWriteDeadline(t time.Time) error { return c.inner().SetWriteDeadline(t) }

// SetTTL sets the TTL, or hop limit, of unicast and broadcast datagrams. 0: 64.
func (c *PacketConn) SetTTL(ttl uint8) error {
	return c.inner().SetOptions(func(o *node.UDPOptions) { o.TTL = ttl })
}

// SetTOS sets the TOS field of the IP header, or the traffic class of IPv6. Its upper six bits are
// the differentiated services codepoint.
func (c *PacketConn) SetTOS(tos uint8) error {
	return c.inner().SetOptions(func(o *node.UDPOptions) { o.TOS = tos })
}

// SetDontFragment sets the DF bit. Datagrams that are too long for the first link then fail with
// syscall.EMSGSIZE. If a dialed socket's datagram is too long for a later link, the next call fails
// with EMSGSIZE, PathMTU returns that link's MTU, and longer datagrams are refused from then on.
// Without DF, long datagrams are fragmented.
func (c *PacketConn) SetDontFragment(on bool) error {
	return c.inner().SetOptions(func(o *node.UDPOptions) { o.DontFragment = on })
}

// PathMTU returns the longest packet, in bytes and with its headers (28 bytes, 48 over IPv6), that
// reaches the dialed address without fragmentation, as routers reported in the last ten minutes for
// datagrams with the DF bit. 0: no router reported one.
func (c *PacketConn) PathMTU() (int, error) { return c.inner().PathMTU() }

// SetBroadcast permits broadcast datagrams, such as those to 255.255.255.255. Without it, WriteTo
// fails with syscall.EACCES for them.
func (c *PacketConn) SetBroadcast(permit bool) error {
	return c.inner().SetOptions(func(o *node.UDPOptions) { o.Broadcast = permit })
}

// SetMulticastTTL sets the TTL of multicast datagrams. 0: 1, which keeps them on the link.
func (c *PacketConn) SetMulticastTTL(ttl uint8) error {
	return c.inner().SetOptions(func(o *node.UDPOptions) { o.MulticastTTL = ttl })
}

// SetMulticastLoopback sets whether members of a group on the node itself, including this socket,
// receive what the socket sends to the group. The default is true.
func (c *PacketConn) SetMulticastLoopback(on bool) error {
	return c.inner().SetOptions(func(o *node.UDPOptions) { o.NoLoop = !on })
}

// SetMulticastInterface names the interface for multicast datagrams and those to 255.255.255.255.
// Empty: the interface with the socket's address, otherwise the route's interface, otherwise the
// first one.
func (c *PacketConn) SetMulticastInterface(name string) error { return c.inner().SetOutlet(name) }

// JoinGroup makes the socket receive datagrams to a multicast group and its port on the link of the
// named interface.
func (c *PacketConn) JoinGroup(iface string, group netip.Addr) error {
	return c.inner().Join(iface, group)
}

// LeaveGroup undoes JoinGroup. Close leaves all groups.
func (c *PacketConn) LeaveGroup(iface string, group netip.Addr) error {
	return c.inner().Leave(iface, group)
}

// SetReadBuffer sets the size of the receive buffer in bytes. Each datagram counts as at least 256
// bytes. The default is 256 KiB. Datagrams that do not fit are dropped. A size below 2 KiB or above
// 1 GiB returns syscall.EINVAL.
func (c *PacketConn) SetReadBuffer(bytes int) error { return c.inner().SetReadBuffer(bytes) }

// PacketInfo has the counters of a UDP socket.
type PacketInfo struct {
	// Received counts datagrams and ReceivedBytes their payload.
	Received, ReceivedBytes uint64
	// Dropped counts datagrams that did not fit into the receive buffer.
	Dropped uint64
	// Errors counts ICMP errors about the socket's datagrams.
	Errors uint64
}

// Info returns the counters, also after the socket is closed. It fails once the node is closed.
func (c *PacketConn) Info() (PacketInfo, error) {
	i, err := c.inner().Info()
	return PacketInfo(i), err
}

// ICMPError is an ICMP error message from a router or from the destination (RFC 792). errors.Is
// matches it with the system's error of the same meaning: ENETUNREACH, EHOSTUNREACH, ECONNREFUSED,
// EMSGSIZE and so on.
type ICMPError struct {
	From       netip.Addr // the sender of the message
	Type, Code uint8      // of the message
	MTU        int        // of the link for which a packet was too long; 0: not reported
	words      string
}

// Error returns the description that ping prints.
func (e *ICMPError) Error() string { return e.words }

// Is reports whether target is the system's error of this meaning.
func (e *ICMPError) Is(target error) bool {
	return target == error(node.ReportErrno(e.From.Is6(), e.Type, e.Code))
}

// icmpError returns the error of a reply, or nil if the reply is not an error message.
func icmpError(r *control.Reply) error {
	switch {
	case r.Local:
		return r.Err
	case r.Problem == "":
		return nil
	}
	return &ICMPError{From: r.From, Type: r.Type, Code: r.Code, MTU: r.MTU, words: r.Problem}
}

// IPConn is a socket for the packets of one IP protocol. ListenPacket returns one for a network
// such as "ip4:icmp". Reads and writes are without the IP header. The program computes checksums
// itself, except for the ICMPv6 packets that it sends (RFC 3542 §3.1). The socket receives copies
// of the packets for the node; what the node does with them does not change. Packets that do not
// fit into its buffer of 256 KiB are dropped.
type IPConn struct{ conn *node.RawConn }

var _ net.PacketConn = (*IPConn)(nil)

// protocols maps the names after the colon of a network to protocol numbers.
var protocols = map[string]uint8{
	"icmp": 1, "igmp": 2, "tcp": 6, "udp": 17, "gre": 47, "ipv6-icmp": 58, "ospf": 89, "sctp": 132,
}

// listenIP opens a socket for a network such as "ip4:icmp" or "ip:1".
func (n *Node) listenIP(network, address string) (*IPConn, error) {
	fail := func(err error) (*IPConn, error) {
		return nil, &net.OpError{Op: "listen", Net: network, Err: err}
	}
	family, name, _ := strings.Cut(network, ":")
	protocol, known := protocols[name]
	if !known {
		number, err := strconv.ParseUint(name, 10, 8)
		if err != nil {
			return fail(&net.AddrError{Err: "unknown IP protocol specified", Addr: name})
		}
		protocol = uint8(number)
	}
	on := netip.IPv4Unspecified()
	if family == "ip6" {
		on = netip.IPv6Unspecified()
	}
	if address != "" {
		var err error
		if on, err = n.lookup(context.Background(), "listen", network, address); err != nil {
			return nil, err
		}
	}
	c, err := n.inner().Node.Packets.ListenRaw(network, protocol, on)
	if err != nil {
		return nil, err
	}
	return &IPConn{c}, nil
}

func isIP(network string) bool {
	family, _, named := strings.Cut(network, ":")
	return named && (family == "ip" || family == "ip4" || family == "ip6")
}

// ReadFrom waits for a packet and copies its payload to p. Longer payloads are truncated. The
// address is a *net.IPAddr.
func (c *IPConn) ReadFrom(p []byte) (int, net.Addr, error) { return c.inner().ReadFrom(p) }

// WriteTo sends p to a *net.IPAddr, in fragments if the link requires it. Packets of TCP and of
// protocols 0 and 200 (the courses' test and RIP protocols) are not fragmented: if they are too
// long for the first link, WriteTo fails with EMSGSIZE.
func (c *IPConn) WriteTo(p []byte, to net.Addr) (int, error) { return c.inner().WriteTo(p, to) }

// SetTTL sets the TTL of later packets. 0: 64.
func (c *IPConn) SetTTL(ttl int) error { return c.inner().SetTTL(ttl) }

// Close closes the socket. Blocked calls return net.ErrClosed.
func (c *IPConn) Close() error { return c.inner().Close() }

// LocalAddr returns a *net.IPAddr.
func (c *IPConn) LocalAddr() net.Addr { return c.inner().LocalAddr() }

// SetDeadline sets the read and the write deadline.
func (c *IPConn) SetDeadline(t time.Time) error { return c.inner().SetDeadline(t) }

// SetReadDeadline sets the deadline of reads. The zero time means no deadline.
func (c *IPConn) SetReadDeadline(t time.Time) error { return c.inner().SetReadDeadline(t) }

// SetWriteDeadline sets the deadline of writes. The zero time means no deadline.
func (c *IPConn) SetWriteDeadline(t time.Time) error { return c.inner().SetWriteDeadline(t) }
