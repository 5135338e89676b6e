package starlark

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// ulps returns the number of floating-point numbers between a and b.
func ulps(a, b float64) uint64 {
	x, y := int64(math.Float64bits(a)), int64(math.Float64bits(b))
	if x < y {
		x, y = y, x
	}
	return uint64(x - y)
}

// TestFunctionsAreAccurate checks that results differ from Go's by at most a few units in the last
// place. Go's differ from the exact value by one or two.
func TestFunctionsAreAccurate(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	worst := map[string]uint64{}
	note := func(name string, got, want float64, of ...float64) {
		require.False(t, math.IsNaN(got), "%s %v", name, of)
		worst[name] = max(worst[name], ulps(got, want))
	}
	for range 200_000 {
		x := math.Ldexp(r.Float64()+0.5, r.IntN(60)-30)
		note("log", log(x), math.Log(x), x)
		near := 1 + (r.Float64()-0.5)*0.01
		note("log near 1", log(near), math.Log(near), near)
		note("cbrt", cbrt(x), math.Cbrt(x), x)
		note("cbrt", cbrt(-x), math.Cbrt(-x), -x)
		y := (r.Float64() - 0.5) * 1400
		note("exp", exp(y), math.Exp(y), y)
		n := float64(r.IntN(7) - 3)
		note("pow whole", pow(x, n), math.Pow(x, n), x, n)
		small := (r.Float64() - 0.5) * 4
		note("pow", pow(x, small), math.Pow(x, small), x, small)
	}
	t.Log(worst)
	for name, most := range map[string]uint64{
		"log": 4, "log near 1": 4, "cbrt": 3, "exp": 4, "pow whole": 8, "pow": 200,
	} {
		assert.LessOrEqual(t, worst[name], most, name)
	}
}

func TestFunctionsAtTheEdges(t *testing.T) {
	inf := math.Inf(1)
	for _, tc := range []struct{ got, want float64 }{
		{cbrt(27), 3},
		{cbrt(-8), -2},
		{cbrt(0), 0},
		{cbrt(1e-300), math.Cbrt(1e-300)},
		{cbrt(5e-324), math.Cbrt(5e-324)},
		{cbrt(inf), inf},
		{exp(0), 1},
		{exp(1000), inf},
		{exp(-1000), 0},
		{exp(inf), inf},
		{exp(-inf), 0},
		{log(1), 0},
		{log(0), -inf},
		{log(inf), inf},
		{log(5e-324), -744.4400719213812},
		{pow(2, 10), 1024},
		{pow(2, -1), 0.5},
		{pow(0, 0), 1},
		{pow(0, 0.5), 0},
		{pow(-2, 3), -8},
		{pow(2, 2000), inf},
		{pow(0.25, 0.5), 0.5},
	} {
		assert.LessOrEqual(t, ulps(tc.want, tc.got), uint64(4), "%v, want %v", tc.got, tc.want)
	}
	for _, f := range []float64{log(-1), pow(-2, 0.5), exp(math.NaN()), cbrt(math.NaN())} {
		assert.True(t, math.IsNaN(f))
	}
}

// TestFunctionsArePortable checks that results have the same bits on every machine.
func TestFunctionsArePortable(t *testing.T) {
	sum := uint64(0)
	add := func(f float64) { sum = (sum ^ math.Float64bits(f)) * 0x9e3779b97f4a7c15 }
	for i := range 10_000 {
		x := float64(i)/7 + 0.001
		add(exp(x / 10))
		add(log(x))
		add(cbrt(x))
		add(pow(x, 0.75))
		add(pow(x, 3))
	}
	assert.Equal(t, uint64(0x65f2f5e35614a98e), sum)
}
