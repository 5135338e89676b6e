package tidepool

import (
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/node"
)

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
