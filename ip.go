package tidepool

import (
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/node"
)

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
	c, err := n.inner().ListenRaw(network, protocol, on)
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
