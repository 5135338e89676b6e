package node

import (
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// Closed returns a closed node.
func Closed() *Node {
	n := newNode(Config{})
	n.closing.Store(true)
	n.shown.Store(&n.cfg.Network)
	close(n.stopped)
	return n
}

// ClosedConn returns a closed connection.
func ClosedConn() *Conn {
	c := &Conn{sid: -1, tc: new(tcp.Conn)}
	c.initClosed(c)
	return c
}

// ClosedRCPConn returns a closed RCP connection.
func ClosedRCPConn() *RCPConn {
	c := &RCPConn{}
	c.initClosed(c)
	return c
}

// ClosedRCPListener returns a closed RCP listener.
func ClosedRCPListener() *RCPListener {
	l := &RCPListener{}
	l.init(Closed(), rcpNetwork, netip.AddrPort{}, 1)
	l.end()
	return l
}

// ClosedListener returns a closed listener.
func ClosedListener() *Listener {
	l := &Listener{sid: -1}
	l.init(Closed(), "tcp", netip.AddrPort{}, 1)
	l.end()
	return l
}

// ClosedPacketConn returns a closed UDP socket.
func ClosedPacketConn() *PacketConn {
	c := &PacketConn{sid: -1}
	c.initClosed(c.ownError)
	return c
}

// Decided returns a connection that has already been accepted or rejected.
func Decided() *Caught {
	c := &Caught{node: Closed()}
	c.decided.Store(true)
	return c
}

// DecidedUDP returns a UDP flow that has already been accepted or rejected.
func DecidedUDP() *CaughtUDP {
	c := &CaughtUDP{node: Closed()}
	c.decided.Store(true)
	return c
}

// ClosedRawConn returns a closed raw socket.
func ClosedRawConn() *RawConn {
	c := &RawConn{network: "ip4", local: netip.IPv4Unspecified(), raw: &stack.Raw{}}
	c.initClosed(c.ownError)
	return c
}

// initClosed is like init, for a connection that was never open.
func (d *duplex) initClosed(c transport) {
	d.node, d.transport = Closed(), c
	d.closed.Store(true)
	d.in.closed.Store(true)
	d.out.closed.Store(true)
}
