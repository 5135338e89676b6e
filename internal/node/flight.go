package node

import (
	"github.com/tidepool-net/tidepool/internal/capture"
	"github.com/tidepool-net/tidepool/internal/observe"
)

// maxFlights bounds the connections that have a flight recorder.
const maxFlights = 1024

// flights are the recorders of connections.
type flights struct {
	segments int // that each keeps; 0: there are no recorders
	conns    map[*Conn]struct{}
}

// setRecorded has connections keep so many of their segments from now on. The loop's.
func (t *Taps) setRecorded(segments int) {
	if t.flights.segments == segments {
		return
	}
	t.flights.segments = segments
	for c := range t.flights.conns {
		t.flights.end(c)
	}
	t.retap()
}

// fly has the connection of a segment keep it. The loop's.
func (t *Taps) fly(f *capture.Facts, s *observe.Packet, header []byte) {
	c := t.glance(f, s)
	if c == nil || c.gone {
		return
	}
	if c.flight == nil {
		if len(t.flights.conns) >= maxFlights {
			return
		}
		if t.flights.conns == nil {
			t.flights.conns = map[*Conn]struct{}{}
		}
		t.flights.conns[c] = struct{}{}
		c.flight = observe.NewRecorder(t.flights.segments)
	}
	c.flight.Put(s, header)
}

// end takes a connection's recorder away.
func (f *flights) end(c *Conn) {
	c.flight = nil
	delete(f.conns, c)
}
