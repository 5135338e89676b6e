package result_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tidepool-net/tidepool/internal/lab/result"
)

// steady tests trials that consist of noise and a function of the part, which is from 0 to 1.
func steady(trials int, noise float64, f func(x float64) float64) bool {
	rng := rand.New(rand.NewPCG(1, uint64(trials)))
	var s, drift []float64
	for range trials {
		series := make([]float64, result.TrendParts)
		for i := range series {
			series[i] = f(float64(i)/(result.TrendParts-1)) + noise*rng.NormFloat64()
		}
		n, d := result.TrendOf(series)
		s, drift = append(s, float64(n)), append(drift, d)
	}
	return result.Steady(s, drift)
}

func TestTrend(t *testing.T) {
	s, drift := result.TrendOf([]float64{1, 2, 3, 4})
	assert.Equal(t, 6, s, "all pairs rise")
	assert.InDelta(t, 3/2.5, drift, 1e-12)
	s, drift = result.TrendOf([]float64{4, 3, 3, 2})
	assert.Equal(t, -5, s, "all but the tie fall")
	assert.InDelta(t, -7.0/12, drift, 1e-12, "the median of 0, -1/2, -1/2, -2/3, -1 and -1")
	s, drift = result.TrendOf(make([]float64, result.TrendParts))
	assert.Zero(t, s)
	assert.Zero(t, drift)
}

func TestSteady(t *testing.T) {
	flat := func(float64) float64 { return 1 }
	for _, c := range []struct {
		name   string
		noise  float64
		trials int
		f      func(float64) float64
		want   bool
	}{
		{"constant", 0, 1, flat, true},
		{"noise", .1, 1, flat, true},
		{"noise in many trials", .1, 20, flat, true},
		{"a sawtooth", 0, 1, func(x float64) float64 { return 1 + .3*math.Mod(5*x, 1) }, true},
		{"a falling share", .05, 1, func(x float64) float64 { return 1 - .4*x }, false},
		{
			"a rising share with noise, in three trials", .1, 3,
			func(x float64) float64 { return 1 + .3*x }, false,
		},
		{
			"the end of an exponential transient", .01, 1,
			func(x float64) float64 { return 1 + math.Exp(-4*x) }, false,
		},
		{
			"a short transient", .02, 1, func(x float64) float64 { return 1 + math.Exp(-40*x) },
			true,
		},
		{
			"a change of 2 %", 0, 1,
			func(x float64) float64 { return 1 + .02*x }, true,
		},
	} {
		assert.Equal(t, c.want, steady(c.trials, c.noise, c.f), c.name)
	}
}

// In noise, the test finds a trend in one of a hundred series.
func TestSteadyFalseAlarms(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	alarms := 0
	for range 5000 {
		series := make([]float64, result.TrendParts)
		for i := range series {
			series[i] = 1 + .3*rng.NormFloat64()
		}
		if s, d := result.TrendOf(series); !result.Steady([]float64{float64(s)}, []float64{d}) {
			alarms++
		}
	}
	assert.InDelta(t, 50, alarms, 25)
}
