package node

import (
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/udp"
)

// CaughtUDP is a flow of datagrams that no socket takes.
type CaughtUDP struct {
	node    *Node
	flow    udp.Flow
	decided atomic.Bool
}

// Local is the address and port that the datagrams are for.
func (c *CaughtUDP) Local() netip.AddrPort { return c.flow.Local }

// Remote is who sends them.
func (c *CaughtUDP) Remote() netip.AddrPort { return c.flow.Remote }

// Accept returns a connected socket that has got what came so far.
func (c *CaughtUDP) Accept() (*PacketConn, error) {
	if c.decided.Swap(true) {
		return nil, c.opError(net.ErrClosed)
	}
	conn, err := c.node.Packets.open(func() (*udp.Socket, error) {
		if s, ok := c.node.stack.UDP().Admit(c.flow); ok {
			return s, nil
		}
		return nil, syscall.ENOBUFS
	})
	if err != nil {
		return nil, c.opError(err)
	}
	return conn, nil
}

// Reject tells the sender that nobody listens.
func (c *CaughtUDP) Reject() {
	if !c.decided.Swap(true) {
		c.node.Post(func(now clock.Time) { c.node.stack.RejectUDP(now, c.flow) })
	}
}

// Ignore forgets what came.
func (c *CaughtUDP) Ignore() {
	if !c.decided.Swap(true) {
		c.node.Post(func(clock.Time) { c.node.stack.UDP().Dismiss(c.flow) })
	}
}

func (c *CaughtUDP) opError(err error) error {
	return &net.OpError{
		Op: "accept", Net: "udp", Source: net.UDPAddrFromAddrPort(c.Remote()),
		Addr: net.UDPAddrFromAddrPort(c.Local()), Err: err,
	}
}
