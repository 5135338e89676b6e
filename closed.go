package tidepool

import (
	"github.com/tidepool-net/tidepool/internal/link"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/operator"
)

// The zero values of what Open, Dial, Listen and Pipe return behave as if they had
// been closed.

func (n *Node) inner() *operator.Node {
	if n.node == nil {
		return operator.Closed()
	}
	return n.node
}

func (c *Conn) inner() *node.Conn {
	if c.conn == nil {
		return node.ClosedConn()
	}
	return c.conn
}

func (l *Listener) inner() *node.Listener {
	if l.listener == nil {
		return node.ClosedListener()
	}
	return l.listener
}

func (c *RCPConn) inner() *node.RCPConn {
	if c.conn == nil {
		return node.ClosedRCPConn()
	}
	return c.conn
}

func (l *RCPListener) inner() *node.RCPListener {
	if l.listener == nil {
		return node.ClosedRCPListener()
	}
	return l.listener
}

func (s *RDTServer) inner() *node.RDTServer {
	if s.server == nil {
		return node.ClosedRDTServer()
	}
	return s.server
}

func (c *PacketConn) inner() *node.PacketConn {
	if c.conn == nil {
		return node.ClosedPacketConn()
	}
	return c.conn
}

func (r *Request) inner() *node.Caught {
	if r.caught == nil {
		return node.Decided()
	}
	return r.caught
}

func (r *UDPRequest) inner() *node.CaughtUDP {
	if r.caught == nil {
		return node.DecidedUDP()
	}
	return r.caught
}

func (e *PipeEnd) inner() *link.End {
	if e.end == nil {
		closed, _ := link.Pipe(1)
		_ = closed.Close() // the first Close of a pipe's end does not fail
		return closed
	}
	return e.end
}

func (c *IPConn) inner() *node.RawConn {
	if c.conn == nil {
		return node.ClosedRawConn()
	}
	return c.conn
}
