package node

import (
	"fmt"
	"iter"
	"net/netip"
	"slices"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// Packets contains the node's UDP and raw sockets. Only the loop uses the fields.
type Packets struct {
	node    *Node
	conns   map[*PacketConn]struct{}
	raws    map[*RawConn]struct{}
	hasRoom chan struct{} // closed when the queues have room; nil if no call waits
}

// PortOwner owns a UDP port for a protocol over UDP (stack.Port.UDP.Owner). Only the loop calls it.
type PortOwner interface {
	// Notify processes the events of this iteration at the port.
	Notify(now clock.Time)
	// Report handles an ICMP error about a datagram.
	Report(err error)
	// Undelivered reports whether a closing node should wait, up to lingerTime.
	Undelivered() bool
	// BoundTo lists the users of the addresses.
	BoundTo(addrs map[netip.Addr]bool) []Bound
	// Shut closes everything at the port when the node closes.
	Shut()
}

// owners returns the owners of ports of protocols over UDP. It iterates backward, because a port
// that closes moves the ports after it.
func (p *Packets) owners() iter.Seq[PortOwner] {
	return func(yield func(PortOwner) bool) {
		for _, port := range slices.Backward(p.node.stack.Ports().List()) {
			if o, ok := port.UDP.Owner.(PortOwner); ok && !yield(o) {
				return
			}
		}
	}
}

// notify wakes up blocked calls, and calls Notify of the owners.
func (p *Packets) notify(now clock.Time) {
	for {
		s, ok := p.node.stack.UDP().Next()
		if !ok {
			break
		}
		if o, ok := s.Owner.(PortOwner); ok {
			o.Report(s.TakeError())
		}
		c, ok := s.Owner.(*PacketConn)
		if !ok {
			continue
		}
		if err := NetError(s.TakeError()); err != nil {
			c.failure.Store(&err)
		}
		wake(c.arrived)
		p.node.leading.wokeAny = true
	}
	if p.hasRoom != nil && p.node.stack.Datagrams().HasRoom() {
		close(p.hasRoom)
		p.hasRoom = nil
	}
	for o := range p.owners() {
		o.Notify(now)
		p.node.leading.wokeAny = true
	}
}

// awaitRoom returns a channel that is closed when a full queue has room again.
func (p *Packets) awaitRoom() chan struct{} {
	if p.hasRoom == nil {
		p.hasRoom = make(chan struct{})
	}
	return p.hasRoom
}

// undelivered reports whether a port has data that its peer has not received.
func (p *Packets) undelivered() bool {
	for o := range p.owners() {
		if o.Undelivered() {
			return true
		}
	}
	return false
}

func (p *Packets) close() {
	for c := range p.conns {
		c.shut()
	}
	for c := range p.raws {
		c.shut()
	}
}

// boundTo lists the users of the addresses.
func (p *Packets) boundTo(addrs map[netip.Addr]bool) (list []Bound) {
	for c := range p.conns {
		if addrs[c.local.Addr()] {
			list = append(list, Bound{fmt.Sprintf("udp %v", c.local), func(clock.Time) {
				err := NetError(tcp.ErrAddressGone)
				c.failure.Store(&err) // the next call returns it
				wake(c.arrived)
			}})
		}
	}
	for o := range p.owners() {
		list = append(list, o.BoundTo(addrs)...)
	}
	return list
}
