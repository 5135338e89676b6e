package rip

import (
	"fmt"
	"net/netip"
)

// EventKind is what happened.
type EventKind uint8

// The kinds of events.
const (
	NeighborHeard  EventKind = iota // Neighbor spoke for the first time, or again
	NeighborSilent                  // the last route through Neighbor has expired
	MessageRefused                  // a message of Neighbor's was refused for Reason
	RouteLearned                    // Prefix leads through Neighbor at Cost
	RouteLost                       // Prefix leads nowhere any more
	RouteExpired                    // nobody refreshed Prefix
)

// Event is something that an operator who looks on wants to see.
type Event struct {
	Kind     EventKind
	Neighbor netip.Addr
	Iface    int
	Prefix   netip.Prefix
	Cost     int
	Reason   Refusal
}

// String is the event in one line.
func (e Event) String() string {
	switch e.Kind {
	case NeighborHeard:
		return fmt.Sprintf("neighbor %v is up", e.Neighbor)
	case NeighborSilent:
		return fmt.Sprintf("neighbor %v is silent", e.Neighbor)
	case MessageRefused:
		return fmt.Sprintf("message of %v refused: %v", e.Neighbor, e.Reason)
	case RouteLearned:
		return fmt.Sprintf("%v via %v cost %d", e.Prefix, e.Neighbor, e.Cost)
	case RouteLost:
		return fmt.Sprintf("%v lost", e.Prefix)
	case RouteExpired:
		return fmt.Sprintf("%v via %v expired", e.Prefix, e.Neighbor)
	}
	return "event"
}

// maxEvents bounds what waits for Events; more is left out.
const maxEvents = 256

// SetWatched has events kept for Events from now on, or no longer.
func (s *Speaker) SetWatched(on bool) {
	s.watched = on
	if !on {
		s.events = nil
	}
}

// Events returns what happened since the last call while somebody watched.
func (s *Speaker) Events() []Event {
	e := s.events
	s.events = nil
	return e
}

func (s *Speaker) tell(e Event) {
	if s.watched && len(s.events) < maxEvents {
		s.events = append(s.events, e)
	}
}
