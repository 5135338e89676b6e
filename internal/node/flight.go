package node

import (
	"github.com/tidepool-net/tidepool/internal/capture"
	"github.com/tidepool-net/tidepool/internal/observe"
)

// maxFlights is how many connections have a flight recorder; those that come while there are so
// many have none.
const maxFlights = 1024

// flights are the recorders of connections. The loop's.
type flights struct {
	recorded int // segments that each keeps; 0: none
	flying   map[*Conn]struct{}
}

// flight is a connection's recorder.
type flight = observe.Recorder

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
func (n *Node) fly(f *capture.Facts, s *observe.Packet, header []byte) {
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
		c.flight = observe.NewRecorder(n.recorded)
	}
	c.flight.Put(s, header)
}

// land takes a connection's recorder away. The loop's.
func (n *Node) land(c *Conn) {
	c.flight = nil
	delete(n.flying, c)
}
