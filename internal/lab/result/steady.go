package result

import (
	"math"
	"slices"
)

// TrendParts is the number of equal parts of the measured time in which to search for a trend. A
// part should be much longer than a sawtooth, because correlated neighbors look like a trend.
const TrendParts = 16

// TrendOf looks for a trend in the means of TrendParts consecutive parts of a run. It returns two
// values. One is Kendall's S, the number of rising pairs minus the number of falling pairs (Mann
// 1945); ties count as neither. The other is Sen's slope (1968): the change from one end of the
// series to the other, as a share of the mean.
func TrendOf(means []float64) (s int, drift float64) {
	var slopes []float64
	sum := 0.0
	for i, a := range means {
		sum += a
		for j, b := range means[:i] {
			switch {
			case a > b:
				s++
			case a < b:
				s--
			}
			slopes = append(slopes, (a-b)/float64(i-j))
		}
	}
	if sum == 0 {
		return 0, 0
	}
	slices.Sort(slopes)
	return s, quantile(slopes, 0.5) * float64(len(means)-1) * float64(len(means)) / sum
}

// Steady reports whether trials show no trend, given S and the drift of each trial. A trend must be
// significant in all trials together, at 1 % by the seasonal Kendall test (Hirsch, Slack and Smith
// 1982). It must also change the mean by more than 5 %, because in a deterministic run any change
// is significant.
func Steady(s, drift []float64) bool {
	const (
		significant = 2.576 // limit in standard deviations
		relevant    = 0.05
		variance    = TrendParts * (TrendParts - 1) * (2*TrendParts + 5) / 18.0
	)
	if len(s) == 0 {
		return true
	}
	var all, change float64
	for i := range s {
		all += s[i]
		change += drift[i] / float64(len(s))
	}
	z := (math.Abs(all) - 1) / math.Sqrt(variance*float64(len(s)))
	return z < significant || math.Abs(change) < relevant
}
