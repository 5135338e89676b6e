package tidepool

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"time"
)

// Dialer connects with the options of its fields. Node's own Dial methods use a Dialer that has
// only a Node.
type Dialer struct {
	// Node is the node that connects. Required.
	Node *Node
	// LocalAddr is the local address and port. The zero netip.Addr, or 0.0.0.0, means the address
	// of the interface that the route to the peer uses; port 0 means a free port (RFC 6056).
	//
	// A dial fails with syscall.EADDRNOTAVAIL if the node does not have the address. It fails with
	// EADDRINUSE if a listener or socket uses the port, or if the same connection exists or is in
	// TIME-WAIT.
	LocalAddr netip.AddrPort
	// Timeout limits a dial, in the time of the node's Clock if it has one. After it, the dial
	// fails with os.ErrDeadlineExceeded. 0: the limit is the number of SYN retransmissions.
	Timeout time.Duration
	// RCP configures connections of the network "rcp".
	RCP RCP
}

// Dial connects to an address such as "10.0.0.1:80". The network is "tcp", "tcp4", "udp", "udp4" or
// "rcp". Connections of "rcp" are RCPConns.
func (d *Dialer) Dial(network, address string) (net.Conn, error) {
	return d.DialContext(context.Background(), network, address)
}

// DialContext is Dial that fails with the cause of ctx when ctx ends. It can be the DialContext of
// an http.Transport.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	transport := strings.TrimSuffix(network, "4")
	if transport != "udp" && network != "rcp" {
		transport = "tcp"
	}
	n := d.node()
	to, err := n.resolve(ctx, "dial", network, transport, address)
	if err != nil {
		return nil, err
	}
	if !to.Addr().IsValid() && len(n.addrs) > 0 {
		// No host means the local system, as in net.Dial.
		to = netip.AddrPortFrom(n.addrs[0], to.Port())
	}
	switch transport {
	case "udp":
		u, err := d.DialUDP(to)
		if err != nil {
			return nil, err // not a *PacketConn that is nil
		}
		return u, nil
	case "rcp":
		c, err := d.DialRCP(ctx, to)
		if err != nil {
			return nil, err
		}
		return c, nil
	}
	c, err := d.DialTCP(ctx, to)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// DialTCP is DialContext for TCP with a netip.AddrPort.
func (d *Dialer) DialTCP(ctx context.Context, to netip.AddrPort) (*Conn, error) {
	n := d.node().inner().Node
	ctx, cancel := n.Time.Within(ctx, d.Timeout)
	defer cancel()
	c, err := n.TCP.DialFrom(ctx, d.LocalAddr, to)
	if err != nil {
		return nil, err
	}
	return &Conn{c}, nil
}

// DialUDP opens a UDP socket that sends to one address and receives only from it. After an ICMP
// error that is permanent, such as port unreachable, the next call returns it. Time exceeded is not
// returned, as on Linux.
func (d *Dialer) DialUDP(to netip.AddrPort) (*PacketConn, error) {
	c, err := d.node().inner().Node.Packets.DialFrom(d.LocalAddr, unmap(to))
	if err != nil {
		return nil, err
	}
	return &PacketConn{c}, nil
}

// node returns a closed node if the field is nil.
func (d *Dialer) node() *Node {
	if d.Node == nil {
		return &Node{}
	}
	return d.Node
}

// Dial connects to an address such as "10.0.0.1:80". The network is "tcp", "tcp4", "udp", "udp4" or
// "rcp". A Dialer can choose the local address and port.
func (n *Node) Dial(network, address string) (net.Conn, error) {
	return (&Dialer{Node: n}).Dial(network, address)
}

// DialContext is Dial that fails with the cause of ctx when ctx ends. It can be the DialContext of
// an http.Transport.
func (n *Node) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return (&Dialer{Node: n}).DialContext(ctx, network, address)
}

// DialTCP is DialContext for TCP with a netip.AddrPort.
func (n *Node) DialTCP(ctx context.Context, to netip.AddrPort) (*Conn, error) {
	return (&Dialer{Node: n}).DialTCP(ctx, to)
}

// DialUDP opens a UDP socket that sends to one address and receives only from it. See
// Dialer.DialUDP for ICMP errors.
func (n *Node) DialUDP(to netip.AddrPort) (*PacketConn, error) {
	return (&Dialer{Node: n}).DialUDP(to)
}
