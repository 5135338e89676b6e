package fuzz

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/tidepool-net/tidepool/examine"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// Table compares stacks with the model and with each other.
type Table struct {
	Stacks    []string
	Sequences int
	Rows      []Row
}

// Row is one kind of difference: an event in some states after which a stack does something that
// the model does not allow.
type Row struct {
	Events []Event
	States []tcp.State
	Want   string
	Wrong  string
	// Answers are the answers of the stacks, in the stacks' order; empty: the model allows the
	// answer.
	Answers []string
}

// unknown is the answer of a stack that cannot carry out a sequence.
const unknown = "?"

// confirmations is the number of equal runs that confirm a difference, as in a check.
const confirmations = 3

// Compare carries out sequences on all stacks with the given number of workers, and reports the
// kinds of differences.
func Compare(ctx context.Context, stacks []Stack, sequences [][]Event, workers int,
) (*Table, error) {
	t := &Table{Sequences: len(sequences)}
	all := make([]finder, len(stacks))
	for i, s := range stacks {
		t.Stacks = append(t.Stacks, s.Name())
		all[i] = finder{stack: s, known: map[coverage]bool{}}
	}
	// All stacks work at the same time: most of them only wait.
	err := parallel(ctx, workers, len(stacks)*len(sequences), func(i int) error {
		return all[i%len(stacks)].try(sequences[i/len(stacks)])
	})
	if err != nil {
		return nil, err
	}
	var kinds []keyedDifference
	seen := map[coverage]bool{}
	for i := range all {
		for _, d := range all[i].sorted() {
			if !seen[d.key] {
				seen[d.key] = true
				kinds = append(kinds, d)
			}
		}
	}
	rows := make([]Row, len(kinds))
	if err := parallel(ctx, workers, len(kinds), func(i int) error {
		rows[i] = newRow(stacks, &kinds[i])
		return nil
	}); err != nil {
		return nil, err
	}
	for _, r := range rows {
		t.add(r)
	}
	return t, ctx.Err()
}

// parallel calls do with each number from 0 to n-1, by several workers, and returns the first
// error.
func parallel(ctx context.Context, workers, n int, do func(i int) error) error {
	var wait sync.WaitGroup
	var once sync.Once
	var first error
	queue := make(chan int)
	for range max(1, workers) {
		wait.Go(func() {
			for i := range queue {
				if err := do(i); err != nil {
					once.Do(func() { first = err })
				}
			}
		})
	}
	for i := range n {
		if ctx.Err() != nil {
			break
		}
		queue <- i
	}
	close(queue)
	wait.Wait()
	return first
}

// finder finds the kinds of differences between a stack and the model. mu guards the fields below.
type finder struct {
	stack Stack
	mu    sync.Mutex
	known map[coverage]bool
	list  []keyedDifference
}

// try looks for a new kind of difference in a sequence, and shrinks the sequence.
func (f *finder) try(events []Event) error {
	d, err := f.hasty(events)
	if err != nil {
		return fmt.Errorf("%s: %w", f.stack.Name(), err)
	}
	if d.Wrong == "" || f.knows(d.key, false) {
		return nil
	}
	d = f.confirmed(events, confirmations)
	if d.Wrong == "" || f.knows(d.key, true) {
		return nil
	}
	// If the result is not confirmed, shrinking is repeated with more confirming runs.
	for times := range confirmations + 1 {
		shorter := shrink(d.Events, func(less []Event) bool {
			x, err := f.hasty(less)
			return err == nil && x.same(&d, less) &&
				(times == 0 || f.confirmed(less, times).same(&d, less))
		})
		if x := f.confirmed(shorter, confirmations); x.same(&d, shorter) {
			d = x
			break
		}
	}
	f.mu.Lock()
	f.list = append(f.list, d)
	f.mu.Unlock()
	return nil
}

// knows reports whether a kind of difference was found before. If learn is set, it adds the kind.
func (f *finder) knows(key coverage, learn bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	old := f.known[key]
	f.known[key] = old || learn
	return old
}

// sorted returns the kinds, those with short sequences first.
func (f *finder) sorted() []keyedDifference {
	slices.SortFunc(f.list, func(a, b keyedDifference) int { return len(a.Events) - len(b.Events) })
	return f.list
}

// hasty carries out a sequence in less time than it needs. A difference is then only a suspicion. A
// stack that cannot carry out the sequence shows no difference.
func (f *finder) hasty(events []Event) (keyedDifference, error) {
	d, err := once(f.stack, events, true)
	if errors.Is(err, examine.ErrUnsupported) {
		return keyedDifference{}, nil
	}
	return d, err
}

// confirmed carries out a sequence several times, and returns the difference if it is the same each
// time.
func (f *finder) confirmed(events []Event, times int) (d keyedDifference) {
	for i := range times {
		var x keyedDifference
		err := patient(func() (err error) {
			x, err = once(f.stack, events, false)
			return err
		})
		if err != nil || x.Wrong == "" || i > 0 && x.key != d.key {
			return keyedDifference{}
		}
		d = x
	}
	return d
}

