package result

import (
	"fmt"
	"math"
	"slices"
)

// CrowdSize is how many flows a run has at the least for tables to sum them up rather than to show
// each.
const CrowdSize = 21

// Labels are what the flows of a run are instances of, in the order of the first of each.
func (t *Trial) Labels() []string {
	var labels []string
	for i := range t.Flows {
		if l := t.Flows[i].Label; !slices.Contains(labels, l) {
			labels = append(labels, l)
		}
	}
	return labels
}

// Crowd is what the flows of a label come to together, as flows of their own: of each metric the
// least, the median and the most. A flow that did not come to its completion took longer than all
// that did.
func (t *Trial) Crowd(label string) [3]Flow {
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
	for j, name := range [...]string{"least", "median", "most"} {
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

// valuesOf are the sorted values of a metric of the flows of a label; those that have none took
// for ever if it is their completion. Nothing if no flow has one.
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
