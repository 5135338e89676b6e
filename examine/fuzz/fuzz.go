package fuzz

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/tidepool-net/tidepool/internal/tcp"
)

// maxEvents is the length of the longest generated sequence.
const maxEvents = 12

// Search generates sequences for a stack. It is guided by coverage: it keeps sequences that show a
// new combination of state, event and answer, and mutates them into new ones.
type Search struct {
	Stack Stack
	// Sequences is the number of sequences to try. Seed, together with Workers, determines them.
	Sequences int
	Seed      uint64
	// Workers is the number of goroutines; zero: one.
	Workers int
}

// Found is the result of a search.
type Found struct {
	Sequences int
	Events    int
	// Covered counts the combinations of state, event and answer that occurred, and States the
	// states.
	Covered, States int
	// Corpus are sequences that together show all of these combinations.
	Corpus [][]Event
	// Wrong has the shortest sequence for each kind of difference. At the end of each, the stack
	// does something that the model does not allow.
	Wrong []Difference
}

// Difference is a sequence at whose end a stack does something that the model does not allow.
type Difference struct {
	Events []Event
	Wrong  string
	State  tcp.State // before the last event
	Rule   int
}

// Lines returns the sequence as lines of a check file.
func (d *Difference) Lines() []string { return lines(d.Events) }

// Run searches until it has tried all sequences or ctx ends.
func (s *Search) Run(ctx context.Context) (*Found, error) {
	workers := max(1, s.Workers)
	all := make([]*worker, workers)
	var wait sync.WaitGroup
	for i := range all {
		w := newWorker(s.Stack, s.Seed+uint64(i))
		all[i] = w
		share := s.Sequences/workers + truth(i < s.Sequences%workers)
		wait.Go(func() { w.search(ctx, share) })
	}
	wait.Wait()
	f := &Found{}
	seen, states := map[coverage]bool{}, map[tcp.State]bool{}
	wrong := map[coverage]bool{}
	for _, w := range all {
		if w.err != nil {
			return nil, w.err
		}
		f.Sequences += w.sequences
		f.Events += w.events
		f.Corpus = append(f.Corpus, w.corpus...)
		for c := range w.seen {
			seen[c], states[c.state] = true, true
		}
		for _, d := range w.wrong {
			if !wrong[d.key] {
				wrong[d.key] = true
				f.Wrong = append(f.Wrong, d.Difference)
			}
		}
	}
	f.Covered, f.States = len(seen), len(states)
	slices.SortFunc(f.Wrong, func(a, b Difference) int { return len(a.Events) - len(b.Events) })
	return f, nil
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

// coverage is a combination of state, event and answer. It rounds the event's numbers to classes.
type coverage struct {
	state    tcp.State
	kind     Kind
	flags    tcp.Flags
	seq, ack int8
	answer   Answer
	rule     uint8
}

func cover(e *Event, x *expectation, o *Outcome) coverage {
	c := coverage{
		x.before, e.Kind, e.Flags, sizeClass(e.Seq), sizeClass(e.Ack), o.Answer &^ Repeat,
		uint8(x.rule),
	}
	if e.Beyond {
		c.seq = beyondClass
	}
	return c
}

// beyondClass is the class of sequence numbers beyond the window.
const beyondClass = 9

func sizeClass(n int32) int8 {
	const small, large = 1, 100
	switch {
	case n == 0:
		return 0
	case n < -large:
		return -3
	case n < -small:
		return -2
	case n < 0:
		return -1
	case n <= small:
		return 1
	case n <= large:
		return 2
	}
	return 3
}

// keyedDifference is a difference and its kind.
type keyedDifference struct {
	Difference
	key coverage
}

// worker is a search in one goroutine.
type worker struct {
	random    *rand.Rand
	runner    runner
	corpus    [][]Event
	seen      map[coverage]bool
	wrong     []keyedDifference
	known     map[coverage]bool // kinds of differences
	news      bool              // the current sequence has shown a new combination
	last      coverage
	sequences int
	events    int
	err       error
}

func newWorker(stack Stack, seed uint64) *worker {
	w := &worker{
		random: rand.New(rand.NewPCG(seed, 9293)), runner: runner{stack: stack},
		seen: map[coverage]bool{}, known: map[coverage]bool{},
	}
	w.runner.visit = func(e *Event, x *expectation, o *Outcome, _ string) bool {
		w.last = cover(e, x, o)
		w.events++
		if !w.seen[w.last] {
			w.seen[w.last], w.news = true, true
		}
		return true
	}
	return w
}

func (w *worker) search(ctx context.Context, sequences int) {
	events := make([]Event, 0, 2*maxEvents)
	done := make([]Event, 0, 2*maxEvents)
	for ; w.sequences < sequences && w.err == nil && ctx.Err() == nil; w.sequences++ {
		events = w.generate(events[:0])
		w.news = false
		var wrong string
		done, wrong, w.err = w.runner.run(events, done[:0])
		if wrong != "" {
			w.differ(slices.Clone(done), wrong)
		} else if w.news {
			w.corpus = append(w.corpus, slices.Clone(done))
		}
	}
}

// differ shrinks a sequence that shows a new kind of difference.
func (w *worker) differ(events []Event, wrong string) {
	key := w.last.kindOf()
	if w.known[key] {
		return
	}
	w.known[key] = true
	events = shrink(events, func(less []Event) bool {
		done, same, err := w.runner.run(less, nil)
		return err == nil && same == wrong && len(done) == len(less) &&
			w.last.kindOf() == key
	})
	d := Difference{events, wrong, key.state, int(key.rule)}
	w.wrong = append(w.wrong, keyedDifference{d, key})
}

// kindOf returns the kind of a difference: the state, the kind of event, the rule and the answer.
func (c coverage) kindOf() coverage {
	return coverage{state: c.state, kind: c.kind, answer: c.answer, rule: c.rule}
}

// generate returns a new sequence: a mutation of one from the corpus, or a random one.
func (w *worker) generate(events []Event) []Event {
	r := w.random
	const freshShare = 8
	if len(w.corpus) == 0 || r.IntN(freshShare) == 0 {
		switch r.IntN(5) {
		case 0:
		case 1, 2:
			events = append(events, Event{Kind: Connect})
		default:
			events = append(events, Event{Kind: Listen})
		}
		for range 1 + r.IntN(maxEvents-1) {
			events = append(events, randomEvent(r))
		}
		return events
	}
	events = append(events, w.corpus[r.IntN(len(w.corpus))]...)
	for range 1 + r.IntN(2) {
		at := r.IntN(len(events))
		switch r.IntN(5) {
		case 0:
			events = slices.Delete(events, at, at+1)
		case 1:
			events = slices.Insert(events, at, randomEvent(r))
		case 2:
			events[at] = randomEvent(r)
		default:
		}
		events = append(events, randomEvent(r))
	}
	return events[:min(len(events), maxEvents)]
}
