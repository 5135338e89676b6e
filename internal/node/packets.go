package node

import (
	"fmt"
	"iter"
	"net/netip"
	"slices"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// Packets holds the node's UDP and raw sockets. The fields are loop only.
type Packets struct {
	node  *Node
	conns map[*PacketConn]struct{}
	raws  map[*RawConn]struct{}
	roomy chan struct{} // closed when the queues have room; nil: no call waits
}

// PortOwner owns a UDP port for a protocol over UDP (stack.Port.UDP.Owner). All calls are in the
// loop.
type PortOwner interface {
	// Tell handles what happened at the port in this iteration.
	Tell(now clock.Time)
	// Report handles an ICMP error about a datagram.
	Report(err error)
	// Undelivered reports whether a closing node should wait, for at most lingerTime.
	Undelivered() bool
	// BoundTo lists what uses one of the addresses.
	BoundTo(addrs map[netip.Addr]bool) []Bound
	// Shut closes everything at the port: the node closes.
	Shut()
}

// owners returns the owners of ports of protocols over UDP. It goes backward, because a port that
// closes moves those after it.
func (p *Packets) owners() iter.Seq[PortOwner] {
	return func(yield func(PortOwner) bool) {
		for _, port := range slices.Backward(p.node.stack.Ports().List()) {
			if o, ok := port.UDP.Owner.(PortOwner); ok && !yield(o) {
				return
			}
		}
	}
}

// tell wakes blocked calls, and calls Tell of the owners.
func (p *Packets) tell(now clock.Time) {
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
		p.node.leading.roused = true
	}
	if p.roomy != nil && p.node.stack.Datagrams().Roomy() {
		close(p.roomy)
		p.roomy = nil
	}
	for o := range p.owners() {
		o.Tell(now)
		p.node.leading.roused = true
	}
}

// awaitRoom returns a channel that is closed when a full queue has room again.
func (p *Packets) awaitRoom() chan struct{} {
	if p.roomy == nil {
		p.roomy = make(chan struct{})
	}
	return p.roomy
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

// boundTo lists what uses one of the addresses.
func (p *Packets) boundTo(addrs map[netip.Addr]bool) (list []Bound) {
	for c := range p.conns {
		if addrs[c.local.Addr()] {
			list = append(list, Bound{fmt.Sprintf("udp %v", c.local), func(clock.Time) {
				err := NetError(tcp.ErrAddressGone)
				c.failure.Store(&err) // for the next call
				wake(c.arrived)
			}})
		}
	}
	for o := range p.owners() {
		list = append(list, o.BoundTo(addrs)...)
	}
	return list
}
