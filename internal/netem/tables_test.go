package netem

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tc's pareto.c computes 4096 entries ((i/65536)^(-1/3) - 1.5)·4/3·8192, with i from 65536 down in
// steps of 16, cut off at 32767. The code here computes them with integers.
func TestParetoTableEqualsTC(t *testing.T) {
	sum := int64(0)
	for k := int64(1); k <= quantiles; k++ {
		x := (math.Pow(float64(k)/quantiles, -1/3.) - 1.5) * 4 / 3 * jitterScale
		require.Equal(t, int64(math.Min(math.RoundToEven(x), 32767)), pareto(k), "k %d", k)
		sum += pareto(k)
	}
	assert.Equal(t, int64(-1123786), sum, "sum of tc's file")
}

// tc's paretonormal.c adds a quarter of the normal distribution and three quarters of pareto's at
// each quantile. The values may differ from tc's table by 1.
func TestParetoNormalTableEqualsTC(t *testing.T) {
	begin := []int64{
		-12305, -11171, -10812, -10586, -10418, -10284, -10172, -10075, -9990, -9914, -9845, -9783,
	}
	for j, want := range begin {
		assert.InDelta(t, want, paretoNormal(int64(j)), 1)
	}
	assert.Equal(t, int64(31789), paretoNormal(quantiles-1))
	sum := int64(0)
	for j := range int64(quantiles) {
		sum += paretoNormal(j)
		z := normalQuantile(j)
		assert.InDelta(t, (4*float64(j)+0.5)/(4*quantiles), 0.5*math.Erfc(-z/math.Sqrt2), 1e-12)
		// Another machine's floating point may differ by some units in the last place. It still
		// rounds to the same value.
		_, part := math.Modf(math.Abs(z) * jitterScale)
		require.Greater(t, math.Abs(part-0.5), 1e-6, "quantile %d", j)
	}
	assert.InDelta(t, -848968, sum, 200, "sum of tc's file")
}

// The mean and deviation of the draws equal those of the table, and the quantiles those of the
// Pareto distribution.
func TestParetoJitter(t *testing.T) {
	const n, jitter = 200_000, 20 * time.Millisecond
	r := rand.New(rand.NewPCG(1, 1))
	for name, c := range map[string]struct {
		jitter   Jitter
		mean, sd float64 // mean and deviation of the table that tc writes, as shares of the jitter
	}{
		"pareto":       {RandomJitter{Size: jitter, Shape: "pareto"}, -0.0334914, 0.8196772},
		"paretonormal": {RandomJitter{Size: jitter, Shape: "paretonormal"}, -0.0253012, 0.8339445},
	} {
		var sum, squares float64
		late := map[float64]int{}
		for range n {
			x := float64(c.jitter.Draw(0, r)) / float64(jitter)
			sum += x
			squares += x * x
			for _, above := range []float64{0, 0.5, 1, 2, 3} {
				if x > above {
					late[above]++
				}
			}
		}
		mean := sum / n
		assert.InDelta(t, c.mean, mean, 4*c.sd/math.Sqrt(n), name)
		assert.InEpsilon(t, c.sd, math.Sqrt(squares/n-mean*mean), 0.02, name)
		if name != "pareto" {
			continue
		}
		for above, count := range late {
			// A Pareto variable of exponent 3 is above x with probability x^-3.
			p := math.Pow(above*3/4+1.5, -3)
			sd := math.Sqrt(p * (1 - p) / n)
			assert.InDelta(t, p, float64(count)/n, 4*sd+1./quantiles, "above %v", above)
		}
	}
}

// The kernel's tabledist multiplies the jitter by the entry and divides by 8192. It rounds halves
// away from 0.
func TestScaledJitter(t *testing.T) {
	for _, c := range []struct {
		jitter time.Duration
		entry  int64
		want   time.Duration
	}{
		{8192, 8192, 8192},
		{8192, -4096, -4096},
		{100, 8192, 100},
		{1, 4096, 1},
		{1, 4095, 0},
		{1, -4096, -1},
		{10 * milli, 32767, 39998779},
		{time.Hour, -32768, -4 * time.Hour},
	} {
		assert.Equal(t, c.want, scaledJitter(c.jitter, c.entry), "%+v", c)
	}
}

func TestTableJitter(t *testing.T) {
	table, err := ParseTable("# two thirds are late\n 8192 8192\n\n-16384 # and one early\n")
	require.NoError(t, err)
	assert.Equal(t, []int16{8192, 8192, -16384}, table)
	j := RandomJitter{Size: milli, Table: table}
	require.NoError(t, j.Validate())
	r := rand.New(rand.NewPCG(2, 2))
	late := 0
	for range 30_000 {
		switch d := j.Draw(0, r); d {
		case milli:
			late++
		case -2 * milli:
		default:
			t.Fatal(d)
		}
	}
	assert.InDelta(t, 20_000, late, 4*math.Sqrt(30_000*2./9))
	for text, want := range map[string]string{
		"":                             "no numbers",
		"# nothing":                    "no numbers",
		"1 2\n3 four":                  "line 2, field 2: must be",
		"1 40000":                      "line 1, field 2: must be a number from -32768 to 32767",
		strings.Repeat("1 ", 16<<10+1): "line 1: more than 16384 numbers",
	} {
		_, err := ParseTable(text)
		require.ErrorIs(t, err, ErrConfig)
		assert.ErrorContains(t, err, want)
	}
	require.ErrorIs(t, RandomJitter{Size: 1, Shape: "x"}.Validate(), ErrConfig)
}

func FuzzTable(f *testing.F) {
	for _, text := range []string{"1 2 3", "# x\n-5\n", "99999", "1\r\n2", "\x00", "- 1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		table, err := ParseTable(text)
		if err != nil {
			require.ErrorIs(t, err, ErrConfig)
			return
		}
		j := RandomJitter{Size: maxJitter, Table: table}
		require.NoError(t, j.Validate())
		d := j.Draw(0, rand.New(rand.NewPCG(1, 1)))
		assert.LessOrEqual(t, d.Abs(), 4*maxJitter)
	})
}

func TestDelayTrace(t *testing.T) {
	points := []DelayPoint{{10 * milli, milli}, {20 * milli, 5 * milli}, {20 * milli, 3 * milli}, {40 * milli, -milli}}
	for name, c := range map[string]struct {
		trace DelayTrace
		want  map[time.Duration]time.Duration
	}{
		"steps": {DelayTrace{Points: points}, map[time.Duration]time.Duration{
			0: milli, 10 * milli: milli, 20*milli - 1: milli, 20 * milli: 3 * milli,
			39 * milli: 3 * milli, 40 * milli: -milli, time.Hour: -milli, -time.Hour: milli,
		}},
	} {
		require.NoError(t, c.trace.Validate(), name)
		for at, want := range c.want {
			assert.InDelta(t, want, c.trace.Draw(at, nil), 1, "%s at %v", name, at)
		}
	}
	for _, bad := range []DelayTrace{
		{},
		{Points: []DelayPoint{{-1, 0}}},
		{Points: []DelayPoint{{5, 0}, {4, 0}}},
		{Points: []DelayPoint{{0, 2 * time.Hour}}},
	} {
		require.ErrorIs(t, bad.Validate(), ErrConfig, "%+v", bad)
	}
}
