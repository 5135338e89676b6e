package result

import (
	"strings"
	"time"
)

// Values are numbers by name; those not measured are missing. Iterate over Catalog for a fixed
// order.
type Values map[Metric]float64

// Trial is what one run of one cell came to.
type Trial struct {
	Cell  int
	Trial int // counted from 0
	Seed  uint64
	// Hash is the digest of the run's events.
	Hash uint64
	// Virtual is how much time passed in it, by the Clock.
	Virtual time.Duration
	Clock   Clock
	// Finished says that everything that had an end came to it; Note what happened if not.
	Finished bool
	Note     string
	Whole    Values
	Flows    []Flow
}

// AddUp completes a run from the results of its flows: whether all have finished, the packets that
// they sent, and how evenly they shared the goodput (Jain's index).
func (t *Trial) AddUp() {
	var notes []string
	var goodputs []float64
	var all, packets float64
	t.Finished = true
	for _, f := range t.Flows {
		if !f.Finished {
			t.Finished = false
			notes = append(notes, f.Name+": "+f.Note)
		}
		goodputs = append(goodputs, f.Values[Goodput])
		all += f.Values[Goodput]
		packets += f.Values[Sent]
	}
	t.Note = strings.Join(notes, "; ")
	if all > 0 {
		for i := range t.Flows {
			t.Flows[i].Values[Share] = t.Flows[i].Values[Goodput] / all
		}
		t.Whole[Jain] = JainIndex(goodputs)
	}
	t.Whole[Packets] = packets
}

// Clock says what drove a run.
type Clock string

// The clocks. A run that was driven by the machine's has no Hash: it is another each time.
const (
	VirtualTime Clock = ""
	RealTime    Clock = "real"
	// LateTime is the machine's, which could not keep time.
	LateTime Clock = "real-late"
)

// Real reports whether it is the machine's.
func (c Clock) Real() bool { return c == RealTime || c == LateTime }

// Flow is what one flow of a run came to.
type Flow struct {
	Name     string
	Label    string // what it is an instance of, such as its congestion control: a colour
	Finished bool
	Note     string
	Values   Values
}
