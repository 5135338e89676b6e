package formula

import (
	"math"
	"strconv"
	"strings"

	"github.com/tidepool-net/tidepool/internal/lab/result"
)

// Unit is the unit of a value.
type Unit = result.Unit

// These are short names of units.
const (
	Pure    = result.Pure
	Seconds = result.Seconds
	Rate    = result.Rate
	Bytes   = result.Bytes
	Packets = result.PacketCount
	Unknown = result.Unknown // matches every unit
)

// counted reports whether the unit is a pure number or a count of packets.
func counted(u Unit) bool { return u == Pure || u == Packets }

// fit reports whether values of both units can be compared and added.
func fit(u, v Unit) bool {
	return u == v || u == Unknown || v == Unknown || counted(u) && counted(v)
}

func nameOf(u Unit) string {
	if u == Pure {
		return "a pure number"
	}
	return "a value in " + string(u)
}

// Number parses a number with or without a unit, as in formulas and experiment files: 262.5ms is
// 0.2625 seconds, 3% is 0.03, 0.5bdp is 0.5. It returns false for any other text.
func Number(text string) (value float64, unit Unit, ok bool) {
	n := result.NumberLength(text)
	value, err := strconv.ParseFloat(text[:n], 64)
	if err != nil {
		return 0, Pure, false
	}
	name := strings.TrimSpace(text[n:])
	if name == "" {
		return value, Pure, true
	}
	m, ok := result.Measures[name]
	if !ok {
		return 0, Pure, false
	}
	value, unit = m.Metric(value), m.Unit
	switch unit {
	case result.Percent, result.BDPs, result.Services:
		unit = Pure
	default:
	}
	return value, unit, !math.IsInf(value, 0)
}
