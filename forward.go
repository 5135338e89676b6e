package tidepool

import (
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/node"
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
		return n.inner().Forward(nil)
	}
	return n.inner().Forward(func(c *node.Caught) { f(&Request{c}) })
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
		return n.inner().ForwardUDP(nil)
	}
	return n.inner().ForwardUDP(func(c *node.CaughtUDP) { f(&UDPRequest{c}) })
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
