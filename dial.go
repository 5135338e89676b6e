package tidepool

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"time"
)

// Dialer connects as its fields say. Node's own methods are those of a Dialer with
// nothing else in it.
type Dialer struct {
	// Node is where connections come from; it is required.
	Node *Node
	// LocalAddr is the address and port to connect from. The zero netip.Addr, or
	// 0.0.0.0, is the one that the way to the peer leaves from; port 0 is one that is free
	// (RFC 6056).
	//
	// A dial fails with syscall.EADDRNOTAVAIL if the address is none of the node's, and
	// with EADDRINUSE if a listener or socket has the port, or the very connection exists
	// already or is in TIME-WAIT.
	LocalAddr netip.AddrPort
	// Timeout is how long a dial may take, in the time of the node's Clock if it has one;
	// then it fails with os.ErrDeadlineExceeded. 0: until the SYN's retries are over.
	Timeout time.Duration
	// RCP is how a connection of the network "rcp" behaves.
	RCP RCP
}

// Dial connects to an address such as "10.0.0.1:80". The network is "tcp", "tcp4",
// "udp", "udp4" or "rcp", whose connections are RCPConns.
func (d *Dialer) Dial(network, address string) (net.Conn, error) {
	return d.DialContext(context.Background(), network, address)
}

// DialContext is Dial that gives up when ctx ends, with its cause. It serves as the
// DialContext of an http.Transport.
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
		to = netip.AddrPortFrom(n.addrs[0], to.Port()) // as net.Dial has it: the local system
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

// DialTCP is DialContext for TCP with an address in its own type.
func (d *Dialer) DialTCP(ctx context.Context, to netip.AddrPort) (*Conn, error) {
	n := d.node().inner().Node
	ctx, cancel := n.Time.Within(ctx, d.Timeout)
	defer cancel()
	c, err := n.DialFrom(ctx, d.LocalAddr, to)
	if err != nil {
		return nil, err
	}
	return &Conn{c}, nil
}

// DialUDP opens a UDP socket that sends to one address and receives from it
// alone. A later call fails with what ICMP reports about its datagrams, if that
// will not pass: a port unreachable does, a time exceeded does not, as on Linux.
func (d *Dialer) DialUDP(to netip.AddrPort) (*PacketConn, error) {
	c, err := d.node().inner().Node.DialUDPFrom(d.LocalAddr, unmap(to))
	if err != nil {
		return nil, err
	}
	return &PacketConn{c}, nil
}

// node is a closed one where none was given.
func (d *Dialer) node() *Node {
	if d.Node == nil {
		return &Node{}
	}
	return d.Node
}

// Dial connects to an address such as "10.0.0.1:80". The network is "tcp", "tcp4",
// "udp", "udp4" or "rcp". A Dialer connects from a port of the program's choice.
func (n *Node) Dial(network, address string) (net.Conn, error) {
	return (&Dialer{Node: n}).Dial(network, address)
}

// DialContext is Dial that gives up when ctx ends, with its cause. It serves as the
// DialContext of an http.Transport.
func (n *Node) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return (&Dialer{Node: n}).DialContext(ctx, network, address)
}

// DialTCP is DialContext for TCP with an address in its own type.
func (n *Node) DialTCP(ctx context.Context, to netip.AddrPort) (*Conn, error) {
	return (&Dialer{Node: n}).DialTCP(ctx, to)
}

// DialUDP opens a UDP socket that sends to one address and receives from it
// alone. A later call fails with what ICMP reports about its datagrams, as with a
// Dialer.
func (n *Node) DialUDP(to netip.AddrPort) (*PacketConn, error) {
	return (&Dialer{Node: n}).DialUDP(to)
}
