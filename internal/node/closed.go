package node

import (
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// Closed returns a node that is closed.
func Closed() *Node {
	n := newNode(Config{})
	n.closing.Store(true)
	n.shown.Store(&n.cfg.Network)
	close(n.stopped)
	return n
}

// ClosedConn returns a connection that is closed.
func ClosedConn() *Conn {
	c := &Conn{sid: -1, tc: new(tcp.Conn)}
	c.initClosed(c)
	return c
}

// ClosedRCPConn returns a connection of RCP that is closed.
func ClosedRCPConn() *RCPConn {
	c := &RCPConn{}
	c.initClosed(c)
	return c
}

// ClosedRCPListener returns a listener for RCP that is closed.
func ClosedRCPListener() *RCPListener {
	l := &RCPListener{}
	l.init(Closed(), rcpNetwork, netip.AddrPort{}, 1)
	l.end()
	return l
}

// ClosedListener returns a listener that is closed.
func ClosedListener() *Listener {
	l := &Listener{sid: -1}
	l.init(Closed(), "tcp", netip.AddrPort{}, 1)
	l.end()
	return l
}

// ClosedPacketConn returns a UDP socket that is closed.
func ClosedPacketConn() *PacketConn {
	c := &PacketConn{sid: -1}
	c.initClosed(c.refuse)
	return c
}

// Decided returns a connection that somebody has decided about.
func Decided() *Caught {
	c := &Caught{node: Closed()}
	c.decided.Store(true)
	return c
}

// DecidedUDP returns a flow of datagrams that somebody has decided about.
func DecidedUDP() *CaughtUDP {
	c := &CaughtUDP{node: Closed()}
	c.decided.Store(true)
	return c
}

// ClosedRawConn returns a raw socket that is closed.
func ClosedRawConn() *RawConn {
	c := &RawConn{network: "ip4", local: netip.IPv4Unspecified(), raw: &stack.Raw{}}
	c.initClosed(c.refuse)
	return c
}