// same reports whether d and o are of the same kind, and d occurs at the end of the sequence.
func (d keyedDifference) same(o *keyedDifference, events []Event) bool {
	return d.Wrong != "" && d.key == o.key && len(d.Events) == len(events)
}

// once carries out a sequence.
func once(s Stack, events []Event, hasty bool) (d keyedDifference, err error) {
	r := &runner{stack: s, hasty: hasty}
	r.visit = func(e *Event, x *expectation, o *Outcome, wrong string) bool {
		d.key = cover(e, x, o).kindOf()
		return true
	}
	d.Events, d.Wrong, err = r.run(events, nil)
	d.State, d.Rule = d.key.state, int(d.key.rule)
	return d, err
}

// newRow runs the sequence of a difference on all stacks.
func newRow(stacks []Stack, d *keyedDifference) Row {
	r := Row{Events: d.Events, States: []tcp.State{d.State}, Wrong: d.Wrong}
	for _, s := range stacks {
		steps, err := trace(s, d.Events)
		answer := ""
		switch {
		case err != nil || len(steps) == 0:
			answer = unknown
		case steps[len(steps)-1].Wrong == "":
		case len(steps) < len(d.Events):
			answer = unknown // the stack differs earlier in the sequence
		default:
			answer = steps[len(steps)-1].Outcome.Answer.String()
		}
		if len(steps) == len(d.Events) {
			r.Want = steps[len(steps)-1].Want
		}
		r.Answers = append(r.Answers, answer)
	}
	return r
}

// add adds a row. If a row of the same class exists, add adds the state to that row instead: the
// last events are alike, and the same stacks do what the model does not allow. The row keeps the
// shortest sequence.
func (t *Table) add(r Row) {
	for i := range t.Rows {
		o := &t.Rows[i]
		if o.class() != r.class() || !slices.EqualFunc(o.Answers, r.Answers, alike) {
			continue
		}
		states := append(slices.Clone(o.States), r.States...)
		if len(r.Events) < len(o.Events) {
			*o = r
		}
		slices.Sort(states)
		o.States = slices.Compact(states)
		return
	}
	t.Rows = append(t.Rows, r)
}

// alike reports whether two answers are both allowed by the model, both forbidden, or both unknown.
func alike(a, b string) bool { return (a == "") == (b == "") && (a == unknown) == (b == unknown) }

// class returns the properties that the last events of similar rows share.
func (r *Row) class() coverage {
	e := r.Events[len(r.Events)-1]
	c := coverage{
		kind: e.Kind, flags: e.Flags &^ (tcp.PSH | tcp.FIN),
		seq: sizeClass(e.Seq), ack: sizeClass(e.Ack),
	}
	if e.Flags.Has(tcp.FIN) || e.Len > 0 {
		c.rule = 1
	}
	if e.Beyond {
		c.seq = beyondClass
	}
	return c
}

// Differ returns the number of rows in which two stacks differ. Number -1 is the model.
func (t *Table) Differ(a, b int) int {
	answer := func(r *Row, i int) string {
		if i < 0 {
			return ""
		}
		return r.Answers[i]
	}
	n := 0
	for i := range t.Rows {
		x, y := answer(&t.Rows[i], a), answer(&t.Rows[i], b)
		if x != y && x != unknown && y != unknown {
			n++
		}
	}
	return n
}

// Markdown returns two tables: differences by pairs of stacks, and the kinds of differences.
func (t *Table) Markdown() string {
	var b strings.Builder
	names := append([]string{"RFC 9293"}, t.Stacks...)
	fmt.Fprintf(&b, "| kinds of differences | %s |\n|---|%s\n", strings.Join(names, " | "),
		strings.Repeat("---:|", len(names)))
	for i, name := range names {
		fmt.Fprintf(&b, "| %s |", name)
		for j := range names {
			fmt.Fprintf(&b, " %d |", t.Differ(i-1, j-1))
		}
		b.WriteByte('\n')
	}
	if len(t.Rows) == 0 {
		return b.String()
	}
	fmt.Fprintf(&b, "\n| state | shortest sequence | RFC 9293 | %s |\n|---|---|---|%s\n",
		strings.Join(t.Stacks, " | "), strings.Repeat("---|", len(t.Stacks)))
	for i := range t.Rows {
		r := &t.Rows[i]
		var states, events, answers []string
		for _, s := range r.States {
			states = append(states, s.String())
		}
		for _, e := range r.Events {
			events = append(events, "`"+e.String()+"`")
		}
		for _, a := range r.Answers {
			if a == "" {
				a = "✓"
			}
			answers = append(answers, a)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", strings.Join(states, ", "),
			strings.Join(events, ", "), r.Want, strings.Join(answers, " | "))
	}
	return b.String()
}
