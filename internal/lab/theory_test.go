package lab

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/lab/figure"
	"github.com/tidepool-net/tidepool/internal/lab/formula"
	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/lab/result"
)

func TestTheoryFromExpectations(t *testing.T) {
	trial := &result.Trial{
		Whole: result.Values{result.Utilization: 0.9},
		Flows: []result.Flow{
			{Name: "a", Values: result.Values{result.CwndMean: 14480, result.Sent: 300}},
			{Name: "b", Values: result.Values{result.CwndMean: 1448}},
		},
	}
	for _, c := range []struct {
		claim     string
		values    []float64
		published string
		metric    result.Metric
		want      float64
	}{
		{"utilisation == 0.95", []float64{0.9, 0.95}, "", result.Utilization, 0.95},
		{"cwnd[a] / 1448B == 12", []float64{10, 12}, "", result.CwndMean, 17376},
		{"sent[a] == 310", []float64{300, 310}, "3,289", result.Sent, 310},
		{"utilisation >= 0.95", []float64{0.9, 0.95}, "", "", 0},
		{"cwnd[b] == 12kB", []float64{1448, 12}, "", "", 0},
		{"cwnd[a] - 5kB == 12kB", []float64{10, 12}, "", "", 0},
		{"cwnd[a] + cwnd[b] == 12kB", []float64{0, 12}, "", "", 0},
	} {
		claim, err := formula.CompileClaim(c.claim, &formula.Scope{Flows: []string{"a", "b"}})
		require.NoError(t, err, c.claim)
		cells := []figure.Cell{{Trials: []*result.Trial{trial}}}
		j := &Judged{Verdicts: []Verdict{
			{
				Values:      c.values,
				Expectation: &plan.Expectation{Claim: claim, Published: c.published},
			},
			{Cell: 7},
			{Expectation: &plan.Expectation{Claim: claim}, Err: ErrUsage},
		}}
		j.theory(cells)
		if c.metric == "" {
			assert.Empty(t, cells[0].Theory, c.claim)
			continue
		}
		assert.InDelta(t, c.want, cells[0].Theory[c.metric], 1e-9, c.claim)
		if c.published != "" {
			assert.InDelta(t, 3289, cells[0].Published[c.metric], 1e-9)
		}
	}
	var none *Judged
	none.theory(nil)
}
