package congestion

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// cubicAt drives a cubic one round trip after another, a segment at a time.
type cubicAt struct {
	*cubic
	now clock.Time
	rtt time.Duration
}

// afterLoss returns a cubic that has just had a loss at a window of wMax segments.
func afterLoss(t *testing.T, wMax int, rtt time.Duration) *cubicAt {
	t.Helper()
	c, err := New("cubic", Config{
		MSS: 1000, InitialWindow: wMax * 1000, MaxWindow: 1 << 40, Ssthresh: wMax * 1000,
	})
	require.NoError(t, err)
	x := &cubicAt{c.(*cubic), clock.Time(time.Hour), rtt}
	x.OnLoss(&Loss{Now: x.now, Kind: Detected, FlightSize: wMax * 1000, MSS: 1000})
	x.OnExit(&Exit{Now: x.now, MSS: 1000})
	return x
}

// rounds advances the clock by d with a full window, acknowledged in pieces of the given size.
func (x *cubicAt) rounds(d time.Duration, piece int) {
	for end := x.now.Add(d); x.now < end; {
		w := x.Cwnd()
		gap := x.rtt / time.Duration(max(w/piece, 1))
		for left := w; left > 0; left -= piece {
			x.now = x.now.Add(gap)
			x.OnAck(&Ack{
				Now: x.now, Delivered: min(piece, left), MSS: 1000, SRTT: x.rtt, CwndLimited: true,
			})
		}
	}
}

// RFC 9438 §4.2: the window follows figures 1 and 2 in the concave region (RFC 9438 §4.4) and in
// the convex one (RFC 9438 §4.5), with the constants of RFC 9438 §4.1.1.
func TestRFC9438_Curve(t *testing.T) {
	x := afterLoss(t, 10000, 100*time.Millisecond)
	assert.Equal(t, 7000000, x.Cwnd(), "RFC 9438 §4.6: beta is 0.7")
	assert.Equal(t, 7000000, x.Ssthresh())
	x.rounds(time.Millisecond, 10000)
	assert.InDelta(t, math.Cbrt(3000/0.4), x.curve.k, 0.01)
	begin := x.now
	for _, s := range []float64{2, 5, 10, 15, 19.6, 25, 30} {
		x.rounds(time.Duration(s*1e9)-x.now.Sub(begin), 10000)
		want := 0.4*math.Pow(s-x.curve.k, 3) + 10000
		assert.InEpsilon(t, want, float64(x.Cwnd())/1000, 0.01, "after %v s", s)
	}
}

// TestRFC9438_NoGrowthIsLost checks that growth does not depend on how much data each
// acknowledgment covers.
func TestRFC9438_NoGrowthIsLost(t *testing.T) {
	var got []float64
	for _, piece := range []int{10, 100, 1000, 5000} {
		x := afterLoss(t, 1000, 50*time.Millisecond)
		x.rounds(3*time.Second, piece)
		got = append(got, x.cwnd)
	}
	for _, w := range got {
		assert.InEpsilon(t, got[0], w, 0.01)
	}
	assert.Greater(t, got[0], 900000.0)
}

// RFC 9438 §4.3: where the curve is slower than Reno, the window follows W_est. It grows by alpha
// per round trip up to the prior window and by a segment after that.
func TestRFC9438_RenoFriendly(t *testing.T) {
	x := afterLoss(t, 20, time.Millisecond)
	assert.Equal(t, 14000, x.Cwnd())
	trips := 6 / cubicAlpha // from 14 to 20 segments
	x.rounds(time.Duration(trips*1e6), 1000)
	assert.InDelta(t, 20000, x.Cwnd(), 700)
	before := x.Cwnd()
	x.rounds(20*time.Millisecond, 1000)
	assert.InDelta(t, before+20000, x.Cwnd(), 2500, "alpha is 1 past cwnd_prior")
	assert.InDelta(t, 9.0/17, cubicAlpha, 1e-9, "3 (1-beta) / (1+beta)")
}

// RFC 9438 §4.2: an acknowledgment never shrinks the window, and the window grows by at most half
// in a round trip.
func TestRFC9438_TargetBounds(t *testing.T) {
	x := afterLoss(t, 100, 100*time.Millisecond)
	x.rounds(200*time.Millisecond, 1000)
	x.curve.epoch = x.curve.epoch.Add(-time.Hour) // the curve is far above
	w := x.cwnd
	x.OnAck(&Ack{Now: x.now, Delivered: x.Cwnd(), MSS: 1000, SRTT: x.rtt, CwndLimited: true})
	assert.InEpsilon(t, 1.5*w, x.cwnd, 0.01)
	x.curve.wMax, x.curve.wEst = 1000, 1000
	x.curve.epoch = x.now
	x.curve.k = 100 // the curve is far below
	w = x.cwnd
	x.OnAck(&Ack{Now: x.now, Delivered: x.Cwnd(), MSS: 1000, SRTT: x.rtt, CwndLimited: true})
	assert.InDelta(t, w, x.cwnd, 0.1)
}

