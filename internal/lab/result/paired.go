package result

import "math"

// Difference is the difference between the results of two arms of an experiment.
type Difference struct {
	N               int     // number of pairs, or of runs of the smaller arm
	Mean, Low, High float64 // the mean, and its 95 % confidence interval
	// Share is Mean divided by the mean of the first arm.
	Share float64
}

// Paired compares runs a[i] and b[i], which differ in one thing and had the same random draws: b
// minus a. The common randomness cancels, so the interval is narrower than for independent means.
// Paired panics if the lengths differ.
func Paired(a, b []float64) Difference {
	if len(a) != len(b) {
		panic("BUG: result: pairs of unequal length")
	}
	differences := make([]float64, len(a))
	for i := range a {
		differences[i] = b[i] - a[i]
	}
	s := Describe(differences, 0)
	before := Describe(a, 0)
	return Difference{s.N, s.Mean, s.Low, s.High, s.Mean / before.Mean}
}

// Unpaired compares runs with different seeds: b minus a, with the interval of Welch's t-test.
func Unpaired(a, b []float64) Difference {
	s, t := Describe(a, 0), Describe(b, 0)
	d := Difference{
		N: min(s.N, t.N), Mean: t.Mean - s.Mean, Low: math.NaN(), High: math.NaN(),
		Share: (t.Mean - s.Mean) / s.Mean,
	}
	if d.N < 2 {
		return d
	}
	u, v := s.SD*s.SD/float64(s.N), t.SD*t.SD/float64(t.N)
	if u+v == 0 {
		d.Low, d.High = d.Mean, d.Mean
		return d
	}
	freedom := (u + v) * (u + v) / (u*u/float64(s.N-1) + v*v/float64(t.N-1))
	half := TQuantile(freedom) * math.Sqrt(u+v)
	d.Low, d.High = d.Mean-half, d.Mean+half
	return d
}
