package figure

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// unit is a unit that values read well in, and how much of the base unit it is.
type unit struct {
	name string
	size float64
}

// of is a value in the unit.
func (u unit) of(value float64) float64 { return value / u.size }

func pick(most float64, units ...unit) unit {
	for _, u := range units[:len(units)-1] {
		if math.Abs(most) >= u.size {
			return u
		}
	}
	return units[len(units)-1]
}

// byteScale is the unit for that many bytes.
func byteScale(most float64) unit {
	return pick(most, unit{"GB", 1e9}, unit{"MB", 1e6}, unit{"kB", 1e3}, unit{"bytes", 1})
}

// rateScale is the unit for that many bits a second.
func rateScale(most float64) unit {
	return pick(most,
		unit{"Gbit/s", 1e9}, unit{"Mbit/s", 1e6}, unit{"kbit/s", 1e3}, unit{"bit/s", 1})
}

// spanScale is the unit for that many seconds.
func spanScale(most float64) unit {
	return pick(most, unit{"s", 1}, unit{"ms", 1e-3}, unit{"µs", 1e-6})
}

// scaleOf is the unit for values of a metric's unit.
func scaleOf(base string, most float64) unit {
	switch base {
	case "bit/s":
		return rateScale(most)
	case "s":
		return spanScale(most)
	case "bytes":
		return byteScale(most)
	default:
		return unit{base, 1}
	}
}

// axisScale is the unit for an axis of values of a metric's unit: counts of many are counted in
// thousands.
func axisScale(base string, most float64) unit {
	switch {
	case base == "packets" && most >= 1e6:
		return unit{"millions", 1e6}
	case base == "packets" && most >= 1e4:
		return unit{"thousands", 1e3}
	}
	return scaleOf(base, most)
}

// amount is a value in a unit that suits it, with three digits that count.
func amount(value float64, base string) string {
	u := scaleOf(base, value)
	if value == 0 {
		u.name = base
	}
	return strings.TrimSpace(digits(u.of(value)) + " " + u.name)
}

// plain is a value that was given, in a unit that suits it.
func plain(value float64, base string) string {
	u := scaleOf(base, value)
	return strconv.FormatFloat(u.of(value), 'g', 5, 64) + " " + u.name
}

// digits is a number with three digits that count, or all of those before the point.
func digits(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "–"
	}
	magnitude := math.Abs(v)
	var s string
	switch {
	case v == 0:
		return "0"
	case magnitude >= 1e7 || magnitude < 1e-3:
		s = fmt.Sprintf("%.3g", v)
	case magnitude >= 99.95:
		s = fmt.Sprintf("%.0f", v)
	default:
		s = fmt.Sprintf("%.*f", 2-int(math.Floor(math.Log10(magnitude*1.0005))), v)
	}
	return strings.Replace(s, "-", "−", 1)
}

// infinite reports whether v is NaN or infinite.
func infinite(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }

// together are a mean and how far its interval reaches: as many decimals as make two digits of
// the reach, and no more than make four of the mean.
func together(mean, half float64) (string, string) {
	if infinite(mean) || infinite(half) || math.Abs(mean) >= 1e7 {
		return digits(mean), digits(half)
	}
	decimals := 6
	if mean != 0 {
		decimals = min(decimals, 3-int(math.Floor(math.Log10(math.Abs(mean)))))
	}
	if half > 0 {
		decimals = min(decimals, 1-int(math.Floor(math.Log10(half))))
	}
	if mean == 0 && half == 0 {
		decimals = 0
	}
	write := func(v float64) string {
		return strings.Replace(fmt.Sprintf("%.*f", max(0, decimals), v), "-", "−", 1)
	}
	return write(mean), write(half)
}
