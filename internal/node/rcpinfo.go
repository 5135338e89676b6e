package node

import (
	"fmt"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/rcp"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// RCPSockets lists RCP's ports and connections. The loop's.
func RCPSockets(s *stack.Stack) []control.RCPSocket {
	list := []control.RCPSocket{}
	for _, port := range s.Ports().List() {
		p, ok := port.UDP.Owner.(*rcpPort)
		if !ok {
			continue
		}
		if p.listener != nil {
			list = append(list, control.RCPSocket{
				Local: port.UDP.Local(), Remote: netip.AddrPortFrom(netip.IPv4Unspecified(), 0),
				State: "listening", RCPCounts: rcpCounts(p.port.Router.Counts()),
			})
		}
		for s := range p.port.Router.Sockets() {
			if c, ok := s.Owner.(*RCPConn); ok {
				list = append(list, c.describe())
			}
		}
	}
	return list
}

// Describe is what operators see of a connection; the zero RCPSocket when the node is closed.
func (c *RCPConn) Describe() (s control.RCPSocket) {
	_ = c.node.Call(func(*stack.Stack, clock.Time) error { s = c.describe(); return nil })
	return s
}

// describe is Describe. The loop's.
func (c *RCPConn) describe() control.RCPSocket {
	i := c.socket.Info()
	return control.RCPSocket{
		Local: c.Local(), Remote: c.Remote(), State: i.State.String(),
		Unacked: int(i.Nxt - i.Una), Held: i.Held, Unsent: i.Unsent, Unread: i.Unread,
		SRTT: i.SRTT, RCPCounts: rcpCounts(i.Counts),
	}
}

func rcpCounts(c rcp.Counts) control.RCPCounts {
	n := control.RCPCounts{
		DAT: c.DAT, ACK: c.ACK, FIN: c.FIN, Again: c.Again, Received: c.Received,
	}
	for _, dropped := range c.Dropped {
		n.Dropped += dropped
	}
	return n
}

// CloseRCP ends what RCP has on a port. The loop's.
func CloseRCP(s *stack.Stack, number uint16) error {
	for _, port := range s.Ports().List() {
		if p, ok := port.UDP.Owner.(*rcpPort); ok && port.UDP.Local().Port() == number {
			p.Shut()
			return nil
		}
	}
	return fmt.Errorf("RCP on port %d: %w", number, control.ErrNoSuchSocket)
}
