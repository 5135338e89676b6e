package node

// What the loop does for UDP sockets. All of it is the loop's.

// packets is the loop's side of UDP.
type packets struct {
	packetConns  map[*PacketConn]struct{}
	rawConns     map[*RawConn]struct{}
	talks        map[*PacketConn]*talk // those of them that operators opened
	roomy        chan struct{}         // closed when ErrQueueFull is over; nil: nobody waits
	udpForwarder func(*CaughtUDP)
}

// reporting is an owner of a socket who hears of ICMP's reports alone.
type reporting interface{ report(err error) }

// tellPackets wakes those whose sockets have something new.
func (p *packets) tellPackets(n *Node) {
	for {
		s, ok := n.stack.UDP().Next()
		if !ok {
			break
		}
		if p, ok := s.Owner.(reporting); ok {
			p.report(s.TakeError())
		}
		c, ok := s.Owner.(*PacketConn)
		if !ok {
			continue
		}
		if err := netError(s.TakeError()); err != nil {
			c.failure.Store(&err)
		}
		wake(c.arrived)
	}
	if p.roomy != nil && n.stack.Roomy() {
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
	delete(n.talks, c)
	c.us.Close()
	n.stack.RemoveSocket(c.sid)
}

// closePackets closes every socket, at the end.
func (n *Node) closePackets() {
	for c := range n.packetConns {
		c.shut()
	}
}
