package node

import (
	"net/netip"
	"slices"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// What the loop does for UDP sockets. All of it is the loop's.

// packets is the loop's side of UDP.
type packets struct {
	packetConns map[*PacketConn]struct{}
	rawConns    map[*RawConn]struct{}
	roomy       chan struct{} // closed when ErrQueueFull is over; nil: nobody waits
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

// tellPorts passes on what happened at the ports of protocols over UDP in this iteration.
func (n *Node) tellPorts(now clock.Time) {
	// Backward: one that closes moves those behind it.
	for _, port := range slices.Backward(n.stack.Ports().List()) {
		if o, ok := port.UDP.Owner.(PortOwner); ok {
			o.Tell(now)
		}
	}
}

// tellPackets wakes those whose sockets have something new.
func (p *packets) tellPackets(n *Node) {
	for {
		s, ok := n.stack.UDP().Next()
		if !ok {
			break
		}
		if p, ok := s.Owner.(PortOwner); ok {
			p.Report(s.TakeError())
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
	if p.roomy != nil && n.stack.Datagrams().Roomy() {
		close(p.roomy)
		p.roomy = nil
	}
}

// awaitRoom returns what is closed once a send is worth another try.
func (p *packets) awaitRoom() chan struct{} {
	if p.roomy == nil {
		p.roomy = make(chan struct{})
	}
	return p.roomy
}

// releasePacketConn strikes a socket that was closed from the books.
func (n *Node) releasePacketConn(c *PacketConn) {
	delete(n.packetConns, c)
	c.us.Close()
	n.stack.Sockets().Remove(c.sid)
}

// closePackets closes every socket, at the end.
func (n *Node) closePackets() {
	for c := range n.packetConns {
		c.shut()
	}
}
