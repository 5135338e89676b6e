package recovery

import "fmt"

// strategy detects and repairs losses at the sender. Each strategy has its own file, and keeps its
// state in Recovery. What a receiver reports does not depend on its own strategy.
type strategy struct {
	name    string
	sack    bool // uses selective acknowledgments; newReno serves peers that send none
	probes  bool // probes the tail of a flight (RFC 8985 §7)
	forward bool // uses F-RTO after a timeout (RFC 5682)
	detector
}

// detector is the algorithm behind a strategy.
type detector interface {
	// detect marks as lost the segments that an acknowledgment shows to be lost.
	detect(v *Recovery, r *Ack)
	// overdue reports whether a timeout declares an unacknowledged segment lost.
	overdue(v *Recovery, r *Ack, rec *record) bool
	// spare finds a segment to retransmit while recovery has room, no segment is known to be lost
	// and no new data may be sent.
	spare(v *Recovery) (id uint32, ok bool)
}

// simple is the part of a detector that marks everything as lost at a timeout.
type simple struct{}

func (simple) overdue(*Recovery, *Ack, *record) bool { return true }
func (simple) spare(*Recovery) (uint32, bool)        { return 0, false }

var strategies = []*strategy{&goBackN, &newReno, &selective, &rackTLP}

// Names returns the names of the strategies, which Options.Strategy accepts.
func Names() []string {
	var names []string
	for _, s := range strategies {
		names = append(names, s.name)
	}
	return names
}

// UsesSACK reports whether a strategy uses selective acknowledgments (RFC 2018).
func UsesSACK(name string) (bool, error) {
	if s := find(name); s != nil {
		return s.sack, nil
	}
	return false, fmt.Errorf("unknown loss recovery %q: must be one of %v", name, Names())
}

func find(name string) *strategy {
	for _, s := range strategies {
		if s.name == name {
			return s
		}
	}
	return nil
}

// choose returns a strategy, or newReno if the strategy needs SACK and the peer sends none.
func choose(name string, sack bool) *strategy {
	if s := find(name); !s.sack || sack {
		return s
	}
	return &newReno
}