func TestRFC9438_FastConvergence(t *testing.T) {
	x := afterLoss(t, 1000, 50*time.Millisecond)
	x.rounds(time.Second, 1000)
	w := x.cwnd
	require.Less(t, w, 1000000.0)
	x.OnLoss(&Loss{Now: x.now, Kind: Detected, FlightSize: x.Cwnd(), MSS: 1000})
	assert.InDelta(t, w*0.85, x.curve.wMax, 1, "RFC 9438 §4.7: lost below the last maximum")
	assert.InDelta(t, w*0.7, x.cwnd, 1)
	x.OnExit(&Exit{MSS: 1000})
	x.rounds(20*time.Second, 1000)
	w = x.cwnd
	x.OnLoss(&Loss{Now: x.now, Kind: Echo, FlightSize: x.Cwnd(), MSS: 1000})
	assert.InDelta(t, w, x.curve.wMax, 1, "above it W_max is the window at the loss")
}

// TestCubicWithoutParts disables parts of CUBIC: RFC 9438 §4.7, RFC 9438 §4.3 and RFC 9406.
func TestCubicWithoutParts(t *testing.T) {
	x := afterLoss(t, 1000, 50*time.Millisecond)
	x.without.NoFastConvergence = true
	x.rounds(time.Second, 1000)
	w := x.cwnd
	x.OnLoss(&Loss{Now: x.now, Kind: Detected, FlightSize: x.Cwnd(), MSS: 1000})
	assert.InDelta(t, w, x.curve.wMax, 1, "without fast convergence W_max is the window at the loss")

	friendly, alone := afterLoss(t, 10, 10*time.Millisecond), afterLoss(t, 10, 10*time.Millisecond)
	alone.without.NoRenoFriendly = true
	friendly.rounds(time.Second, 1000)
	alone.rounds(time.Second, 1000)
	assert.Greater(t, friendly.cwnd, 3*alone.cwnd)
	assert.Less(t, alone.cwnd, 10e3, "before K, 1.96 s, the curve is below the last maximum")

	c := Cubic{NoHyStart: true}.New(Config{MSS: 1000, InitialWindow: 10000, MaxWindow: 1 << 40})
	assert.True(t, c.(*cubic).start.done)
	assert.False(t, newCubic(Config{MSS: 1000, InitialWindow: 10000, MaxWindow: 1 << 40}).(*cubic).start.done)
}

func TestRFC9438_Timeout(t *testing.T) {
	x := afterLoss(t, 1000, 50*time.Millisecond)
	x.OnLoss(&Loss{Now: x.now, Kind: Timeout, FlightSize: 700000, MSS: 1000})
	assert.Equal(t, 1000, x.Cwnd(), "RFC 9438 §4.8: as Reno")
	assert.InDelta(t, 490000, x.Ssthresh(), 1, "ssthresh uses CUBIC's beta")
	x.OnLoss(&Loss{Now: x.now, Kind: TimeoutAgain, FlightSize: 700000, MSS: 1000})
	assert.InDelta(t, 490000, x.Ssthresh(), 1)
	x.rounds(500*time.Millisecond, 1000)
	require.GreaterOrEqual(t, x.Cwnd(), 489999)
	assert.Zero(t, x.curve.k, "the curve begins flat")
	assert.InDelta(t, 490000, x.curve.wMax, 1000)
}

// RFC 9438 §4.10: if rising round trips instead of a loss end slow start, the curve begins flat at
// the current window.
func TestRFC9438_4_10_SlowStartWithoutLoss(t *testing.T) {
	c, err := New("cubic", Config{MSS: 1000, InitialWindow: 10000, MaxWindow: 1 << 40})
	require.NoError(t, err)
	x := &cubicAt{c.(*cubic), clock.Time(time.Hour), 80 * time.Millisecond}
	round := func(rtt time.Duration) {
		for i := range 10 {
			x.now = x.now.Add(rtt / 10)
			x.OnAck(&Ack{
				Now: x.now, Delivered: 1000, MSS: 1000, SRTT: rtt, RTT: rtt, Round: i == 9,
				CwndLimited: true,
			})
		}
	}
	round(40 * time.Millisecond)
	round(40 * time.Millisecond)
	for n := 0; !x.start.done; n++ {
		require.Less(t, n, 10)
		round(80 * time.Millisecond)
	}
	assert.Zero(t, x.curve.k)
	assert.InDelta(t, x.ssthresh, x.curve.wMax, 1, "the window at the end of slow start")
	assert.InDelta(t, x.ssthresh, x.curve.prior, 1)
	begin, w := x.curve.epoch, x.curve.wMax
	x.rounds(20*time.Second, 1000)
	past := x.now.Sub(begin).Seconds()
	assert.InEpsilon(t, w+0.4*past*past*past*1000, x.cwnd, 0.05, "the curve is convex from the start")
}

