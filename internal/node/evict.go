package node

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// bound is something that an address of the node's is taken from.
type bound struct {
	text string
	end  func(now clock.Time)
}

// boundTo lists what has one of the addresses: connections, listeners, UDP sockets, and who has a
// port of RCP's or RDT's. The loop's.
func (n *Node) boundTo(addrs map[netip.Addr]bool) (list []bound) {
	if len(addrs) == 0 {
		return nil
	}
	for c := range n.stack.TCP().Conns() {
		t := c.Tuple()
		if addrs[t.Local().Addr()] && c.State() != tcp.StateClosed {
			list = append(list, bound{
				fmt.Sprintf("tcp %v to %v", t.Local(), t.Remote()),
				func(now clock.Time) { c.Forsake(now, tcp.ErrAddressGone) },
			})
		}
	}
	for _, l := range n.listeners {
		if addrs[l.addr.Addr()] && !l.closing.Load() {
			list = append(list, bound{fmt.Sprintf("tcp %v, listening", l.addr), l.endHere})
		}
	}
	for c := range n.packetConns {
		if addrs[c.local.Addr()] {
			list = append(list, bound{fmt.Sprintf("udp %v", c.local), func(clock.Time) {
				err := netError(tcp.ErrAddressGone)
				c.failure.Store(&err) // of the next call
				wake(c.arrived)
			}})
		}
	}
	for _, port := range n.stack.Ports() {
		switch e := port.UDP.Owner.(type) {
		case *rcpPort:
			list = append(list, e.boundTo(addrs)...)
		case *RDTServer:
			if addrs[e.addr.Addr()] {
				list = append(list, bound{
					fmt.Sprintf("rdt %v, serving", e.addr), func(clock.Time) { e.shut() },
				})
			}
		case *rdtFlow:
			if addrs[e.local.Addr()] && !e.receiver.Done() {
				list = append(list, bound{
					fmt.Sprintf("rdt %v from %v", e.local, e.port.UDP.Remote()),
					func(clock.Time) { e.shut(netError(tcp.ErrAddressGone)) },
				})
			}
		}
	}
	slices.SortFunc(list, func(a, b bound) int { return strings.Compare(a.text, b.text) })
	return list
}

// endHere closes a listener from within the loop. Accept says that it is closed.
func (l *Listener) endHere(now clock.Time) {
	if l.closing.Swap(true) {
		return
	}
	close(l.done)
	l.by.stop()
	l.strike(now)
}

// boundTo lists what of a port of RCP's has one of the addresses. The loop's.
func (p *rcpPort) boundTo(addrs map[netip.Addr]bool) (list []bound) {
	for c := range p.conns {
		if addrs[c.local().Addr()] {
			list = append(list, bound{
				fmt.Sprintf("rcp %v to %v", c.local(), c.peer()), func(clock.Time) { c.forsake() },
			})
		}
	}
	if l := p.listener; l != nil && addrs[l.addr.Addr()] {
		list = append(list, bound{fmt.Sprintf("rcp %v, listening", l.addr), func(clock.Time) {
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
	c.port.tell()
}
