package chart

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func number(t *testing.T, s string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(s, 64)
	require.NoError(t, err)
	return v
}

func labels(list []tick) []string {
	var found []string
	for _, t := range list {
		if t.label != "" {
			found = append(found, t.label)
		}
	}
	return found
}

func TestTicksOfALinearAxis(t *testing.T) {
	for _, c := range []struct {
		least, greatest float64
		want            []string
	}{
		{0, 1, []string{"0.0", "0.2", "0.4", "0.6", "0.8", "1.0"}},
		{0, 7, []string{"0", "1", "2", "3", "4", "5", "6", "7"}},
		{1195.7, 1237.8, []string{"1200", "1210", "1220", "1230"}},
		{-0.02, 0.05, []string{"−0.02", "0.00", "0.02", "0.04"}},
		{0, 3e7, []string{"0", "5 M", "10 M", "15 M", "20 M", "25 M", "30 M"}},
	} {
		assert.Equal(t, c.want, labels(linear(c.least, c.greatest, 7)))
	}
}

func TestTicksOfALogarithmicAxis(t *testing.T) {
	for _, c := range []struct {
		least, greatest float64
		n               int
		want            []string
	}{
		{0.1, 4, 8, []string{"0.1", "0.2", "0.5", "1", "2"}},
		{1, 1e4, 8, []string{"1", "10", "100", "1000", "10000"}},
		{1e-6, 1e6, 5, []string{"10⁻⁶", "0.001", "1", "1000", "1 M"}},
	} {
		a := Axis{Min: c.least, Max: c.greatest, Log: true}
		assert.Equal(t, c.want, labels(a.decades(c.n)))
	}
}

// Numbers from a million on have an SI prefix, and numbers below a ten-thousandth a power of ten.
func TestNumbersOfAnyMagnitude(t *testing.T) {
	for v, want := range map[float64]string{
		5_185_067: "5.185 M", 1e9: "1 G", 2.5e12: "2.5 T", 1e6: "1 M", 999_999: "999999",
		2e-5: "2·10⁻⁵", 1e-13: "10⁻¹³", -3e15: "−3·10¹⁵", 0.001: "0.001", 0: "0.000",
	} {
		decimals := 0
		if v < 1 {
			decimals = 3
		}
		assert.Equal(t, want, format(v, decimals))
	}
}

// An axis in seconds can have numbers in milliseconds, at the same positions.
func TestAxisInAnotherUnit(t *testing.T) {
	apart := func(string) float64 { return 20 }
	a := Axis{Max: 0.15, Per: 1e-3}
	list := a.ticks(120, apart)
	assert.Equal(t, []string{"0", "50", "100", "150"}, labels(list))
	assert.InDelta(t, 0.05, list[1].value, 1e-12)
	a = Axis{Max: 1e8, Per: 1e6, At: []float64{5_185_067, 37_629_571, 92_339_236}}
	assert.Equal(t, []string{"5.19", "37.6", "92.3"}, labels(a.ticks(500, apart)))
}

func TestNumbersDoNotOverlap(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 9))
	apart := func(label string) float64 { return Sans.width(label, textSize, false) + textSize }
	for range 2000 {
		a := Axis{Min: rng.Float64() * 1000, Log: rng.IntN(2) == 0, Reversed: rng.IntN(2) == 0}
		a.Max = a.Min * (1 + 100*rng.Float64())
		a = a.drawable()
		length := 60 + 400*rng.Float64()
		list := a.ticks(length, apart)
		last, room := -1e9, 0.0
		if a.Reversed {
			last = 1e9
		}
		for _, tick := range list {
			at := a.at(tick.value, 0, length)
			require.True(t, at >= -0.01 && at <= length+0.01, "%v: %v at %v", a, tick, at)
			if tick.label == "" || len(labels(list)) <= 2 {
				continue
			}
			wide := Sans.width(tick.label, textSize, false)
			require.Greater(t, max(at-last, last-at), (wide+room)/2, "%+v of %+v", list, a)
			last, room = at, wide
		}
	}
}

func TestReversedAxis(t *testing.T) {
	a := Axis{Min: 1, Max: 100, Log: true}
	assert.InDelta(t, 50, a.at(10, 0, 100), 1e-9)
	assert.InDelta(t, 0, a.at(1, 0, 100), 1e-9)
	a.Reversed = true
	assert.InDelta(t, 100, a.at(1, 0, 100), 1e-9)
}
