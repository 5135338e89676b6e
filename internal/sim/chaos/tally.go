package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/netem"
)

// outcome is what became of one seed.
type outcome struct {
	seed     uint64
	failure  string // what must not have happened; empty: nothing
	verified uint64 // bytes that were checked one by one
	events   uint64
	packets  uint64
	faults   netem.Counters
	ends     [2]string // how each end's connection ended
	hash     uint64
}

// clean is how a connection ends that both sides have closed.
const clean = "clean"

// tally adds up outcomes.
type tally struct {
	seeds, verified, events, packets uint64
	faults                           netem.Counters
	ends                             map[string]uint64
	cleanPairs                       uint64 // connections whose both ends were clean
	failures                         []uint64
}

func newTally() *tally { return &tally{ends: map[string]uint64{}} }

func (t *tally) add(o *outcome) {
	t.seeds++
	t.verified += o.verified
	t.events += o.events
	t.packets += o.packets
	t.faults.Add(&o.faults)
	for _, end := range o.ends {
		t.ends[end]++
	}
	if o.ends[0] == clean && o.ends[1] == clean {
		t.cleanPairs++
	}
	if o.failure != "" {
		t.failures = append(t.failures, o.seed)
	}
}

func (t *tally) print(out io.Writer, took time.Duration) {
	f := &t.faults
	type row struct{ name, value string }
	rows := []row{
		{"seeds run", fmt.Sprint(t.seeds)},
		{"failed", fmt.Sprint(len(t.failures))},
		{"bytes verified", fmt.Sprint(t.verified)},
		{"packets delivered", fmt.Sprint(t.packets)},
		{"events", fmt.Sprint(t.events)},
		{"faults injected", fmt.Sprint(f.Lost + f.Duplicated + f.Reordered + f.Truncated +
			f.Corrupted + f.QueueDropped + f.Overflowed)},
		{"  lost", fmt.Sprint(f.Lost)},
		{"  duplicated", fmt.Sprint(f.Duplicated)},
		{"  reordered", fmt.Sprint(f.Reordered)},
		{"  truncated", fmt.Sprint(f.Truncated)},
		{"  corrupted", fmt.Sprint(f.Corrupted)},
		{"  dropped by a queue", fmt.Sprint(f.QueueDropped + f.Overflowed)},
		{"connections ended cleanly", fmt.Sprint(t.cleanPairs)},
		{"connections ended otherwise", fmt.Sprint(t.seeds - t.cleanPairs)},
	}
	var names []string
	for name := range t.ends {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		rows = append(rows, row{"  an end: " + name, fmt.Sprint(t.ends[name])})
	}
	rows = append(rows, row{
		"seeds a second", fmt.Sprintf("%.1f", float64(t.seeds)/took.Seconds()),
	})
	for _, r := range rows {
		say(out, "%-34s%14s\n", r.name, r.value)
	}
	for _, seed := range t.failures {
		say(out, "%s\n", replayCommand(seed))
	}
}

// replayCommand is how to see a seed again.
func replayCommand(seed uint64) string {
	return fmt.Sprintf("seed %d failed; again: go run ./internal/sim/chaos -seed %d", seed, seed)
}

// endName is how an end is counted.
func endName(err error) string {
	if err == nil {
		return clean
	}
	name, _, _ := strings.Cut(err.Error(), ": ")
	return name
}
