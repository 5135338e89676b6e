package result

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mathext"
)

// Confidence is the confidence level of all intervals.
const Confidence = 0.95

// Summary describes a set of runs by statistics. Undefined statistics are NaN: the spread of one
// run, and the mean if some runs were cut off.
type Summary struct {
	// N is the number of runs. Cut counts the runs that ended before they had a value; order
	// statistics treat their values as +Inf.
	N, Cut           int
	Mean, SD         float64
	Low, High        float64 // confidence interval of the mean
	Median, Q1, Q3   float64
	Minimum, Maximum float64
}

// Describe summarizes the values of runs, and the number of runs that were cut off before they had
// a value. It does not keep the slice.
func Describe(values []float64, cut int) Summary {
	nan := math.NaN()
	s := Summary{
		N: len(values) + cut, Cut: cut, Mean: nan, SD: nan, Low: nan, High: nan,
	}
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	for range cut {
		sorted = append(sorted, math.Inf(1))
	}
	s.Median = quantile(sorted, 0.5)
	s.Q1, s.Q3 = quantile(sorted, 0.25), quantile(sorted, 0.75)
	s.Minimum, s.Maximum = quantile(sorted, 0), quantile(sorted, 1)
	if cut > 0 || len(values) == 0 {
		return s
	}
	// Adding in sorted order makes the sum independent of the order in which runs ended.
	s.Mean = floats.Sum(sorted) / float64(len(sorted))
	if len(sorted) < 2 {
		return s
	}
	s.SD = math.Sqrt(variance(sorted, s.Mean))
	half := TQuantile(float64(len(sorted)-1)) * s.SD / math.Sqrt(float64(len(sorted)))
	s.Low, s.High = s.Mean-half, s.Mean+half
	return s
}

// HalfWidth returns the half-width of the mean's confidence interval.
func (s *Summary) HalfWidth() float64 { return (s.High - s.Low) / 2 }

// Precision returns HalfWidth divided by the mean; 0 if all runs agree, +Inf if the mean is 0.
func (s *Summary) Precision() float64 {
	half := s.HalfWidth()
	if half == 0 {
		return 0
	}
	return half / math.Abs(s.Mean)
}

// IQR returns the interquartile range.
func (s *Summary) IQR() float64 {
	if math.IsInf(s.Q3, 1) {
		return math.NaN()
	}
	return s.Q3 - s.Q1
}

// TQuantile returns the half-width of the mean's two-sided interval in standard errors, by
// Student's t-distribution: 2.045 with 29 degrees of freedom. It inverts the distribution by the
// incomplete beta function. gonum's packages stat and distuv have this too, but they take five
// seconds to compile, because they need linear algebra.
func TQuantile(freedom float64) float64 {
	x := mathext.InvRegIncBeta(freedom/2, 0.5, 1-Confidence)
	return math.Sqrt(freedom * (1 - x) / x)
}

// variance returns the variance of a sample, corrected for the rounding of its mean: algorithm 1.7
// of Chan, Golub and LeVeque (1983).
func variance(sample []float64, mean float64) float64 {
	var squares, rounding float64
	for _, v := range sample {
		d := v - mean
		squares += d * d
		rounding += d
	}
	n := float64(len(sample))
	return (squares - rounding*rounding/n) / (n - 1)
}

// quantile returns the quantile p, from 0 to 1, of sorted numbers: the order statistic at (n-1)p,
// counted from 0, with linear interpolation. This is definition 7 of Hyndman and Fan (1996), which
// spreadsheets use. It returns NaN without numbers.
func quantile(sorted []float64, p float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	h := float64(len(sorted)-1) * p
	i := int(math.Floor(h))
	low, share := sorted[i], h-float64(i)
	if share == 0 || i+1 == len(sorted) {
		return low
	}
	if math.IsInf(sorted[i+1], 1) {
		return math.Inf(1)
	}
	return low + share*(sorted[i+1]-low)
}

// JainIndex returns Jain's fairness index: 1 if all shares are equal, and 1/n if one of n has
// everything. The index is 1 if there are no shares or if all shares are zero.
func JainIndex(shares []float64) float64 {
	var sum, squares float64
	for _, x := range shares {
		sum += x
		// The product must not be fused with the addition, so that the result is the same on every
		// machine.
		squares += float64(x * x)
	}
	if squares == 0 {
		return 1
	}
	return sum * sum / (float64(len(shares)) * squares)
}
