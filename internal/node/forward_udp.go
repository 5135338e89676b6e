package node

import (
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/udp"
)

// CaughtUDP is an incoming UDP flow that no socket receives.
type CaughtUDP struct {
	node    *Node
	flow    udp.Flow
	decided atomic.Bool
}

// Local returns the destination address and port.
func (c *CaughtUDP) Local() netip.AddrPort { return c.flow.Local }

// Remote returns the sender's address and port.
func (c *CaughtUDP) Remote() netip.AddrPort { return c.flow.Remote }

// Accept returns a connected socket with the datagrams that have arrived.
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

// Reject answers with an ICMP port unreachable.
func (c *CaughtUDP) Reject() {
	if !c.decided.Swap(true) {
		c.node.Post(func(now clock.Time) { c.node.stack.RejectUDP(now, c.flow) })
	}
}

// Ignore drops the datagrams.
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
