package formula_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/lab/formula"
)

// The formulas give the numbers that the papers print.
func TestTheory(t *testing.T) {
	for _, tt := range []struct {
		text        string
		want, delta float64
	}{
		{"reno_utilisation(0)", .75, 1e-9},
		{"reno_utilisation(0.1)", .818, .0005},
		{"reno_utilisation(1/3)", .923, .0005},
		{"reno_utilisation(0.75)", .993, .0005},
		{"reno_utilisation(1)", 1, 1e-9},
		{"reno_utilisation(4)", 1, 1e-9},
		{"aimd_utilisation(0.7, 0)", .85, 1e-9},
		{"aimd_utilisation(0.7, 0.1)", .921, .0005},
		{"aimd_utilisation(0.7, 0.43)", 1, 1e-4},
		{"mathis(1%) * sqrt(1%)", 1.2247, 1e-4},
		// RFC 9438 §5.1, tables 1 and 2: Reno's column applies where CUBIC's value is less.
		{"cubic_window(1e-2, 100ms)", 12, .5},
		{"cubic_window(1e-3, 100ms)", 38, .5},
		{"cubic_window(1e-4, 100ms)", 187, .5},
		{"cubic_window(1e-5, 100ms)", 1054, 1},
		{"cubic_window(1e-6, 100ms)", 5926, 5},
		{"cubic_window(1e-5, 10ms)", 379, .5},
		// K follows from RFC 9438 §4.2.
		{"cubic_k(10)", 1.96, .005},
		{"cubic_k(500)", 7.21, .005},
		// This follows from RFC 5348 §3.1, computed by hand for 1460 bytes, 1 % and 100 ms.
		{"pftk(1460B, 1%, 100ms, 1s)", 8 * 1460 / (.1*.0816497 + 1*.183712*.01*1.0032), 100},
		{"slow_start_rounds(1000)", 7, 0},
		{"slow_start_trips(100, 10)", 5, 0},
		// Notebook 002 has a fast link: 240 s at 176 ms, starting with a window of 10.
		{"avoidance_packets(240s, 176ms, 10)", 943388, 10},
		{"overflow_window(2441528bit/s, 176ms, 26400B, 81B)", 989, 1},
		{"fixed_goodput(10kB, 100ms, 10Mbit)", 8e5, 0},
		{"fixed_goodput(10MB, 100ms, 10Mbit)", 1e7, 0},
		{"stop_and_wait(0, 2)", .2, 1e-9},
		{"gbn_utilisation(0, 100, 2)", 1, 0},
		{"gbn_utilisation(10%, 5, 2)", .9 / 1.4, 1e-9},
		{"gbn_utilisation(10%, 2, 2)", 2 * .9 / (5 * 1.1), 1e-9},
		{"sr_utilisation(10%, 2, 2)", .36, 1e-9},
		{"sr_utilisation(10%, 50, 2)", .9, 1e-9},
		{"sr_packets(1598, 60%)", 3995, 1e-6},
		// The next three are rows of the table for the closed form of the sliding fence.
		{"fence(1598, 10%, 10.57s)", 3010, 1},
		{"fence(1598, 50%, 10.57s)", 5851, 1},
		{"fence(1598, 60%, 10.57s)", 7449, 1},
		{"bursts_loss(1%, 25%)", .01 / .26, 1e-9},
		{"bursts_loss(1%, 25%, 50%, 1%)", (.01*.5 + .25*.01) / .26, 1e-9},
		{"overtaking(0s, 5ms)", .5, 1e-9},
		{"overtaking(10ms, 5ms)", .0786, 1e-4}, // the value is Φ(-√2)
		// In RFC 8289 §5.6, the gaps are 100, 70.7 and 57.7 ms.
		{"codel_drop(1)", 0, 0},
		{"codel_drop(2)", .1, 1e-9},
		{"codel_drop(4)", .1 + .0707107 + .0577350, 1e-6},
		{"codel_drop(1000000)", 199.85, .01},
		{"codel_drops(0s)", 1, 0},
		{"codel_drops(99ms)", 1, 0},
		{"codel_drops(101ms)", 2, 0},
		{"codel_drops(229ms)", 4, 0}, // just above the sum of 100, 70.7 and 57.7
		{"random_window(1%)", 13.098, .001},
	} {
		e, err := formula.Compile(tt.text, &formula.Scope{})
		require.NoError(t, err, tt.text)
		got, err := e.Eval(nil)
		require.NoError(t, err, tt.text)
		assert.InDelta(t, tt.want, got, tt.delta, tt.text)
	}
}

// A window w grows by 1/w with each packet and is halved at independent losses. In units of 1/√p, x
// = w²/2 then grows by an exponential draw and falls to a quarter. The mean of w over time is the
// inverse of the mean of 1/w over packets: 1.31, compared to 1.22 with periodic losses.
func TestRandomWindow(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	x, packets, inverse := 1.0, 0.0, 0.0
	for range 2_000_000 {
		d := r.ExpFloat64()
		inverse += math.Sqrt(2*(x+d)) - math.Sqrt(2*x) // integral of 1/√(2x)
		packets += d
		x = (x + d) / 4
	}
	e, err := formula.Compile("random_window(1%) / 10", &formula.Scope{})
	require.NoError(t, err)
	got, err := e.Eval(nil)
	require.NoError(t, err)
	assert.InDelta(t, packets/inverse, got, .002)
}

func FuzzCompile(f *testing.F) {
	for _, s := range []string{
		"utilisation(cubic) > utilisation(reno) > utilisation(tahoe)", "rtt.max <= 262.5ms",
		"utilisation = reno_utilisation(0.1) ± 1%", `goodput["late"](p=1%)`, "((((((", "1e999s", "-é",
		"min(1,2,3)^-2", "goodput[0](\"1bdp\") / 3Mbit/s", "1 +- 2",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if e, err := formula.Compile(text, scope); err == nil {
			_, _ = e.Eval(&env{values: map[string]float64{"p": 1, "goodput": 3}})
			again, err := formula.Compile(e.String(), scope)
			require.NoError(t, err)
			assert.Equal(t, e.Unit(), again.Unit())
			assert.Equal(t, e.Refs(), again.Refs())
		} else {
			assert.NotEmpty(t, err.Error())
		}
		if c, err := formula.CompileClaim(text, scope); err == nil {
			assert.Len(t, c.Terms, len(c.Operators)+1)
			c.Holds(make([]float64, len(c.Terms)))
		}
	})
}
