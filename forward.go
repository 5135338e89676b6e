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

// Forward calls f, each time in a new goroutine, for every incoming TCP connection that no listener
// of the node accepts, whatever its destination address and port. The node answers for every
// address; if it is a router, for every address that it has no route to. Tunnels and proxies use
// Forward. A nil f ends it; accepted connections stay open.
//
// At most 64 half-open connections wait for a decision, or in Accept for the peer's ACK. Beyond
// that the node sends SYN cookies (RFC 4987 §3.6), and calls f only when a cookie comes back. The
// peer is connected then, so Reject and Drop reset the connection. At most 1,024 such connections
// wait for a decision. If [TCP].SynCookies is "off", up to 1,024 half-open connections wait, and
// further SYNs are dropped.
//
// A listener without an address accepts connections to the node's own addresses; those to other
// addresses go to f.
func (n *Node) Forward(f func(*Request)) error {
	if f == nil {
		return n.inner().Node.Forwarders.TakeTCP(nil)
	}
	return n.inner().Node.Forwarders.TakeTCP(func(c *node.Caught) { f(&Request{c}) })
}

// Request is an incoming connection. The first call of Accept, Reject or Drop decides about it. If
// the function that Forward calls returns without a decision, the request is dropped.
type Request struct{ caught *node.Caught }

// Local returns the destination address and port.
func (r *Request) Local() netip.AddrPort { return r.inner().Local() }

// Remote returns the peer's address and port.
func (r *Request) Remote() netip.AddrPort { return r.inner().Remote() }

// Accept completes the handshake and waits until the connection is established. Its LocalAddr is
// the destination that the peer chose.
func (r *Request) Accept() (*Conn, error) {
	return connOf(r.inner().Accept())
}

// Reject refuses the connection: the peer's Dial fails with ECONNREFUSED.
func (r *Request) Reject() { r.inner().Reject() }

// Drop does not answer: the peer retransmits its SYN, and in the end its Dial times out.
func (r *Request) Drop() { r.inner().Ignore() }

// ForwardUDP calls f, each time in a new goroutine, for every incoming UDP flow that no socket of
// the node receives, whatever its destination address and port. A flow is all datagrams from one
// address and port to another. Multicast and broadcast datagrams are not included.
//
// Until f decides, the first 4 datagrams of a flow are kept, for at most 1024 flows and 1 MiB;
// others are dropped. A nil f ends it; accepted flows stay open.
func (n *Node) ForwardUDP(f func(*UDPRequest)) error {
	if f == nil {
		return n.inner().Node.Forwarders.TakeUDP(nil)
	}
	return n.inner().Node.Forwarders.TakeUDP(func(c *node.CaughtUDP) { f(&UDPRequest{c}) })
}

// UDPRequest is an incoming UDP flow. The first call of Accept, Reject or Drop decides about it. If
// the function that ForwardUDP calls returns without a decision, the flow is dropped. After Reject
// or Drop, the next datagram of the flow is a new request.
type UDPRequest struct{ caught *node.CaughtUDP }

// Local returns the destination address and port of the datagrams.
func (r *UDPRequest) Local() netip.AddrPort { return r.inner().Local() }

// Remote returns the peer's address and port.
func (r *UDPRequest) Remote() netip.AddrPort { return r.inner().Remote() }

// Accept returns a socket for this flow only, as DialUDP does: its LocalAddr is the destination
// that the peer chose, and it receives from and sends to that peer. The datagrams that arrived so
// far can be read. UDP flows have no end: close the socket after a period of silence.
//
// Accept fails with net.ErrClosed if the request was already decided, and with syscall.ENOBUFS if
// 65536 flows are open.
func (r *UDPRequest) Accept() (*PacketConn, error) {
	return packetConnOf(r.inner().Accept())
}

// Reject sends an ICMP port unreachable: a later call on the peer's socket fails with ECONNREFUSED.
func (r *UDPRequest) Reject() { r.inner().Reject() }

