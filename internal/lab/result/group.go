package result

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// Group summarizes the runs of one cell, for one flow or for the whole cell.
type Group struct {
	Cell int
	// Flow is the flow's name, and Label is its kind. Both are empty for the whole cell.
	Flow, Label string
	// N is the number of runs. Finished counts the runs in which the flow, or each flow, finished.
	N, Finished int
	// Trial is the first run that did not finish, and Note is the reason.
	Trial   int
	Note    string
	Numbers map[Metric]Number
	Trials  []Values // the metrics of each run
	Summary bool     // the group summarizes several flows
}

// Number is one metric of a Group: the value of each run, in the order of the trials, and the
// statistics of these values. A run that was cut off has no completion time.
type Number struct {
	Summary
	Values []float64
}

// Groups returns the groups of a cell: first each flow, in order, then the whole cell.
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

// Rows returns the groups that have a row in tables. If a cell has one flow, its row also has the
// metrics of the whole run. If a cell has many flows and all is not set, each kind of flow has
// three rows, with the minimum, the median and the maximum of each metric, and the whole run has
// one row.
func Rows(cell int, runs []*Trial, all bool) []Group {
	list := Groups(cell, runs)
	switch flows := len(list) - 1; {
	case flows == 1:
		one := list[0]
		own := one.Numbers
		one.Numbers = maps.Clone(list[1].Numbers)
		maps.Copy(one.Numbers, own)
		delete(one.Numbers, Jain) // a single flow is always fair
		return []Group{one}
	case flows < ManyFlows || all:
		return list
	}
	var out []Group
	for _, label := range runs[0].Labels() {
		for i := range 3 {
			g := groupOf(cell, runs, func(t *Trial) *Flow {
				three := t.Summarize(label)
				return &three[i]
			})
			g.Summary = true
			out = append(out, g)
		}
	}
	return append(out, list[len(list)-1])
}

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
		// Runs that were cut off count, because they took longer than the time limit.
		g.Numbers[Completion] = Number{Describe(values[Completion], cut), values[Completion]}
		delete(values, Completion)
	}
	for m, v := range values {
		g.Numbers[m] = Number{Describe(v, 0), v}
	}
	return g
}

// ManyFlows is the number of flows from which tables summarize flows instead of showing each one.
const ManyFlows = 21

// Labels returns the labels of a run's flows, without duplicates, in the order of the flows.
func (t *Trial) Labels() []string {
	var labels []string
	for i := range t.Flows {
		if l := t.Flows[i].Label; !slices.Contains(labels, l) {
			labels = append(labels, l)
		}
	}
	return labels
}

// Summarize summarizes the flows with a label as three flows: the minimum, the median and the
// maximum of each metric. A flow that did not complete counts as slower than all that did.
func (t *Trial) Summarize(label string) [3]Flow {
	members := 0
	out := [3]Flow{{Finished: true}, {Finished: true}, {Finished: true}}
	for i := range t.Flows {
		f := &t.Flows[i]
		if f.Label != label {
			continue
		}
		members++
		for j := range out {
			out[j].Finished = out[j].Finished && f.Finished
			if out[j].Note == "" && !f.Finished {
				out[j].Note = f.Name + " " + f.Note
			}
		}
	}
	for j, name := range [...]string{"minimum", "median", "maximum"} {
		out[j].Name, out[j].Label = fmt.Sprintf("%s of %d", name, members), label
		out[j].Values = Values{}
	}
	for _, d := range catalog {
		values := t.valuesOf(label, d.Name)
		if len(values) == 0 {
			continue
		}
		middle := (values[(len(values)-1)/2] + values[len(values)/2]) / 2
		for j, v := range [...]float64{values[0], middle, values[len(values)-1]} {
			if !math.IsInf(v, 0) {
				out[j].Values[d.Name] = v
			}
		}
	}
	return out
}

// valuesOf returns the sorted values of a metric of the flows with a label. A missing completion
// time is infinite. If no flow has the metric, valuesOf returns nil.
func (t *Trial) valuesOf(label string, m Metric) []float64 {
	var values []float64
	found := false
	for i := range t.Flows {
		if t.Flows[i].Label != label {
			continue
		}
		v, ok := t.Flows[i].Values[m]
		if found = found || ok; !ok && m == Completion {
			v, ok = math.Inf(1), true
		}
		if ok {
			values = append(values, v)
		}
	}
	if !found {
		return nil
	}
	slices.Sort(values)
	return values
}
