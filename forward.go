package tidepool

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/portforward"
)

// Forward has f called, in a goroutine each, with every TCP connection that no
// listener of the node takes, whatever address and port it is for: the node
// answers for all of them, but for what a router has a route to. That is what
// tunnels and proxies are built on. A nil f ends it; connections that were accepted
// go on.
//
// At most 1,024 connections wait for a decision or in Accept. While they do, the node answers
// SYNs with cookies (RFC 4987 §3.6) and calls f when a cookie comes back: the peer is
// connected by then, so Reject and Drop reset the connection. At most 1,024 of these wait
// for a decision. Without cookies ([TCP].SynCookies is "off") further SYNs are dropped.
//
// A listener on any address of the node takes what is for those addresses, and leaves
// what is for others to f.
func (n *Node) Forward(f func(*Request)) error {
	if f == nil {
		return n.inner().Node.Forwarders.TakeTCP(nil)
	}
	return n.inner().Node.Forwarders.TakeTCP(func(c *node.Caught) { f(&Request{c}) })
}

// Request is a connection that a peer wants to open. Accept, Reject or Drop
// decides about it, whichever is first; the function that Forward calls drops it
// by returning without a decision.
type Request struct{ caught *node.Caught }

// Local returns the address and port that the peer wants to reach.
func (r *Request) Local() netip.AddrPort { return r.inner().Local() }

// Remote returns the peer's address and port.
func (r *Request) Remote() netip.AddrPort { return r.inner().Remote() }

// Accept opens the connection and waits until it is established. Its LocalAddr is what
// the peer wanted to reach.
func (r *Request) Accept() (*Conn, error) {
	c, err := r.inner().Accept()
	if err != nil {
		return nil, err
	}
	return &Conn{c}, nil
}

// Reject refuses the connection: the peer's Dial fails with ECONNREFUSED.
func (r *Request) Reject() { r.inner().Reject() }

// Drop does not answer: the peer tries again, and in the end gives up.
func (r *Request) Drop() { r.inner().Ignore() }

// ForwardUDP has f called, in a goroutine each, with every flow of UDP datagrams that
// no socket of the node takes, whatever address and port it is for: Forward for
// datagrams. A flow is what one address and port sends to another; what is for a
// multicast group or a broadcast address is none.
//
// While f decides, the first 4 datagrams of a flow wait, of 1024 flows and 1 MiB at the
// most; others are lost. A nil f ends it; flows that were accepted go on.
func (n *Node) ForwardUDP(f func(*UDPRequest)) error {
	if f == nil {
		return n.inner().Node.Forwarders.TakeUDP(nil)
	}
	return n.inner().Node.Forwarders.TakeUDP(func(c *node.CaughtUDP) { f(&UDPRequest{c}) })
}

// UDPRequest is a flow of datagrams that a peer has begun. Accept, Reject or Drop
// decides about it, whichever is first; the function that ForwardUDP calls drops it by
// returning without a decision. After a Reject or Drop, the next datagram is a request
// again.
type UDPRequest struct{ caught *node.CaughtUDP }

// Local returns the address and port that the datagrams are for.
func (r *UDPRequest) Local() netip.AddrPort { return r.inner().Local() }

// Remote returns the peer's address and port.
func (r *UDPRequest) Remote() netip.AddrPort { return r.inner().Remote() }

// Accept returns a socket of the flow's own, as DialUDP does: its LocalAddr is what the
// peer wanted to reach, and it hears and writes to that peer alone. What came so far can
// be read. A flow has no end: close the socket once it has been silent for long enough.
//
// It fails with net.ErrClosed if it was decided before, and with syscall.ENOBUFS if
// 65536 flows are open.
func (r *UDPRequest) Accept() (*PacketConn, error) {
	c, err := r.inner().Accept()
	if err != nil {
		return nil, err
	}
	return &PacketConn{c}, nil
}

// Reject tells the peer that nobody listens: a later call on its socket fails with
// ECONNREFUSED.
func (r *UDPRequest) Reject() { r.inner().Reject() }

