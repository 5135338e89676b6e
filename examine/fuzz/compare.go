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
	// Answers are what the stacks do, in their order; empty: what the model allows.
	Answers []string
}

// unknown is the answer of a stack that cannot carry out a sequence.
const unknown = "?"

// confirmations is how many equal runs make a difference, as in a check.
const confirmations = 3

// Compare carries out sequences on all stacks, and reports the kinds of differences. Each stack has
// so many workers.
func Compare(ctx context.Context, stacks []Stack, sequences [][]Event, workers int,
) (*Table, error) {
	t := &Table{Sequences: len(sequences)}
	var all []keyedDifference
	for _, s := range stacks {
		t.Stacks = append(t.Stacks, s.Name())
		list, err := differences(ctx, s, sequences, workers)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.Name(), err)
		}
		all = append(all, list...)
	}
	var kinds []keyedDifference
	seen := map[coverage]bool{}
	for _, d := range all {
		if !seen[d.key] {
			seen[d.key] = true
			kinds = append(kinds, d)
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

// parallel calls do for each of n numbers, and returns the first error.
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

// differences returns the kinds of differences between a stack and the model, with the shortest
// sequence for each.
func differences(ctx context.Context, s Stack, sequences [][]Event, workers int,
) ([]keyedDifference, error) {
	var mu sync.Mutex
	known := map[coverage]bool{}
	var list []keyedDifference
	err := parallel(ctx, workers, len(sequences), func(i int) error {
		d, wrong, err := confirmed(s, sequences[i])
		if err != nil || !wrong {
			return err
		}
		mu.Lock()
		old := known[d.key]
		known[d.key] = true
		mu.Unlock()
		if old {
			return nil
		}
		d.Events = shrink(d.Events, func(less []Event) bool {
			x, wrong, err := confirmed(s, less)
			return err == nil && wrong && x.key == d.key && len(x.Events) == len(less)
		})
		mu.Lock()
		list = append(list, d)
		mu.Unlock()
		return nil
	})
	slices.SortFunc(list, func(a, b keyedDifference) int { return len(a.Events) - len(b.Events) })
	return list, err
}

// confirmed carries out a sequence and reports whether it shows the same difference each time. A
// stack that cannot carry it out shows none.
func confirmed(s Stack, events []Event) (d keyedDifference, wrong bool, err error) {
	for i := range confirmations {
		var x keyedDifference
		err := patient(func() (err error) {
			x, err = once(s, events)
			return err
		})
		if errors.Is(err, examine.ErrUnsupported) || errors.Is(err, errLate) {
			return d, false, nil
		}
		if err != nil || x.Wrong == "" || i > 0 && x.key != d.key {
			return d, false, err
		}
		d = x
	}
	return d, true, nil
}

// once carries out a sequence.
func once(s Stack, events []Event) (d keyedDifference, err error) {
	r := &runner{stack: s}
	r.visit = func(e *Event, x *expectation, o *Outcome, wrong string) bool {
		d.key = cover(e, x, o).kindOf()
		return true
	}
	d.Events, d.Wrong, err = r.run(events, nil)
	d.State, d.Rule = d.key.state, int(d.key.rule)
	return d, err
}

// newRow asks all stacks about a difference.
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
			answer = unknown // it differs earlier
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

// add adds a row, or its state to one of the same class: the last events are alike and the same
// stacks do what the model does not allow. The shortest sequence remains.
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

// alike reports whether two answers are both allowed by the model, both not, or both unknown.
func alike(a, b string) bool { return (a == "") == (b == "") && (a == unknown) == (b == unknown) }

// class returns what the last events of similar rows have in common.
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

// Differ returns in how many rows two stacks differ. Number -1 is the model.
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

// Markdown returns the tables stack × stack and of the kinds of differences.
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
