package sim

import (
	"math/rand/v2"
	"time"

	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/netem"
)

// World has hosts, links and tasks in virtual time. It and its parts are not safe for concurrent
// use.
type World struct {
	now        clock.Time
	seed       uint64
	eventQueue eventQueue
	hosts      []*Host
	names      map[string]bool // names of the hosts
	links      []*direction
	batch      *buffer.Batch
	digest     digest
	stats      Stats
	pool       netem.Pool
	// These fields are memory that calls reuse: an arriving train, and the result of Peek.
	arrivingTrain arrivingTrain
	pieces        [][]byte
}

// Stats count what happened in a world.
type Stats struct {
	Events    uint64 // number of actors' turns
	Sent      uint64 // number of packets that hosts sent
	Delivered uint64 // number of packets that arrived at a host
}

// origin is the time at which worlds begin. It is not zero, because zero is clock.Never.
const origin = clock.Time(time.Second)

// New returns an empty world. The seed determines everything random in it.
func New(seed uint64) *World {
	return &World{
		now: origin, seed: seed, names: map[string]bool{}, batch: buffer.NewBatch(),
	}
}

// Now returns the world's time.
func (w *World) Now() clock.Time { return w.now }

// Elapsed returns how long the world has existed.
func (w *World) Elapsed() time.Duration { return w.now.Sub(origin) }

// Rand returns the random stream of this name from its beginning. It depends only on the seed and
// the name, so additions to a world do not change the random draws of other parts.
func (w *World) Rand(name string) *rand.Rand { return netem.Streams(w.seed)(name) }

// Stats returns the counts so far.
func (w *World) Stats() Stats { return w.stats }

// Hosts returns the hosts, in the order in which they were added.
func (w *World) Hosts() []*Host { return w.hosts }

// Step runs the next actor if it is due by until, and reports whether there was one. If not, it
// sets the world's time to until.
func (w *World) Step(until clock.Time) bool {
	if w.eventQueue.acting != nil {
		panic("BUG: sim: a world is run from within a turn")
	}
	a := w.eventQueue.first()
	if a == nil || a.due > until {
		w.now = max(w.now, until)
		return false
	}
	w.now = max(w.now, a.due)
	w.stats.Events++
	w.eventQueue.begin(a)
	a.acts.act(w.now)
	w.eventQueue.end()
	return true
}

// Run advances the world by d.
func (w *World) Run(d time.Duration) {
	for until := w.now.Add(d); w.Step(until); {
		continue
	}
}

// RunUntil runs the world until done returns true, for at most d. It returns done's last result.
func (w *World) RunUntil(d time.Duration, done func() bool) bool {
	until := w.now.Add(d)
	for !done() {
		if !w.Step(until) {
			return done()
		}
	}
	return true
}

// At schedules a call of f at an instant. If that instant is past, it schedules the call for now.
func (w *World) At(at clock.Time, f func(now clock.Time)) {
	t := &task{f: f}
	t.acts = t
	w.eventQueue.set(&t.actor, max(at, w.now))
}

type task struct {
	actor
	f func(now clock.Time)
}

func (t *task) act(now clock.Time) { t.f(now) }
