package lab

import (
	"math"
	"strconv"

	"github.com/tidepool-net/tidepool/internal/lab/result"
)

// summaryHeader names the columns of summary.csv. n is the number of the cell's runs, finished is
// the number of runs that finished, and measured is the number of runs with a value. The mean is
// empty if a run was cut off before it had a value. ci_lo and ci_hi are the bounds of its 95 %
// interval, iqr is the interquartile range. If half of the runs have no value, median is empty.
const summaryHeader = "cell,settings,flow,label,metric,unit,n,finished,measured," +
	"mean,sd,ci_lo,ci_hi,median,iqr,min,max\n"

func (r *Results) summaryFile() []byte {
	text := []byte(summaryHeader)
	for _, g := range r.Groups() {
		settings := r.settingsOf(g.Cell)
		for _, d := range result.Catalog() {
			n, ok := g.Numbers[d.Name]
			if !ok {
				continue
			}
			row := []string{
				strconv.Itoa(g.Cell), settings, g.Flow, g.Label, string(d.Name), string(d.Unit),
				strconv.Itoa(g.N), strconv.Itoa(g.Finished), strconv.Itoa(len(n.Values)),
			}
			for _, v := range []float64{
				n.Mean, n.SD, n.Low, n.High, n.Median, n.IQR(), n.Minimum, n.Maximum,
			} {
				row = append(row, result.FormatNumber(v))
			}
			text = result.AppendRow(text, row...)
		}
	}
	return text
}

// Report contains all numbers of Results, for programs.
type Report struct {
	*Manifest
	Dir     string       `json:"dir"`
	Runs    int          `json:"runs"`
	Results []ReportCell `json:"results"`
}

// ReportCell is the result of one cell.
type ReportCell struct {
	Cell int               `json:"cell"`
	Set  map[string]string `json:"set,omitempty"`
	// Real means that the runs were in real time. Timing describes their lateness.
	Real   bool         `json:"real,omitempty"`
	Timing string       `json:"timing,omitempty"`
	Flows  []ReportPart `json:"flows"`
	Whole  ReportPart   `json:"whole"`
}

// ReportPart is a flow of a cell, or the whole run.
type ReportPart struct {
	Name     string                         `json:"name,omitempty"`
	Label    string                         `json:"label,omitempty"`
	N        int                            `json:"n"`
	Finished int                            `json:"finished"`
	Note     string                         `json:"note,omitempty"`
	Metrics  map[result.Metric]ReportNumber `json:"metrics"`
}

// ReportNumber is one metric. A value that is not defined is null. The median is null if at least
// half of the runs have no value.
type ReportNumber struct {
	Unit     result.Unit `json:"unit,omitempty"`
	Measured int         `json:"measured"`
	Mean     *float64    `json:"mean"`
	SD       *float64    `json:"sd"`
	Low      *float64    `json:"ci_lo"`
	High     *float64    `json:"ci_hi"`
	Median   *float64    `json:"median"`
	IQR      *float64    `json:"iqr"`
	Minimum  *float64    `json:"min"`
	Maximum  *float64    `json:"max"`
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

func number(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}