// Drop forgets what came.
func (r *UDPRequest) Drop() { r.inner().Ignore() }

// Door is a way between the machine's network and the virtual one, which Publish and Expose
// open. Connections through it are ended as by their own ends: each direction by itself, a reset
// by a reset, and who reads slowly holds up who writes.
type Door struct {
	door *portforward.Door
	addr net.Addr
}

// DoorInfo is what went through a door.
type DoorInfo struct {
	// Open are the connections, or flows of datagrams, under way, Opened all that have been,
	// Failed those that could not be led on or did not end in order.
	Open           int
	Opened, Failed uint64
	// In are the bytes into the virtual network, Out those out of it.
	In, Out uint64
	// Problem is the last failure.
	Problem string
}

// Publish has an address of the machine lead to one of the virtual network, so that every
// program of the machine can reach it: Publish("tcp", "127.0.0.1:8080", "10.1.0.2:80"). Without a
// host it is the machine's loopback; port 0 is one that is free. The network is "tcp" or "udp",
// where who sends has a port of the node's until two minutes of silence.
func (n *Node) Publish(network, address, to string) (*Door, error) {
	udp, err := datagrams("publish", network)
	if err != nil {
		return nil, err
	}
	req := control.Publish{UDP: udp}
	on, err := machineAddr(address)
	if err == nil {
		req.On, req.Port = on.Addr(), on.Port()
		req.To, err = n.resolve(context.Background(), "publish", network, transportOf(network), to)
	}
	if err != nil {
		return nil, err
	}
	return n.door(n.inner().Doors.Publish(req))
}

// Expose has a port of the node, at all its addresses, lead to a service of the machine's network:
// Expose("tcp", 80, "127.0.0.1:3000"). The network is "tcp" or "udp", see Publish.
func (n *Node) Expose(network string, port uint16, to string) (*Door, error) {
	udp, err := datagrams("expose", network)
	if err != nil {
		return nil, err
	}
	return n.door(n.inner().Doors.Expose(control.Expose{Port: port, To: to, UDP: udp}))
}

func (n *Node) door(d *portforward.Door, err error) (*Door, error) {
	if err != nil {
		return nil, err
	}
	return &Door{door: d, addr: d.Addr()}, nil
}

// datagrams reports whether a network is UDP's.
func datagrams(op, network string) (bool, error) {
	switch transportOf(network) {
	case "tcp":
		return false, nil
	case "udp":
		return true, nil
	}
	return false, &net.OpError{Op: op, Net: network, Err: net.UnknownNetworkError(network)}
}

// transportOf is a network's name without the version of IP.
func transportOf(network string) string { return strings.TrimSuffix(network, "4") }

// machineAddr reads [HOST]:PORT of the machine.
func machineAddr(address string) (netip.AddrPort, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return netip.AddrPort{}, err
	}
	if host == "" || host == "localhost" {
		host = "127.0.0.1"
	}
	on, err := netip.ParseAddrPort(net.JoinHostPort(host, port))
	if err != nil {
		return on, fmt.Errorf("publish %q: want [ADDR]:PORT: %w", address, syscall.EINVAL)
	}
	return on, nil
}

// Addr is where the door listens: for Publish an address of the machine, for Expose one of the
// virtual network.
func (d *Door) Addr() net.Addr { return d.addr }

// Info tells what went through the door.
func (d *Door) Info() DoorInfo {
	if d.door == nil {
		return DoorInfo{}
	}
	s := d.door.State()
	return DoorInfo{
		Open: s.Open, Opened: s.Opened, Failed: s.Failed, In: s.In, Out: s.Out, Problem: s.Problem,
	}
}

// Close closes the door. What is under way goes on until it ends, or the node does.
func (d *Door) Close() error {
	if d.door == nil {
		return net.ErrClosed
	}
	return d.door.Close(false)
}

// Cut closes the door and resets what is under way.
func (d *Door) Cut() error {
	if d.door == nil {
		return net.ErrClosed
	}
	return d.door.Close(true)
}
