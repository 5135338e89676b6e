package node

import "github.com/tidepool-net/tidepool/internal/capture"

// Bounds of what flight recorders may cost: a connection with 64 segments has 22 kB.
const (
	maxRecorded = 4096 // segments a connection
	maxFlights  = 1024 // connections; those that come while there are so many have none
)

// flights are the recorders of connections. The loop's.
type flights struct {
	recorded int // segments that each keeps; 0: none
	flying   map[*Conn]struct{}
}

// flight is a connection's recorder: its last segments, in a ring that is allocated once.
type flight struct {
	ring []sight
	data []byte // HeaderBytes for each
	next int
	full bool
}

// setRecorded has connections keep so many of their segments from now on. The loop's.
func (n *Node) setRecorded(segments int) {
	if n.recorded == segments {
		return
	}
	n.recorded = segments
	for c := range n.flying {
		n.land(c)
	}
	n.retap()
}

// fly has the connection of a segment keep it. The loop's.
func (n *Node) fly(f *capture.Facts, s *sight, header []byte) {
	c := n.glance(f, s)
	if c == nil || c.gone {
		return
	}
	if c.flight == nil {
		if len(n.flying) >= maxFlights {
			return
		}
		if n.flying == nil {
			n.flying = map[*Conn]struct{}{}
		}
		n.flying[c] = struct{}{}
		c.flight = &flight{
			ring: make([]sight, n.recorded), data: make([]byte, n.recorded*capture.HeaderBytes),
		}
	}
	c.flight.put(s, header)
}

// land takes a connection's recorder away. The loop's.
func (n *Node) land(c *Conn) {
	c.flight = nil
	delete(n.flying, c)
}

func (r *flight) put(s *sight, header []byte) {
	one := &r.ring[r.next]
	*one = *s
	one.begin = r.next * capture.HeaderBytes
	one.end = one.begin + copy(r.data[one.begin:one.begin+capture.HeaderBytes], header)
	if r.next++; r.next == len(r.ring) {
		r.next, r.full = 0, true
	}
}

// pile is a copy of what it has, in the order in which it came.
func (r *flight) pile() (p pile) {
	if r == nil {
		return p
	}
	p.data = append(p.data, r.data...)
	if r.full {
		p.list = append(p.list, r.ring[r.next:]...)
	}
	p.list = append(p.list, r.ring[:r.next]...)
	return p
}
