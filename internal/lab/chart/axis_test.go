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
		{0, 3e7, []string{"0", "5e+06", "1e+07", "1.5e+07", "2e+07", "2.5e+07", "3e+07"}},
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
		{1e-6, 1e6, 5, []string{"1e-06", "0.001", "1", "1000", "1e+06"}},
	} {
		a := Axis{Min: c.least, Max: c.greatest, Log: true}
		assert.Equal(t, c.want, labels(a.decades(c.n)))
	}
}

func TestNumbersOfAnAxisDoNotTouch(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 9))
	apart := func(label string) float64 { return width(label, textSize, false) + textSize }
	for range 2000 {
		a := Axis{Min: rng.Float64() * 1000, Log: rng.IntN(2) == 0, Reversed: rng.IntN(2) == 0}
		a.Max = a.Min * (1 + 100*rng.Float64())
		a = a.sound()
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
			wide := width(tick.label, textSize, false)
			require.Greater(t, max(at-last, last-at), (wide+room)/2, "%+v of %+v", list, a)
			last, room = at, wide
		}
	}
}

func TestAReversedAxisGoesTheOtherWay(t *testing.T) {
	a := Axis{Min: 1, Max: 100, Log: true}
	assert.InDelta(t, 50, a.at(10, 0, 100), 1e-9)
	assert.InDelta(t, 0, a.at(1, 0, 100), 1e-9)
	a.Reversed = true
	assert.InDelta(t, 100, a.at(1, 0, 100), 1e-9)
}
