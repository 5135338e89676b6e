package result

import "math"

// Scale is a multiple of a metric's unit.
type Scale struct {
	Name string
	Size float64 // size in the metric's unit
}

// Of converts a value to the scale.
func (s Scale) Of(value float64) float64 { return value / s.Size }

// scales lists the multiples of units, the largest first.
var scales = map[string][]Scale{
	"bit/s": {{"Gbit/s", 1e9}, {"Mbit/s", 1e6}, {"kbit/s", 1e3}, {"bit/s", 1}},
	"s":     {{"s", 1}, {"ms", 1e-3}, {"µs", 1e-6}},
	"bytes": {{"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"bytes", 1}},
}

// ScaleOf returns the largest multiple of a unit that is not above a value, or else the smallest.
func ScaleOf(unit string, value float64) Scale {
	last := Scale{unit, 1}
	for _, last = range scales[unit] {
		if math.Abs(value) >= last.Size {
			break
		}
	}
	return last
}