func TestRFC9438_SmallestWindows(t *testing.T) {
	x := afterLoss(t, 2, time.Millisecond)
	x.OnLoss(&Loss{Kind: Detected, FlightSize: 1000, MSS: 1000})
	assert.Equal(t, 2000, x.Cwnd(), "RFC 9438 §4.6: two segments after a loss")
	x.OnLoss(&Loss{Kind: Echo, FlightSize: 1000, MSS: 1000})
	assert.Equal(t, 1000, x.Cwnd(), "one segment after a mark")
	assert.Equal(t, 2000, x.Ssthresh())
}

// RFC 9438 §5.8: the curve does not advance while the window is not in use.
func TestRFC9438_ApplicationLimited(t *testing.T) {
	x := afterLoss(t, 1000, 50*time.Millisecond)
	x.rounds(time.Second, 1000)
	y := afterLoss(t, 1000, 50*time.Millisecond)
	y.rounds(500*time.Millisecond, 1000)
	w := y.cwnd
	for range 100 {
		y.now = y.now.Add(100 * time.Millisecond)
		y.OnAck(&Ack{Now: y.now, Delivered: 1000, MSS: 1000, SRTT: y.rtt})
	}
	y.now = y.now.Add(time.Minute)
	y.OnRestart(&Restart{Now: y.now, Idle: time.Minute, RTO: time.Hour, MSS: 1000})
	assert.InDelta(t, w, y.cwnd, 0.1)
	y.rounds(500*time.Millisecond, 1000)
	assert.InEpsilon(t, x.cwnd, y.cwnd, 0.01)
}

// RFC 9438 §4.9.2: after a spurious loss all of the state is restored, and the curve continues.
func TestRFC9438_Spurious(t *testing.T) {
	x := afterLoss(t, 1000, 50*time.Millisecond)
	x.rounds(2*time.Second, 1000)
	before, cwnd, ssthresh := x.curve, x.cwnd, x.ssthresh
	x.OnLoss(&Loss{Now: x.now, Kind: Detected, FlightSize: x.Cwnd(), MSS: 1000})
	require.NotEqual(t, before, x.curve)
	x.OnExit(&Exit{Spurious: true, MSS: 1000})
	assert.Equal(t, before, x.curve)
	assert.InDelta(t, cwnd, x.cwnd, 0.1)
	assert.Equal(t, ssthresh, x.ssthresh)

	x.OnLoss(&Loss{Now: x.now, Kind: Detected, FlightSize: x.Cwnd(), MSS: 1000})
	x.OnExit(&Exit{MSS: 1000})
	x.rounds(time.Minute, 100000)
	later, grown := x.curve, x.cwnd
	x.OnExit(&Exit{Spurious: true, MSS: 1000})
	assert.Equal(t, later, x.curve, "the window is already larger: the curve does not change")
	assert.InDelta(t, grown, x.cwnd, 0.1)
}

// TestConvergence checks that two flows that start at different times share the link with Reno,
// NewReno and CUBIC.
func TestConvergence(t *testing.T) {
	for name, least := range map[string]float64{"reno": 0.95, "newreno": 0.95, "cubic": 0.95} {
		b := newBottleneck(5e6, 100000)
		b.add(t, name, 40*time.Millisecond, 0)
		b.add(t, name, 40*time.Millisecond, 10*time.Second)
		b.run(60 * time.Second)
		got := b.goodput(60 * time.Second)
		assert.Greater(t, fairness(got), least, "%s: %v", name, got)
		assert.Greater(t, got[0]+got[1], 0.85*5e6, "%s uses the link", name)
		t.Logf("%s: %.2f + %.2f MB/s, fairness %.3f", name, got[0]/1e6, got[1]/1e6, fairness(got))
	}
}

// RFC 9438 §5.1: over a short path cubic gets the same rate as Reno.
func TestRFC9438_FriendlyToReno(t *testing.T) {
	b := newBottleneck(5e6, 50000)
	b.add(t, "reno", 10*time.Millisecond, 0)
	b.add(t, "cubic", 10*time.Millisecond, 0)
	b.run(20 * time.Second)
	got := b.goodput(60 * time.Second)
	assert.Greater(t, fairness(got), 0.9, "%v", got)
	t.Logf("reno %.2f, cubic %.2f MB/s", got[0]/1e6, got[1]/1e6)
}

// RFC 9438 §1: over a long fat path cubic restores its window much sooner than Reno.
func TestRFC9438_LongFat(t *testing.T) {
	rate := map[string]float64{}
	for _, name := range []string{"reno", "cubic"} {
		b := newBottleneck(20e6, 400000)
		f := b.add(t, name, 200*time.Millisecond, 0)
		b.run(10 * time.Second)
		rate[name] = b.goodput(30 * time.Second)[0]
		t.Logf("%s: %.1f MB/s, %d episodes", name, rate[name]/1e6, f.losses)
	}
	assert.Greater(t, rate["cubic"], 1.2*rate["reno"])
}
