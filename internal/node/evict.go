package node

import (
	"fmt"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// Bound is a user of one of the node's addresses, which has to end when the address goes.
type Bound struct {
	Text string // what a reload says of it: "udp 10.0.0.1:7"
	End  func(now clock.Time)
}

// endHere closes a listener from within the loop. Accept says that it is closed.
func (l *Listener) endHere(now clock.Time) {
	if l.end() {
		_ = l.strike(l.node.stack, now) // never fails
	}
}

// BoundTo implements PortOwner.
func (p *rcpPort) BoundTo(addrs map[netip.Addr]bool) (list []Bound) {
	for c := range p.conns {
		if addrs[c.Local().Addr()] {
			text := fmt.Sprintf("rcp %v to %v", c.Local(), c.Remote())
			list = append(list, Bound{text, func(clock.Time) { c.forsake() }})
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

// forsake ends a connection whose address is no more. The peer notices the silence.
func (c *RCPConn) forsake() {
	c.fail(tcp.ErrAddressGone)
	c.socket.Abort()
	c.port.Tell(clock.Never)
}
