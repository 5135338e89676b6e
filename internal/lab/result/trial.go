package result

import "time"

// Values are numbers by name. What was not measured is not there. Whoever ranges over them
// ranges over Catalog.
type Values map[Metric]float64

// Trial is what one run of one cell came to.
type Trial struct {
	Cell  int
	Trial int // counted from 0
	Seed  uint64
	// Hash is the digest of the run's events.
	Hash uint64
	// Virtual is how much time passed in it.
	Virtual time.Duration
	// Finished says that everything that had an end came to it; Note what happened if not.
	Finished bool
	Note     string
	Whole    Values
	Flows    []Flow
}

// Flow is what one flow of a run came to.
type Flow struct {
	Name     string
	Label    string // what it is an instance of, such as its congestion control: a colour
	Finished bool
	Note     string
	Values   Values
}
