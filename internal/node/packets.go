package node

import (
	"fmt"
	"iter"
	"net/netip"
	"slices"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// Packets has the node's UDP and raw sockets. The fields are the loop's.
type Packets struct {
	node  *Node
	conns map[*PacketConn]struct{}
	raws  map[*RawConn]struct{}
	roomy chan struct{} // closed when ErrQueueFull is over; nil: no send waits for that
}

// PortOwner has a UDP port of the stack for a protocol that is not UDP (stack.Port.UDP.Owner). The
// loop calls its methods.
type PortOwner interface {
	// Tell passes on what happened at the port in this iteration of the loop.
	Tell(now clock.Time)
	// Report takes what ICMP says of a datagram.
	Report(err error)
	// Undelivered reports whether a node that closes should wait, for lingerTime at most.
	Undelivered() bool
	// BoundTo lists what has one of these addresses.
	BoundTo(addrs map[netip.Addr]bool) []Bound
	// Shut ends everything at the port: the node closes.
	Shut()
}

// owners are the owners of the ports of protocols over UDP, backward: one that closes moves those
// behind it.
func (p *Packets) owners() iter.Seq[PortOwner] {
	return func(yield func(PortOwner) bool) {
		for _, port := range slices.Backward(p.node.stack.Ports().List()) {
			if o, ok := port.UDP.Owner.(PortOwner); ok && !yield(o) {
				return
			}
		}
	}
}

// tell wakes the calls whose sockets have something new, and passes on what happened at ports.
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
	}
	if p.roomy != nil && p.node.stack.Datagrams().Roomy() {
		close(p.roomy)
		p.roomy = nil
	}
	for o := range p.owners() {
		o.Tell(now)
	}
}

// awaitRoom returns what is closed once a send is worth another try.
func (p *Packets) awaitRoom() chan struct{} {
	if p.roomy == nil {
		p.roomy = make(chan struct{})
	}
	return p.roomy
}

// undelivered reports whether a port has something that its peer lacks.
func (p *Packets) undelivered() bool {
	for o := range p.owners() {
		if o.Undelivered() {
			return true
		}
	}
	return false
}

// close closes every socket, with the node.
func (p *Packets) close() {
	for c := range p.conns {
		c.shut()
	}
	for c := range p.raws {
		c.shut()
	}
}

// boundTo lists the sockets, and ports of protocols over UDP, that have one of the addresses.
func (p *Packets) boundTo(addrs map[netip.Addr]bool) (list []Bound) {
	for c := range p.conns {
		if addrs[c.local.Addr()] {
			list = append(list, Bound{fmt.Sprintf("udp %v", c.local), func(clock.Time) {
				err := NetError(tcp.ErrAddressGone)
				c.failure.Store(&err) // of the next call
				wake(c.arrived)
			}})
		}
	}
	for o := range p.owners() {
		list = append(list, o.BoundTo(addrs)...)
	}
	return list
}