// Drop discards the datagrams that arrived.
func (r *UDPRequest) Drop() { r.inner().Ignore() }

// Door is a port forward between the machine's network and the virtual one, made by Publish or
// Expose. A half-close or a reset of one connection is repeated on the other, and a slow reader
// slows the writer down.
type Door struct {
	door *portforward.Forward
	addr net.Addr
}

// DoorInfo counts what a port forward carried.
type DoorInfo struct {
	// Open counts the current connections or UDP flows, Opened all so far, and Failed those that
	// could not be connected or did not end properly.
	Open           int
	Opened, Failed uint64
	// In counts the bytes into the virtual network, Out those out of it.
	In, Out uint64
	// Problem is the last error, or empty.
	Problem string
}

// Publish forwards an address of the machine to one of the virtual network, so that all programs of
// the machine can reach it: Publish("tcp", "127.0.0.1:8080", "10.1.0.2:80"). Without a host the
// address is the machine's loopback; port 0 means a free port. The network is "tcp" or "udp". Each
// UDP client has a port of the node until it is silent for two minutes.
func (n *Node) Publish(network, address, to string) (*Door, error) {
	udp, err := datagrams("publish", network)
	if err != nil {
		return nil, err
	}
	req := control.Publish{UDP: udp}
	on, err := machineAddr(address)
	if err == nil {
		req.On, req.Port = on.Addr(), on.Port()
		var list []netip.AddrPort
		list, err = n.resolve(context.Background(), "publish", network, transportOf(network), to)
		if err == nil {
			req.To = list[0]
		}
	}
	if err != nil {
		return nil, err
	}
	return n.door(n.inner().Forwards.Publish(req))
}

// Expose forwards a port of the node, at all its addresses, to a service of the machine's network:
// Expose("tcp", 80, "127.0.0.1:3000"). The network is "tcp" or "udp", as for Publish.
func (n *Node) Expose(network string, port uint16, to string) (*Door, error) {
	udp, err := datagrams("expose", network)
	if err != nil {
		return nil, err
	}
	return n.door(n.inner().Forwards.Expose(control.Expose{Port: port, To: to, UDP: udp}))
}

func (n *Node) door(d *portforward.Forward, err error) (*Door, error) {
	if err != nil {
		return nil, err
	}
	return &Door{door: d, addr: d.Addr()}, nil
}

// datagrams reports whether the network is UDP.
func datagrams(op, network string) (bool, error) {
	switch transportOf(network) {
	case "tcp":
		return false, nil
	case "udp":
		return true, nil
	}
	return false, &net.OpError{Op: op, Net: network, Err: net.UnknownNetworkError(network)}
}

// transportOf returns the network's name without the version of IP.
func transportOf(network string) string { return strings.TrimRight(network, "46") }

// machineAddr parses [HOST]:PORT of the machine.
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
		return on, fmt.Errorf("publish %q: must be [ADDR]:PORT: %w", address, syscall.EINVAL)
	}
	return on, nil
}

// Addr returns the address that accepts connections: for Publish one of the machine, for Expose one
// of the virtual network.
func (d *Door) Addr() net.Addr { return d.addr }

// Info returns the counters.
func (d *Door) Info() DoorInfo {
	if d.door == nil {
		return DoorInfo{}
	}
	s := d.door.State()
	return DoorInfo{
		Open: s.Open, Opened: s.Opened, Failed: s.Failed, In: s.In, Out: s.Out, Problem: s.Problem,
	}
}

// Close stops accepting. Existing connections stay open until they end or the node is closed.
func (d *Door) Close() error {
	if d.door == nil {
		return net.ErrClosed
	}
	return d.door.Close(false)
}

// Cut stops accepting and resets existing connections.
func (d *Door) Cut() error {
	if d.door == nil {
		return net.ErrClosed
	}
	return d.door.Close(true)
}
