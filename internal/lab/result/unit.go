package result

import "math"

// Unit is the unit of a metric, or a unit that only experiment files have.
type Unit string

// These are the units.
const (
	Pure        Unit = ""
	Seconds     Unit = "s"
	Rate        Unit = "bit/s"
	Bytes       Unit = "bytes"
	PacketCount Unit = "packets"
	Percent     Unit = "%"
	BDPs        Unit = "bdp" // bandwidth-delay products
	Services    Unit = "svc" // service times
	// Unknown is a unit that formulas do not track, such as a product of two.
	Unknown Unit = "?"
)

// Measure is a unit with a prefix.
type Measure struct {
	Unit Unit
	Size float64 // size in ns, bit/s, bytes or Unit
}

// Measures has the units that can follow a number in experiment files, formulas and swept values.
var Measures = map[string]Measure{
	"ns": {Seconds, 1}, "us": {Seconds, 1e3}, "µs": {Seconds, 1e3}, "ms": {Seconds, 1e6},
	"s": {Seconds, 1e9}, "min": {Seconds, 60e9}, "m": {Seconds, 60e9}, "h": {Seconds, 3600e9},
	"B": {Bytes, 1}, "kB": {Bytes, 1e3}, "MB": {Bytes, 1e6}, "GB": {Bytes, 1e9},
	"KiB": {Bytes, 1 << 10}, "MiB": {Bytes, 1 << 20}, "GiB": {Bytes, 1 << 30},
	"bit/s": {Rate, 1}, "kbit/s": {Rate, 1e3}, "Mbit/s": {Rate, 1e6}, "Gbit/s": {Rate, 1e9},
	"Tbit/s": {Rate, 1e12},
	"bit":    {Rate, 1}, "kbit": {Rate, 1e3}, "Mbit": {Rate, 1e6}, "Gbit": {Rate, 1e9},
	"Tbit": {Rate, 1e12},
	"mbit": {Rate, 1e6}, "gbit": {Rate, 1e9}, "tbit": {Rate, 1e12}, // tc(8) uses these names
	"B/s": {Rate, 8}, "kB/s": {Rate, 8e3}, "MB/s": {Rate, 8e6}, "GB/s": {Rate, 8e9},
	"pkt": {PacketCount, 1}, "pkts": {PacketCount, 1},
	"packet": {PacketCount, 1}, "packets": {PacketCount, 1},
	"%": {Percent, 1}, "bdp": {BDPs, 1}, "svc": {Services, 1},
}

// NumberLength returns the length of the number at the start of s: digits, a point, an exponent.
func NumberLength(s string) int {
	i, digits := 0, 0
	for ; i < len(s) && (s[i] >= '0' && s[i] <= '9' || s[i] == '.'); i++ {
		if s[i] != '.' {
			digits++
		}
	}
	if digits == 0 {
		return 0
	}
	if i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		j := i + 1
		if j < len(s) && (s[j] == '+' || s[j] == '-') {
			j++
		}
		first := j
		for ; j < len(s) && s[j] >= '0' && s[j] <= '9'; j++ {
			i = j + 1
		}
		if j == first {
			return i
		}
	}
	return i
}

// Of converts a number to the unit of Size, and a percentage to a number from 0 to 1.
func (m Measure) Of(v float64) float64 {
	if m.Unit == Percent {
		return v / 100 // .01 is not an exact binary fraction, so do not multiply by it
	}
	return v * m.Size
}

// Metric converts a number to the unit of metrics. It is like Of, but converts times to seconds.
func (m Measure) Metric(v float64) float64 {
	const second = 1e9
	switch {
	case m.Unit != Seconds:
		return m.Of(v)
	case m.Size < second:
		return v / (second / m.Size) // the inverse factor is not an exact binary fraction
	}
	return v * (m.Size / second)
}

// Scaled reports whether numbers with the unit are shown in multiples of it.
func (u Unit) Scaled() bool { return scales[u] != nil }

// Scale is a multiple of a metric's unit.
type Scale struct {
	Name string
	Size float64 // size in the metric's unit
}

// Of converts a value to the scale.
func (s Scale) Of(value float64) float64 { return value / s.Size }

// scales lists the multiples of units, the largest first.
var scales = map[Unit][]Scale{
	Rate:    {{"Gbit/s", 1e9}, {"Mbit/s", 1e6}, {"kbit/s", 1e3}, {"bit/s", 1}},
	Seconds: {{"s", 1}, {"ms", 1e-3}, {"µs", 1e-6}},
	Bytes:   {{"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"bytes", 1}},
}

// Decimals returns the number of decimals that shows v with at least the given number of digits.
func Decimals(v float64, digits int) int {
	if v == 0 {
		return 0
	}
	return max(0, digits-1-int(math.Floor(math.Log10(math.Abs(v)))))
}

// ScaleOf returns the largest multiple of a unit that is not above a value, or else the smallest.
func ScaleOf(unit Unit, value float64) Scale {
	last := Scale{string(unit), 1}
	for _, last = range scales[unit] {
		if math.Abs(value) >= last.Size {
			break
		}
	}
	return last
}
