package node

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// Bound is a user of one of the node's addresses, which has to end when the address goes.
type Bound struct {
	Text string // what a reload says of it: "udp 10.0.0.1:7"
	End  func(now clock.Time)
}

// BoundTo lists what has one of the addresses: connections, listeners, UDP sockets, and who has a
// port of RCP's or RDT's. The loop's.
func (n *Node) BoundTo(addrs map[netip.Addr]bool) (list []Bound) {
	if len(addrs) == 0 {
		return nil
	}
	for c := range n.stack.TCP().Conns() {
		t := c.Tuple()
		if addrs[t.Local().Addr()] && c.State() != tcp.StateClosed {
			list = append(list, Bound{
				fmt.Sprintf("tcp %v to %v", t.Local(), t.Remote()),
				func(now clock.Time) { c.Forsake(now, tcp.ErrAddressGone) },
			})
		}
	}
	for _, l := range n.listeners {
		if addrs[l.addr.Addr()] && !l.closing.Load() {
			list = append(list, Bound{fmt.Sprintf("tcp %v, listening", l.addr), l.endHere})
		}
	}
	for c := range n.packetConns {
		if addrs[c.local.Addr()] {
			list = append(list, Bound{fmt.Sprintf("udp %v", c.local), func(clock.Time) {
				err := NetError(tcp.ErrAddressGone)
				c.failure.Store(&err) // of the next call
				wake(c.arrived)
			}})
		}
	}
	for _, port := range n.stack.Ports().List() {
		if o, ok := port.UDP.Owner.(PortOwner); ok {
			list = append(list, o.BoundTo(addrs)...)
		}
	}
	slices.SortFunc(list, func(a, b Bound) int { return strings.Compare(a.Text, b.Text) })
	return list
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
