package node

import (
	"fmt"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// Bound uses one of the node's addresses, and ends when the address is removed.
type Bound struct {
	Text string // its name in a reload's report, such as "udp 10.0.0.1:7"
	End  func(now clock.Time)
}

// closeNow closes the listener. Accept fails with net.ErrClosed. Loop only.
func (l *Listener) closeNow(now clock.Time) {
	if l.end() {
		_ = l.remove(l.node.stack, now) // never fails
	}
}

// BoundTo implements PortOwner.
func (p *rcpPort) BoundTo(addrs map[netip.Addr]bool) (list []Bound) {
	for c := range p.conns {
		if addrs[c.Local().Addr()] {
			text := fmt.Sprintf("rcp %v to %v", c.Local(), c.Remote())
			list = append(list, Bound{text, func(clock.Time) { c.abandon() }})
		}
	}
	if l := p.listener; l != nil && addrs[l.addr.Addr()] {
		list = append(list, Bound{fmt.Sprintf("rcp %v, listening", l.addr), func(clock.Time) {
			l.end()
			p.unlisten()
		}})
	}
	return list
}

// abandon ends a connection whose address was removed. The peer times out.
func (c *RCPConn) abandon() {
	c.fail(tcp.ErrAddressGone)
	c.socket.Abort()
	c.port.Tell(clock.Never)
}
