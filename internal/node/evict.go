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

// boundTo lists what has one of the addresses: connections, listeners, UDP sockets. The loop's.
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
