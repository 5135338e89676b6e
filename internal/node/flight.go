package node

import (
	"github.com/tidepool-net/tidepool/internal/capture"
	"github.com/tidepool-net/tidepool/internal/observe"
)

// maxFlights limits the connections with a flight recorder.
const maxFlights = 1024

// flights are the flight recorders of connections.
type flights struct {
	segments int // number of segments that each recorder keeps; 0: no recorders
	conns    map[*Conn]struct{}
}

// setRecorded sets how many segments each connection keeps. Loop only.
func (t *Taps) setRecorded(segments int) {
	if t.flights.segments == segments {
		return
	}
	t.flights.segments = segments
	for c := range t.flights.conns {
		t.flights.end(c)
	}
	t.updateTap()
}

// record records a segment of an application's connection. Loop only.
func (t *Taps) record(f *capture.Facts, s *observe.Packet, header []byte) {
	c := t.lookUp(f, s)
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

// end removes a connection's recorder.
func (f *flights) end(c *Conn) {
	c.flight = nil
	delete(f.conns, c)
}
