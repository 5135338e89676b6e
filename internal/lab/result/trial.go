package result

import (
	"strings"
	"time"
)

// Values are the values of metrics. A metric that is missing was not measured. Iterate over Catalog
// for a fixed order.
type Values map[Metric]float64

// Trial is the result of one run of one cell.
type Trial struct {
	Cell  int
	Trial int // number of the trial, from 0
	Seed  uint64
	// Hash is the digest of the run's events.
	Hash uint64
	// Virtual is the duration of the run by its Clock.
	Virtual time.Duration
	Clock   Clock
	// Finished means that all flows with an end have completed. Otherwise Note has the reason.
	Finished bool
	Note     string
	Whole    Values
	Flows    []Flow
}

// AddUp computes from the flows' metrics whether all flows have finished, the number of packets
// that they sent, each flow's share of the goodput, and Jain's index of the goodputs.
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

// Clock is the clock of a run.
type Clock string

// These are the clocks. Runs in real time have no Hash, because no two of them are equal.
const (
	VirtualTime Clock = ""
	RealTime    Clock = "real"
	// LateTime is real time in a run that was late.
	LateTime Clock = "real-late"
)

// Real reports whether the run was in real time.
func (c Clock) Real() bool { return c == RealTime || c == LateTime }

// Flow is the result of one flow of a run.
type Flow struct {
	Name     string
	Label    string // the flow's kind, such as its congestion control; it determines the color
	Finished bool
	Note     string
	Values   Values
}
