package lab

import (
	"math"
	"regexp"

	"github.com/tidepool-net/tidepool/internal/lab/figure"
	"github.com/tidepool-net/tidepool/internal/lab/formula"
	"github.com/tidepool-net/tidepool/internal/lab/result"
)

// inProportion matches the text of a term that is proportional to its only metric.
var inProportion = regexp.MustCompile(`^[-\w.()\[\]"]+(\s*[*/]\s*[\w.]+)?$`)

// theory sets the values that expectations and papers predict for metrics of cells. Figures show
// them with the results.
func (j *Judged) theory(cells []figure.Cell) {
	if j == nil {
		return
	}
	for i := range j.Verdicts {
		v := &j.Verdicts[i]
		if v.Cell >= len(cells) {
			continue
		}
		cell := &cells[v.Cell]
		m, ok := compared(v, cell)
		if !ok {
			continue
		}
		mean, ok := meanOf(cell, m)
		if !ok || v.Values[0] == 0 {
			continue
		}
		if cell.Theory == nil {
			cell.Theory, cell.Published = result.Values{}, result.Values{}
		}
		// The checked value may be the metric in another unit, such as a window in segments.
		predicted := mean * v.Values[1] / v.Values[0]
		p, published := figure.Quantity(v.Published, m)
		if published {
			cell.Published[m] = p
		}
		// A bound is not a prediction, and a published number is not a theoretical one.
		if v.Claim.Operators[0] == formula.Equals &&
			(!published || math.Abs(p-predicted) > p/1000) {
			cell.Theory[m] = predicted
		}
	}
}

// compared returns the metric that a verdict compares with a number: the mean of the whole run, or
// of the run's first flow.
func compared(v *Verdict, cell *figure.Cell) (result.Metric, bool) {
	if v.Err != nil || len(v.Claim.Operators) != 1 || len(v.Values) != 2 {
		return "", false
	}
	left := v.Claim.Terms[0]
	refs := left.Refs()
	if len(refs) != 1 || len(refs[0].Cell) > 0 || !inProportion.MatchString(left.String()) ||
		refs[0].Statistic != "" && refs[0].Statistic != "mean" || len(cell.Trials) == 0 {
		return "", false
	}
	flows := cell.Trials[0].Flows
	first := refs[0].Flow == "" || refs[0].Flow == "0" ||
		len(flows) > 0 && refs[0].Flow == flows[0].Name
	return refs[0].Metric, first
}

// meanOf returns the mean over a cell's trials of a metric of the whole run, or of the run's first
// flow.
func meanOf(cell *figure.Cell, m result.Metric) (float64, bool) {
	sum, n := 0.0, 0
	for _, t := range cell.Trials {
		v, ok := t.Whole[m]
		if !ok && len(t.Flows) > 0 {
			v, ok = t.Flows[0].Values[m]
		}
		if ok {
			sum, n = sum+v, n+1
		}
	}
	return sum / float64(n), n > 0
}
