package lab

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidepool-net/tidepool/internal/lab/formula"
	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/lab/result"
)

// Verdict is the result of checking one expectation against one cell, or against the cells that the
// expectation compares.
type Verdict struct {
	*plan.Expectation
	// Cell is the cell's index. Open are the cell's settings that the claim does not select; empty
	// if there is only one cell.
	Cell int
	Open []plan.Setting
	// Values are the values of the claim's terms, and Unit is their unit.
	Values []float64
	Unit   formula.Unit
	// Reach is the half-width of the 95 % interval of the first term, if the term is the mean of a
	// metric with enough trials; otherwise it is 0.
	Reach float64
	// Pass means that the claim holds. Err is set if the claim could not be evaluated; then Pass is
	// false.
	Pass bool
	// Unsteady means that the claim uses goodput, throughput or the flows' shares, and that the
	// goodput has a trend: a longer run would have another result.
	Unsteady bool
	Err      error
}

// Expectations checks each expectation of the cells against the runs, which may be in any order. A
// claim that compares cells is checked once for each combination of the settings that it does not
// select. So a cell in real time, which has the settings of the cell before it, is not checked.
func Expectations(cells []plan.Cell, runs []*result.Trial) []Verdict {
	if len(cells) == 0 {
		return nil
	}
	in := env{cells: cells, runs: make([][]*result.Trial, len(cells))}
	for _, t := range runs {
		if t.Cell >= 0 && t.Cell < len(cells) {
			in.runs[t.Cell] = append(in.runs[t.Cell], t)
		}
	}
	var out []Verdict
	for i := range cells[0].Expect {
		seen := map[string]bool{}
		for c := range cells {
			if i >= len(cells[c].Expect) {
				continue
			}
			e := &cells[c].Expect[i]
			if !selected(&cells[c], e.Where) {
				continue
			}
			in.cell = c
			where := in.open(e.Claim)
			if key := keyOf(where); !seen[key] {
				seen[key] = true
				out = append(out, verdict(in, e, where))
			}
		}
	}
	return out
}

func selected(c *plan.Cell, where []plan.Setting) bool {
	for _, w := range where {
		if !slices.ContainsFunc(c.Set, func(s plan.Setting) bool {
			return s.Key == w.Key && s.Value == w.Value
		}) {
			return false
		}
	}
	return true
}

// open returns the settings of a cell that a claim does not select. Cells with the same open
// settings are one case.
func (e env) open(claim *formula.Claim) []plan.Setting {
	var where []plan.Setting
	for _, s := range e.cells[e.cell].Set {
		if !closed(s.Name, claim) {
			where = append(where, s)
		}
	}
	return where
}

// closed reports whether every metric of a claim selects a value of a setting, and no term uses the
// setting as a variable.
func closed(name string, claim *formula.Claim) bool {
	metrics := 0
	for _, t := range claim.Terms {
		if slices.Contains(t.Names(), name) {
			return false
		}
		for _, r := range t.Refs() {
			metrics++
			if !slices.ContainsFunc(r.Cell, func(s formula.Selector) bool {
				return s.Name == name
			}) {
				return false
			}
		}
	}
	return metrics > 0
}

func keyOf(where []plan.Setting) string {
	var b strings.Builder
	for _, s := range where {
		fmt.Fprintf(&b, "%q=%q ", s.Key, s.Value)
	}
	return b.String()
}

func verdict(in env, e *plan.Expectation, where []plan.Setting) Verdict {
	v := Verdict{Expectation: e, Cell: in.cell, Open: where, Unit: formula.Pure}
	for _, t := range e.Claim.Terms {
		value, err := t.Eval(in)
		if err != nil {
			v.Err = fmt.Errorf("%s: %w", t, err)
			return v
		}
		v.Values = append(v.Values, value)
		if u := t.Unit(); v.Unit == formula.Pure || v.Unit == formula.Unknown {
			v.Unit = u
		}
	}
	v.Reach = in.reach(e.Claim.Terms[0])
	v.Unsteady = in.unsteady(e.Claim)
	v.Pass = e.Claim.Holds(v.Values)
	return v
}
