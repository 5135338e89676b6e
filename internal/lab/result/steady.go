package result

import (
	"math"
	"slices"
)

// TrendParts is how many equal parts of the measured time a trend is tested over. They should be
// much longer than a sawtooth: correlated neighbors look like a trend.
const TrendParts = 16

// TrendOf looks for a trend in the means of TrendParts consecutive parts of a run. It returns
// Kendall's S, the pairs that rise less those that fall (Mann 1945), and by how much the series
// changes from end to end by Sen's slope (1968), as a share of its mean. Ties are counted as
// neither.
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
	return s, at(slopes, 0.5) * float64(len(means)-1) * float64(len(means)) / sum
}

// Steady reports whether trials show no trend, by the S and the drift of each over TrendParts
// parts. A trend must be significant in all of them together, at 1 % by the seasonal Kendall test
// (Hirsch, Slack and Smith 1982), and move the mean by more than 5 %: in a deterministic run any
// change is significant.
func Steady(s, drift []float64) bool {
	const (
		significant = 2.576 // standard deviations
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
