package tcp

import (
	"fmt"
	"slices"
)

// strategy is a way to find out what was lost and to mend it, as a sender: one
// a file. It keeps no state of its own; what it remembers is in recovery. A receiver reports the
// same whatever its own strategy is.
type strategy struct {
	name string
	// sack: the peer's selective acknowledgments count, and it may send them. A peer that sends
	// none is served by newReno instead.
	sack bool
	// probes: the tail of a flight is probed (RFC 8985 §7).
	probes bool
	// forward: a time-out is doubted first (RFC 5682).
	forward bool
	detector
}

// detector is the algorithm behind a strategy.
type detector interface {
	// detect draws from an acknowledgment what is lost.
	detect(v *recovery, r *round)
	// overdue reports whether a time-out takes an unacknowledged segment for lost.
	overdue(v *recovery, r *round, rec *record) bool
	// spare finds a segment to send again while recovery has room, nothing is known to be lost
	// and nothing new may be sent.
	spare(v *recovery) (id uint32, ok bool)
}

// simple is the part of a detector that takes everything for lost at a time-out, and finds
// nothing to spare.
type simple struct{}

func (simple) overdue(*recovery, *round, *record) bool { return true }
func (simple) spare(*recovery) (uint32, bool)          { return 0, false }

var strategies = []*strategy{&goBackN, &newReno, &selective, &rackTLP}

// Recoveries returns the names that Recovery.Strategy takes.
func Recoveries() []string {
	var names []string
	for _, s := range strategies {
		names = append(names, s.name)
	}
	return names
}

func findStrategy(name string) (*strategy, error) {
	if i := slices.IndexFunc(strategies, func(s *strategy) bool { return s.name == name }); i >= 0 {
		return strategies[i], nil
	}
	return nil, fmt.Errorf("unknown loss recovery %q (have %v)", name, Recoveries())
}
