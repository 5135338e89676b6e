package recovery

import "fmt"

// strategy detects and repairs losses at the sender; each is in a file of its own. Its state is in
// Recovery. The strategy of a receiver does not change what it reports.
type strategy struct {
	name    string
	sack    bool // uses selective acknowledgments; newReno serves peers that send none
	probes  bool // probes the tail of a flight (RFC 8985 §7)
	forward bool // doubts a timeout first (RFC 5682)
	detector
}

// detector is the algorithm behind a strategy.
type detector interface {
	// detect draws from an acknowledgment what is lost.
	detect(v *Recovery, r *Ack)
	// overdue reports whether a timeout declares an unacknowledged segment lost.
	overdue(v *Recovery, r *Ack, rec *record) bool
	// spare finds a segment to send again while recovery has room, nothing is known to be lost
	// and nothing new may be sent.
	spare(v *Recovery) (id uint32, ok bool)
}

// simple is the part of a detector that declares everything lost at a timeout, and detects no
// spurious one.
type simple struct{}

func (simple) overdue(*Recovery, *Ack, *record) bool { return true }
func (simple) spare(*Recovery) (uint32, bool)        { return 0, false }

var strategies = []*strategy{&goBackN, &newReno, &selective, &rackTLP}

// Names returns the names of the strategies: what Options.Strategy may be.
func Names() []string {
	var names []string
	for _, s := range strategies {
		names = append(names, s.name)
	}
	return names
}

// UsesSACK reports whether a strategy makes use of selective acknowledgments (RFC 2018).
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

// choose returns a strategy, or newReno in its place if it needs SACK and the peer sends none.
func choose(name string, sack bool) *strategy {
	if s := find(name); !s.sack || sack {
		return s
	}
	return &newReno
}
