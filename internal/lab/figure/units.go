package figure

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/tidepool-net/tidepool/internal/lab/result"
)

// axisScale returns the unit of an axis for values in a metric's unit. Large counts are in
// thousands or millions.
func axisScale(base result.Unit, most float64) result.Scale {
	switch {
	case base == result.PacketCount && most >= 1e6:
		return result.Scale{Name: "millions", Size: 1e6}
	case base == result.PacketCount && most >= 1e4:
		return result.Scale{Name: "thousands", Size: 1e3}
	}
	return result.ScaleOf(base, most)
}

// amount formats a value in a suitable unit, with three significant digits.
func amount(value float64, base result.Unit) string {
	u := result.ScaleOf(base, value)
	if value == 0 {
		u.Name = string(base)
	}
	return strings.TrimSpace(digits(u.Of(value)) + " " + u.Name)
}

// plain formats an exact value in a suitable unit.
func plain(value float64, base result.Unit) string {
	u := result.ScaleOf(base, value)
	return strconv.FormatFloat(u.Of(value), 'g', 5, 64) + " " + u.Name
}

// digits formats a number with three significant digits. Below ten million, it keeps all digits
// before the decimal point.
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

func infinite(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }

// formatInterval formats a mean and the half-width of its interval. It gives the half-width two
// significant digits, and the mean at most four.
func formatInterval(mean, half float64) (string, string) {
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
