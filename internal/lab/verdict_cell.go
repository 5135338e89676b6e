package lab

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/tidepool-net/tidepool/internal/lab/formula"
	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/lab/result"
)

var errNotRun = errors.New("has not been run")

// env gives the formulas of a cell their values.
type env struct {
	cells []plan.Cell
	runs  [][]*result.Trial // runs of each cell
	cell  int
}

func (e env) Variable(name string) (float64, error) { return e.cells[e.cell].Variable(name) }

func (e env) Metric(r formula.Ref) (float64, error) {
	s, err := e.summary(r)
	if err != nil {
		return 0, err
	}
	var v float64
	switch r.Statistic {
	case "median":
		v = s.Median
	case "min":
		v = s.Minimum
	case "max":
		v = s.Maximum
	case "sd":
		v = s.SD
	default:
		v = s.Mean
	}
	switch {
	case !math.IsNaN(v) && !math.IsInf(v, 0):
		return v, nil
	case s.Cut > 0:
		return 0, fmt.Errorf("%d of %d runs ended before their %s", s.Cut, s.N, r.Metric)
	}
	return 0, fmt.Errorf("%d runs have no %s of %s", s.N, r.Statistic, r.Metric)
}

func (e env) summary(r formula.Ref) (result.Summary, error) {
	cell, err := e.find(r.Cell)
	if err != nil {
		return result.Summary{}, err
	}
	if len(e.runs[cell]) == 0 {
		return result.Summary{}, fmt.Errorf("cell %d %w", cell, errNotRun)
	}
	var values []float64
	cut := 0
	for _, t := range e.runs[cell] {
		v, unfinished, err := valueIn(t, r)
		switch {
		case unfinished:
			cut++
		case err != nil:
			return result.Summary{}, err
		default:
			values = append(values, v)
		}
	}
	return result.Describe(values, cut), nil
}

// unsteady reports whether the goodput in a claim has a trend in one of its flows.
func (e env) unsteady(claim *formula.Claim) bool {
	for _, t := range claim.Terms {
		for _, r := range t.Refs() {
			switch r.Metric {
			case result.Goodput, result.Throughput, result.Share, result.Jain:
				if !e.steady(r) {
					return true
				}
			default: // the trend was not measured
			}
		}
	}
	return false
}

// steady reports whether the goodput of a metric's flow, or of all flows, has no trend.
func (e env) steady(r formula.Ref) bool {
	cell, err := e.find(r.Cell)
	if err != nil || len(e.runs[cell]) == 0 {
		return true
	}
	name := "" // all flows
	if f, err := flow(e.runs[cell][0], r.Flow); err == nil && r.Metric != result.Jain {
		name = f.Name
	}
	return !slices.ContainsFunc(result.Groups(cell, e.runs[cell]), func(g result.Group) bool {
		return (name == "" || name == g.Flow) && trendOf(&g) != ""
	})
}

// valueIn returns a metric's value in one run. unfinished means that the run ended before it had a
// value.
func valueIn(t *result.Trial, r formula.Ref) (v float64, unfinished bool, err error) {
	if r.Flow == "" {
		if v, ok := t.Whole[r.Metric]; ok {
			return v, false, nil
		}
		if len(t.Flows) != 1 {
			return 0, !t.Finished,
				fmt.Errorf("%s is ambiguous with %d flows: choose one, such as %s[0]",
					r.Metric, len(t.Flows), r.Metric)
		}
	}
	f, err := flow(t, r.Flow)
	if err != nil {
		return 0, false, err
	}
	v, ok := f.Values[r.Metric]
	switch {
	case ok:
		return v, false, nil
	case !f.Finished:
		return 0, true, nil
	}
	return 0, false, fmt.Errorf("%s of %s was not measured", r.Metric, f.Name)
}

func flow(t *result.Trial, name string) (*result.Flow, error) {
	for i := range t.Flows {
		if t.Flows[i].Name == name {
			return &t.Flows[i], nil
		}
	}
	i := 0
	if name != "" {
		var err error
		if i, err = strconv.Atoi(name); err != nil {
			return nil, fmt.Errorf("no flow %q", name)
		}
	}
	if i < 0 || i >= len(t.Flows) {
		return nil, fmt.Errorf("no flow %d of %d", i, len(t.Flows))
	}
	return &t.Flows[i], nil
}

// find returns the cell that differs from the current one only in the given values.
func (e env) find(want []formula.Selector) (int, error) {
	if len(want) == 0 {
		return e.cell, nil
	}
	values := map[string]string{}
	for _, s := range e.cells[e.cell].Set {
		values[s.Name] = s.Value
	}
	for _, w := range want {
		values[w.Name] = w.Value
	}
cells:
	for c := range e.cells {
		for _, s := range e.cells[c].Set {
			if s.Value != values[s.Name] {
				continue cells
			}
		}
		return c, nil
	}
	return 0, fmt.Errorf("no cell has these values: %v", values)
}

// reach returns the half-width of a term's interval, if the term is the mean of a metric.
func (e env) reach(t *formula.Expr) float64 {
	refs := t.Refs()
	if len(refs) != 1 || refs[0].Statistic != "mean" && refs[0].Statistic != "" {
		return 0
	}
	s, err := e.summary(refs[0])
	if v, again := t.Eval(e); err != nil || again != nil || v != s.Mean {
		return 0
	}
	if half := s.HalfWidth(); half > 0 {
		return half
	}
	return 0
}
