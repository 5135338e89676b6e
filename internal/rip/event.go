package rip

import (
	"fmt"
	"net/netip"
)

// EventKind is a kind of event.
type EventKind uint8

// These are the kinds of events.
const (
	NeighborHeard  EventKind = iota // the first message of Neighbor, or its first after Timeout
	NeighborSilent                  // the last route through Neighbor has expired
	MessageRefused                  // the Speaker rejected a message of Neighbor for Reason
	RouteLearned                    // Prefix is reachable through Neighbor at Cost
	RouteLost                       // Prefix is unreachable
	RouteExpired                    // Prefix was not refreshed within Timeout
)

// Event is an observation for an operator.
type Event struct {
	Kind     EventKind
	Neighbor netip.Addr
	Iface    int
	Prefix   netip.Prefix
	Cost     int
	Reason   Refusal
}

// String formats the event in one line.
func (e Event) String() string {
	switch e.Kind {
	case NeighborHeard:
		return fmt.Sprintf("neighbor %v is up", e.Neighbor)
	case NeighborSilent:
		return fmt.Sprintf("neighbor %v is silent", e.Neighbor)
	case MessageRefused:
		return fmt.Sprintf("message from %v refused: %v", e.Neighbor, e.Reason)
	case RouteLearned:
		return fmt.Sprintf("%v via %v cost %d", e.Prefix, e.Neighbor, e.Cost)
	case RouteLost:
		return fmt.Sprintf("%v lost", e.Prefix)
	case RouteExpired:
		return fmt.Sprintf("%v via %v expired", e.Prefix, e.Neighbor)
	}
	return "event"
}

// maxEvents limits the events that wait for a call of Events. Further events are dropped.
const maxEvents = 256

// SetWatched turns the recording of events on or off.
func (s *Speaker) SetWatched(on bool) {
	s.watched = on
	if !on {
		s.events = nil
	}
}

// Events returns the recorded events since the last call.
func (s *Speaker) Events() []Event {
	e := s.events
	s.events = nil
	return e
}

func (s *Speaker) addEvent(e Event) {
	if s.watched && len(s.events) < maxEvents {
		s.events = append(s.events, e)
	}
}
