package formula

import (
	"math"
	"strconv"
	"strings"
)

// Unit is the unit of a value.
type Unit string

// The units of metrics and numbers.
const (
	Pure    Unit = ""
	Seconds Unit = "s"
	Rate    Unit = "bit/s"
	Bytes   Unit = "bytes"
	Packets Unit = "packets"
	// Unknown is a unit that is not tracked, such as a product of two. It matches every unit.
	Unknown Unit = "?"
)

// counted reports whether the unit is a pure number or a count of packets.
func (u Unit) counted() bool { return u == Pure || u == Packets }

func (u Unit) fits(v Unit) bool {
	return u == v || u == Unknown || v == Unknown || u.counted() && v.counted()
}

func (u Unit) name() string {
	if u == Pure {
		return "a pure number"
	}
	return "in " + string(u)
}

// units are the units of numbers. Rates are converted to bits per second, amounts of data to bytes.
var units = map[string]struct {
	unit Unit
	size float64
}{
	"ns": {Seconds, 1e-9}, "us": {Seconds, 1e-6}, "µs": {Seconds, 1e-6}, "ms": {Seconds, 1e-3},
	"s": {Seconds, 1}, "min": {Seconds, 60}, "h": {Seconds, 3600},
	"bit": {Rate, 1}, "kbit": {Rate, 1e3}, "Mbit": {Rate, 1e6}, "Gbit": {Rate, 1e9},
	"Tbit": {Rate, 1e12}, "bit/s": {Rate, 1}, "kbit/s": {Rate, 1e3}, "Mbit/s": {Rate, 1e6},
	"Gbit/s": {Rate, 1e9}, "Tbit/s": {Rate, 1e12},
	"B/s": {Rate, 8}, "kB/s": {Rate, 8e3}, "MB/s": {Rate, 8e6}, "GB/s": {Rate, 8e9},
	"B": {Bytes, 1}, "kB": {Bytes, 1e3}, "MB": {Bytes, 1e6}, "GB": {Bytes, 1e9},
	"KiB": {Bytes, 1 << 10}, "MiB": {Bytes, 1 << 20}, "GiB": {Bytes, 1 << 30},
	"%": {Pure, 1}, "pkt": {Packets, 1}, "pkts": {Packets, 1}, "bdp": {Pure, 1},
}

// Number parses a number with or without a unit, as in formulas and experiment files: 262.5ms is
// 0.2625 seconds, 3% is 0.03, 0.5bdp is 0.5. It returns false for any other text.
func Number(text string) (value float64, unit Unit, ok bool) {
	n := numberLength(text)
	value, err := strconv.ParseFloat(text[:n], 64)
	if n == 0 || err != nil {
		return 0, Pure, false
	}
	name := strings.TrimSpace(text[n:])
	if name == "" {
		return value, Pure, true
	}
	u, ok := units[name]
	if !ok {
		return 0, Pure, false
	}
	return scaled(value, name, u.size), u.unit, !math.IsInf(value*u.size, 0)
}

// scaled multiplies by a factor, or divides where the factor is not a binary fraction.
func scaled(value float64, unit string, size float64) float64 {
	const percent = 100
	switch {
	case unit == "%":
		return value / percent
	case size < 1:
		return value / math.Round(1/size)
	}
	return value * size
}

// numberLength returns the length of the number at the start of s: digits, a point, an exponent.
func numberLength(s string) int {
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
