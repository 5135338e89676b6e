package lab

import (
	"math"

	"github.com/tidepool-net/tidepool/internal/lab/result"
)

// Report is all numbers of Results, for programs.
type Report struct {
	*Manifest
	Dir     string       `json:"dir"`
	Runs    int          `json:"runs"`
	Results []ReportCell `json:"results"`
}

// ReportCell is what one cell came to.
type ReportCell struct {
	Cell int               `json:"cell"`
	Set  map[string]string `json:"set,omitempty"`
	// Real says that its runs were in real time, and Timing how these kept time.
	Real   bool         `json:"real,omitempty"`
	Timing string       `json:"timing,omitempty"`
	Flows  []ReportPart `json:"flows"`
	Whole  ReportPart   `json:"whole"`
}

// ReportPart is a flow of a cell, or the whole of it.
type ReportPart struct {
	Name     string                         `json:"name,omitempty"`
	Label    string                         `json:"label,omitempty"`
	N        int                            `json:"n"`
	Finished int                            `json:"finished"`
	Note     string                         `json:"note,omitempty"`
	Metrics  map[result.Metric]ReportNumber `json:"metrics"`
}

// ReportNumber is one metric: null is what cannot be said, and a median that is not there is
// that of runs of which half did not come to a number.
type ReportNumber struct {
	Unit     string   `json:"unit,omitempty"`
	Measured int      `json:"measured"`
	Mean     *float64 `json:"mean"`
	SD       *float64 `json:"sd"`
	Low      *float64 `json:"ci_lo"`
	High     *float64 `json:"ci_hi"`
	Median   *float64 `json:"median"`
	IQR      *float64 `json:"iqr"`
	Minimum  *float64 `json:"min"`
	Maximum  *float64 `json:"max"`
}

// Report returns all numbers.
func (r *Results) Report() *Report {
	out := &Report{Manifest: r.Manifest, Dir: r.Dir, Runs: len(r.Runs), Results: []ReportCell{}}
	var cell *ReportCell
	for _, g := range r.Groups() {
		if cell == nil {
			cell = &ReportCell{
				Cell: g.Cell, Set: map[string]string{}, Flows: []ReportPart{},
				Real: r.Real && isReal(g.Cell), Timing: r.timing(g.Cell),
			}
			for _, s := range r.Cells[g.Cell].Set {
				cell.Set[s.Key] = s.Value
			}
		}
		part := ReportPart{
			Name: g.Flow, Label: g.Label, N: g.N, Finished: g.Finished, Note: unfinishedNote(&g),
			Metrics: map[result.Metric]ReportNumber{},
		}
		for m, n := range g.Numbers {
			part.Metrics[m] = ReportNumber{
				m.Definition().Unit, len(n.Values), number(n.Mean), number(n.SD), number(n.Low),
				number(n.High), number(n.Median), number(n.IQR()), number(n.Minimum),
				number(n.Maximum),
			}
		}
		if g.Flow != "" {
			cell.Flows = append(cell.Flows, part)
			continue
		}
		cell.Whole = part
		out.Results = append(out.Results, *cell)
		cell = nil
	}
	return out
}

// number is nil for what is none.
func number(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}
