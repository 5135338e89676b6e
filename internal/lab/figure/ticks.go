package figure

import (
	"math"
	"strconv"

	"gonum.org/v1/plot"
)

// mostTicks is how many numbers an axis has at most.
const mostTicks = 7

// ticks puts numbers at multiples of 1, 2 or 5 times a power of ten.
func ticks(least, greatest float64) []plot.Tick {
	span := greatest - least
	if !(span > 0) || math.IsInf(span, 0) {
		return nil
	}
	step := math.Pow(10, math.Floor(math.Log10(span/mostTicks)))
	for _, factor := range []float64{1, 2, 5, 10} {
		if span/(step*factor) <= mostTicks {
			step *= factor
			break
		}
	}
	decimals := max(0, int(math.Ceil(-math.Log10(step)-1e-9)))
	var list []plot.Tick
	for i := math.Ceil(least/step - 1e-9); i*step <= greatest+1e-9*span; i++ {
		value := i*step + 0 // the sum is never the negative zero
		list = append(list, plot.Tick{
			Value: value, Label: strconv.FormatFloat(value, 'f', decimals, 64),
		})
	}
	return list
}
