package chaos_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tidepool-net/tidepool/internal/netem"
)

// outcome is the result of one seed.
type outcome struct {
	seed     uint64
	failure  string // violated invariant; empty: none
	verified uint64 // bytes that were compared
	events   uint64
	packets  uint64
	faults   netem.Counters
	ends     [2]string // how each end's connection ended
	hash     uint64
}

// clean is the end of a connection that both sides have closed.
const clean = "clean"

// tally sums outcomes.
type tally struct {
	seeds, verified, events, packets uint64
	faults                           netem.Counters
	ends                             map[string]uint64
	cleanPairs                       uint64 // number of connections whose ends were both clean
	failed                           uint64
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
		t.failed++
	}
}

func (t *tally) String() string {
	var b strings.Builder
	f := &t.faults
	row := func(name string, value any) { fmt.Fprintf(&b, "\n%-34s%14v", name, value) }
	row("seeds run", t.seeds)
	row("failed", t.failed)
	row("bytes verified", t.verified)
	row("packets delivered", t.packets)
	row("events", t.events)
	row("faults injected", f.Lost+f.Duplicated+f.Reordered+f.Truncated+f.Corrupted+
		f.QueueDropped+f.Overflowed)
	row("  lost", f.Lost)
	row("  duplicated", f.Duplicated)
	row("  reordered", f.Reordered)
	row("  truncated", f.Truncated)
	row("  corrupted", f.Corrupted)
	row("  dropped by a queue", f.QueueDropped+f.Overflowed)
	row("connections closed by both ends", t.cleanPairs)
	row("other connections", t.seeds-t.cleanPairs)
	for _, name := range slices.Sorted(maps.Keys(t.ends)) {
		row("  ends: "+name, t.ends[name])
	}
	return b.String()
}

func endName(err error) string {
	if err == nil {
		return clean
	}
	name, _, _ := strings.Cut(err.Error(), ": ")
	return name
}
