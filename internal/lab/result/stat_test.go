package result_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/lab/result"
)

const tiny = 1e-9

// The values are two-sided 95 % points from printed tables of Student's distribution.
func TestTQuantile(t *testing.T) {
	for freedom, want := range map[float64]float64{
		1: 12.706, 2: 4.303, 4: 2.776, 9: 2.262, 29: 2.045, 99: 1.984, 100000: 1.960,
	} {
		assert.InDelta(t, want, result.TQuantile(freedom), 0.0005, "%v degrees", freedom)
	}
}

// The numbers are computed by hand: the squares around the mean 5 are 9+1+1+1+0+0+4+16 = 32.
func TestDescribe(t *testing.T) {
	s := result.Describe([]float64{9, 2, 4, 4, 7, 5, 5, 4}, 0)
	assert.Equal(t, 8, s.N)
	assert.InDelta(t, 5, s.Mean, tiny)
	assert.InDelta(t, math.Sqrt(32.0/7), s.SD, tiny)
	half := 2.364624251592784 * math.Sqrt(32.0/7) / math.Sqrt(8)
	assert.InDelta(t, 5-half, s.Low, 1e-6)
	assert.InDelta(t, 5+half, s.High, 1e-6)
	assert.InDelta(t, half, s.HalfWidth(), 1e-6)
	assert.InDelta(t, half/5, s.Precision(), 1e-6)
	assert.InDelta(t, 4.5, s.Median, tiny)
	assert.InDelta(t, 4, s.Q1, tiny)
	assert.InDelta(t, 5.5, s.Q3, tiny)
	assert.InDelta(t, 1.5, s.IQR(), tiny)
	assert.InDelta(t, 2, s.Minimum, tiny)
	assert.InDelta(t, 9, s.Maximum, tiny)
}

func TestDescribeFewRuns(t *testing.T) {
	one := result.Describe([]float64{3}, 0)
	assert.InDelta(t, 3, one.Mean, tiny)
	assert.InDelta(t, 3, one.Median, tiny)
	assert.True(t, math.IsNaN(one.SD) && math.IsNaN(one.Low), "the spread of one run is undefined")

	none := result.Describe(nil, 0)
	assert.Zero(t, none.N)
	assert.True(t, math.IsNaN(none.Mean) && math.IsNaN(none.Median))

	same := result.Describe([]float64{3, 3, 3}, 0)
	assert.Zero(t, same.SD)
	assert.Zero(t, same.Precision())
	about := result.Describe([]float64{-1, 1}, 0)
	assert.True(t, math.IsInf(about.Precision(), 1))
}

// The mean of the runs that finished would be biased. The median is valid if more than half of the
// runs finished.
func TestDescribeUnfinishedRuns(t *testing.T) {
	s := result.Describe([]float64{1, 2, 3, 4}, 1)
	assert.Equal(t, 5, s.N)
	assert.Equal(t, 1, s.Cut)
	assert.True(t, math.IsNaN(s.Mean) && math.IsNaN(s.SD) && math.IsNaN(s.Low))
	assert.InDelta(t, 3, s.Median, tiny)
	assert.InDelta(t, 2, s.Q1, tiny)
	assert.InDelta(t, 4, s.Q3, tiny)
	assert.InDelta(t, 2, s.IQR(), tiny)
	assert.True(t, math.IsInf(s.Maximum, 1))

	s = result.Describe([]float64{1, 2}, 2)
	assert.True(t, math.IsInf(s.Median, 1), "between 2 and infinity")
	assert.True(t, math.IsNaN(s.IQR()))
	s = result.Describe(nil, 3)
	assert.True(t, math.IsInf(s.Minimum, 1))
}

func TestDescribeIgnoresOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	values := make([]float64, 100)
	for i := range values {
		values[i] = random.ExpFloat64() * 1e6
	}
	want := result.Describe(values, 0)
	for range 10 {
		random.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] })
		assert.Equal(t, want, result.Describe(values, 0))
	}
}

// About 95 % of the confidence intervals of normal samples contain the mean.
func TestConfidenceIntervalCoverage(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	const samples = 4000
	contained := 0
	for range samples {
		values := make([]float64, 5)
		for i := range values {
			values[i] = 10 + 3*random.NormFloat64()
		}
		if s := result.Describe(values, 0); s.Low <= 10 && 10 <= s.High {
			contained++
		}
	}
	sigma := math.Sqrt(samples * 0.95 * 0.05)
	assert.InDelta(t, samples*0.95, contained, 4*sigma)
}

// Each pair differs by 1 on average, although values differ by a hundred, because the common part
// cancels.
func TestPaired(t *testing.T) {
	a, b := []float64{100, 200, 300}, []float64{101, 202, 300}
	d := result.Paired(a, b)
	assert.Equal(t, 3, d.N)
	assert.InDelta(t, 1, d.Mean, tiny)
	half := 4.302652729749464 / math.Sqrt(3)
	assert.InDelta(t, 1-half, d.Low, 1e-6)
	assert.InDelta(t, 1+half, d.High, 1e-6)
	assert.InDelta(t, 0.005, d.Share, tiny)
	assert.True(t, d.Low < 0 && d.High > 0)

	d = result.Paired(a, []float64{110, 211, 312})
	assert.Positive(t, d.Low)
	wide := result.Unpaired(a, []float64{110, 211, 312})
	assert.InDelta(t, d.Mean, wide.Mean, tiny)
	assert.Negative(t, wide.Low, "the interval is wider without pairs")
	assert.Panics(t, func() { result.Paired(a, b[:2]) })
}

// This is Welch's example of unequal variances, computed by hand. With u = 1/3 and v = 4/3, the
// degrees of freedom are (25/9)/((1/9+16/9)/2) = 50/17.
func TestUnpaired(t *testing.T) {
	d := result.Unpaired([]float64{1, 2, 3}, []float64{2, 4, 6})
	assert.InDelta(t, 2, d.Mean, tiny)
	assert.InDelta(t, 1, d.Share, tiny)
	half := (d.High - d.Low) / 2
	assert.InDelta(t, 2, (d.High+d.Low)/2, tiny)
	assert.Greater(t, half, result.TQuantile(3)*math.Sqrt(5.0/3))
	assert.Less(t, half, result.TQuantile(2)*math.Sqrt(5.0/3))
	same := result.Unpaired([]float64{1, 1}, []float64{2, 2})
	assert.InDelta(t, 1, same.Low, tiny)
	assert.InDelta(t, 1, same.High, tiny)
	one := result.Unpaired([]float64{1}, []float64{2, 3})
	require.True(t, math.IsNaN(one.Low))
}

func TestJain(t *testing.T) {
	assert.InDelta(t, 1, result.JainIndex([]float64{5, 5, 5}), tiny)
	assert.InDelta(t, 0.25, result.JainIndex([]float64{0, 7, 0, 0}), tiny)
	assert.InDelta(t, 0.8, result.JainIndex([]float64{1, 3}), tiny, "16 of 2·10")
	assert.InDelta(t, 1, result.JainIndex(nil), tiny)
	assert.InDelta(t, 1, result.JainIndex([]float64{0, 0}), tiny)
}
