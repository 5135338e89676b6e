package result

import (
	"maps"
	"math"

	"github.com/tidepool-net/tidepool/internal/lab/stat"
)

// Group is what the runs of one cell come to for one flow, or for the whole of it.
type Group struct {
	Cell int
	// Flow is the flow's name, and Label what it is an instance of; empty: the whole.
	Flow, Label string
	// N is how many runs there were, and Finished in how many everything that had an end came
	// to it.
	N, Finished int
	// Trial is the first that did not finish, and Note what happened in it.
	Trial   int
	Note    string
	Numbers map[Metric]Number
	Trials  []Values // of each run
	Crowd   bool     // it is of several flows
}

// Number is one metric of a Group: what each run came to, in the order of the trials, and what
// that comes to. Of a run that was cut off before it came to a completion there is no value.
type Number struct {
	stat.Summary
	Values []float64
}

// Groups returns what the runs of a cell come to: the flows in their order and then the whole.
func Groups(cell int, runs []*Trial) []Group {
	if len(runs) == 0 {
		return nil
	}
	flows := math.MaxInt
	for _, t := range runs {
		flows = min(flows, len(t.Flows))
	}
	var out []Group
	for i := range flows {
		out = append(out, groupOf(cell, runs, func(t *Trial) *Flow { return &t.Flows[i] }))
	}
	return append(out, groupOf(cell, runs, func(t *Trial) *Flow {
		return &Flow{Finished: t.Finished, Note: t.Note, Values: t.Whole}
	}))
}

// Rows returns the groups that have a row in tables. One flow alone has the whole's numbers in its
// row. A crowd has three rows for each kind, of the least, the median and the most of each metric,
// and one for the whole, unless all are wanted.
func Rows(cell int, runs []*Trial, all bool) []Group {
	list := Groups(cell, runs)
	switch flows := len(list) - 1; {
	case flows == 1:
		one := list[0]
		own := one.Numbers
		one.Numbers = maps.Clone(list[1].Numbers)
		maps.Copy(one.Numbers, own)
		delete(one.Numbers, Jain) // alone it is fair whatever it gets
		return []Group{one}
	case flows < CrowdSize || all:
		return list
	}
	var out []Group
	for _, label := range runs[0].Labels() {
		for i := range 3 {
			g := groupOf(cell, runs, func(t *Trial) *Flow {
				three := t.Crowd(label)
				return &three[i]
			})
			g.Crowd = true
			out = append(out, g)
		}
	}
	return append(out, list[len(list)-1])
}

// groupOf makes the group of a part of the runs of one cell.
func groupOf(cell int, runs []*Trial, part func(*Trial) *Flow) Group {
	first := part(runs[0])
	g := Group{
		Cell: cell, Flow: first.Name, Label: first.Label, N: len(runs),
		Numbers: map[Metric]Number{},
	}
	values, cut := map[Metric][]float64{}, 0
	for _, t := range runs {
		f := part(t)
		g.Trials = append(g.Trials, f.Values)
		for m, v := range f.Values {
			if !math.IsNaN(v) && !math.IsInf(v, 0) {
				values[m] = append(values[m], v)
			}
		}
		if f.Finished {
			g.Finished++
			continue
		}
		if g.Note == "" {
			g.Trial, g.Note = t.Trial, f.Note
		}
		if _, ok := f.Values[Completion]; !ok && g.Flow != "" {
			cut++
		}
	}
	if cut > 0 {
		// What did not come to its end is not left out: it took longer than it had.
		g.Numbers[Completion] = Number{stat.Describe(values[Completion], cut), values[Completion]}
		delete(values, Completion)
	}
	for m, v := range values {
		g.Numbers[m] = Number{stat.Describe(v, 0), v}
	}
	return g
}
