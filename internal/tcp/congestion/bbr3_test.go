package congestion

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// bbr3On runs a bbr3 over its own bottleneck and records its states.
type bbr3On struct {
	*bbr3
	*bottleneck
	f      *flow
	states []bbr3State
}

func newBBR3On(t *testing.T, rate float64, buffer int, rtt time.Duration) *bbr3On {
	t.Helper()
	n := newBottleneck(rate, buffer)
	f := n.add(t, "bbr3", rtt, 0)
	x := &bbr3On{bbr3: f.c.(*bbr3), bottleneck: n, f: f}
	f.watch = func(*Ack) {
		if k := len(x.states); k == 0 || x.states[k-1] != x.state {
			x.states = append(x.states, x.state)
		}
	}
	return x
}

// until runs in small steps until a condition holds.
func (x *bbr3On) until(t *testing.T, limit time.Duration, cond func() bool) {
	t.Helper()
	for end := x.now.Add(limit); !cond(); {
		require.Less(t, x.now, end, "states %v", x.states)
		x.run(100 * time.Microsecond)
	}
}

// TestBBR3FindsThePath checks that Startup ends at the plateau, Drain empties the queue, and the
// model has the link's rate and the empty path's round trip.
func TestBBR3FindsThePath(t *testing.T) {
	for _, p := range []struct {
		rate float64
		rtt  time.Duration
	}{{1e6, 40 * time.Millisecond}, {10e6, 20 * time.Millisecond}, {10e6, 100 * time.Millisecond}, {50e6, 2 * time.Millisecond}} {
		x := newBBR3On(t, p.rate, 1<<30, p.rtt)
		x.until(t, 5*time.Second, func() bool { return x.state != bbr3Startup })
		assert.True(t, x.full.reached)
		assert.InEpsilon(t, p.rate, x.model.maxBW, 0.05, "%+v", p)
		x.until(t, 2*time.Second, func() bool { return x.state == bbr3Cruise })
		require.Equal(t, []bbr3State{bbr3Startup, bbr3Drain}, x.states[:2])
		bdp := p.rate * p.rtt.Seconds()
		assert.LessOrEqual(t, float64(x.f.inFlight), max(bdp*1.05, x.budget(0)), "the queue is drained")
		got := x.goodput(4 * time.Second)[0]
		assert.InEpsilon(t, p.rate, x.model.maxBW, 0.02, "%+v", p)
		assert.InEpsilon(t, p.rtt, x.rtt.min, 0.05)
		assert.Greater(t, got, 0.95*p.rate, "%+v", p)
		assert.Zero(t, x.f.drops)
		assert.Less(t, x.f.srtt, 2*p.rtt, "the queue is only a probe's")
		t.Logf("%+v: %.2f MB/s, bandwidth %.2f, min %v, srtt %v", p, got/1e6, x.model.maxBW/1e6, x.rtt.min,
			x.f.srtt)
	}
}

// TestBBR3Cycle checks the order of ProbeBW's four states.
func TestBBR3Cycle(t *testing.T) {
	x := newBBR3On(t, 10e6, 1<<30, 50*time.Millisecond)
	x.run(4500 * time.Millisecond)
	i := slices.Index(x.states, bbr3Cruise)
	require.Positive(t, i)
	require.GreaterOrEqual(t, len(x.states), i+4, "%v", x.states)
	assert.Equal(t, []bbr3State{bbr3Cruise, bbr3Refill, bbr3Up, bbr3Down}, x.states[i:i+4])
}

// TestBBR3ProbeRTT checks that after five seconds without a new minimum RTT the flow reduces its
// data in flight to half of the path for 200 ms and then restores it.
func TestBBR3ProbeRTT(t *testing.T) {
	x := newBBR3On(t, 10e6, 1<<30, 40*time.Millisecond)
	x.until(t, 11*time.Second, func() bool { return x.state == bbr3ProbeRTT })
	from, before := x.now, x.saved
	assert.Less(t, x.cwnd, 0.6*before)
	assert.InEpsilon(t, bbr3ProbeRTTGain, x.gain, 1e-9)
	bw := x.model.maxBW
	x.until(t, time.Second, func() bool { return x.state != bbr3ProbeRTT })
	took := x.now.Sub(from)
	assert.Greater(t, took, bbrProbeRTTTime)
	assert.Less(t, took, 400*time.Millisecond)
	assert.Equal(t, bbr3Cruise, x.state)
	assert.InEpsilon(t, 40*time.Millisecond, x.rtt.min, 0.03)
	assert.InEpsilon(t, bw, x.model.maxBW, 0.01, "the low rates of ProbeRTT do not count")
	x.run(200 * time.Millisecond)
	assert.InEpsilon(t, before, x.cwnd, 0.15, "the window is restored")
}

// TestBBR3IsNotDrivenByLoss checks that random loss below the threshold costs little throughput,
// while Reno falls far below the path's rate.
func TestBBR3IsNotDrivenByLoss(t *testing.T) {
	rates := map[string]float64{}
	for _, name := range []string{"bbr3", "reno", "cubic"} {
		b := newBottleneck(10e6, 400000)
		b.loss = 0.01
		b.add(t, name, 40*time.Millisecond, 0)
		b.run(2 * time.Second)
		rates[name] = b.goodput(10 * time.Second)[0]
	}
	t.Logf("1 %% loss: %.2f, %.2f, %.2f MB/s", rates["bbr3"]/1e6, rates["reno"]/1e6, rates["cubic"]/1e6)
	assert.Greater(t, rates["bbr3"], 0.7*10e6)
	assert.Greater(t, rates["bbr3"], 5*rates["reno"])
}

// TestBBR3ShallowBuffer checks that a buffer of a tenth of the path bounds the long-term model, and
// that the link stays full at a low loss rate.
func TestBBR3ShallowBuffer(t *testing.T) {
	x := newBBR3On(t, 10e6, 40000, 40*time.Millisecond)
	x.run(3 * time.Second)
	drops, sent := x.f.drops, x.f.sent
	got := x.goodput(20 * time.Second)[0]
	loss := float64(x.f.drops-drops) / float64(x.f.sent-sent)
	t.Logf("%.2f MB/s, %.2f %% lost, inflight bound %.0f", got/1e6, 100*loss, x.model.inflightLong)
	assert.False(t, math.IsInf(x.model.inflightLong, 1))
	assert.Greater(t, got, 0.85*10e6)
	assert.Less(t, loss, 0.02)
}

// TestBBR3StartupEndsByLoss checks that Startup ends after six gaps and more than 2 % loss in a
// round of recovery.
func TestBBR3StartupEndsByLoss(t *testing.T) {
	x := newBBR3On(t, 10e6, 60000, 40*time.Millisecond)
	x.run(time.Second)
	require.GreaterOrEqual(t, len(x.states), 2)
	assert.Equal(t, []bbr3State{bbr3Startup, bbr3Drain}, x.states[:2])
	assert.False(t, math.IsInf(x.model.inflightLong, 1), "the loss bounds the model")
}

func TestBBR3BandwidthChanges(t *testing.T) {
	x := newBBR3On(t, 2e6, 300000, 40*time.Millisecond)
	x.run(4 * time.Second)
	x.bottleneck.rate = 20e6
	x.run(8 * time.Second)
	assert.InEpsilon(t, 20e6, x.model.maxBW, 0.1, "a few probes find ten times the rate")
	x.bottleneck.rate = 2e6
	x.run(20 * time.Second)
	assert.InEpsilon(t, 2e6, x.model.maxBW, 0.1, "the model follows a tenth of the rate")
	assert.Greater(t, x.goodput(5 * time.Second)[0], 0.9*2e6)
}

// TestBBR3ApplicationLimited checks that application-limited samples do not lower the path's
// estimate, and that Startup waits for full ones.
func TestBBR3ApplicationLimited(t *testing.T) {
	x := newBBR3On(t, 10e6, 1<<20, 40*time.Millisecond)
	n := uint64(0)
	x.f.budget = func(now clock.Time) bool {
		n = uint64(now.Sub(x.f.start).Seconds() * 500) // half a megabyte per second
		return x.f.sent < n
	}
	x.run(3 * time.Second)
	assert.Equal(t, bbr3Startup, x.state)
	x.f.budget = func(clock.Time) bool { return true }
	x.run(2 * time.Second)
	assert.InEpsilon(t, 10e6, x.model.maxBW, 0.05)
	bw := x.model.maxBW
	x.f.budget = func(now clock.Time) bool { return false }
	x.run(20 * time.Second)
	x.f.budget = func(clock.Time) bool { return true }
	x.run(100 * time.Millisecond)
	assert.NotEqual(t, bbr3ProbeRTT, x.state, "an idle path needs no ProbeRTT")
	assert.InEpsilon(t, bw, x.model.maxBW, 0.05, "the model keeps the rate")
}

func TestBBR3Shares(t *testing.T) {
	b := newBottleneck(10e6, 400000)
	b.add(t, "bbr3", 40*time.Millisecond, 0)
	b.add(t, "bbr3", 40*time.Millisecond, 3*time.Second)
	b.run(15 * time.Second)
	got := b.goodput(15 * time.Second)
	t.Logf("%.2f + %.2f MB/s, fairness %.3f", got[0]/1e6, got[1]/1e6, fairness(got))
	assert.Greater(t, fairness(got), 0.9)
	assert.Greater(t, got[0]+got[1], 0.9*10e6)
}

// TestBBR3Spurious checks that a spurious loss restores the model and the state.
func TestBBR3Spurious(t *testing.T) {
	x := newBBR3On(t, 10e6, 1<<30, 40*time.Millisecond)
	x.until(t, 6*time.Second, func() bool { return x.state == bbr3Up && x.probe.phase == bbr3Feedback })
	cwnd, short := x.cwnd, x.model.inflightShort
	lose := func(seq uint64) {
		x.OnSegmentLost(&LostSegment{
			Now: x.now, Seq: seq, Size: 1000, TxInFlight: x.f.inFlight, LostSince: x.f.inFlight / 10,
			TotalDelivered: x.f.acked,
		})
	}
	lose(1)
	assert.Equal(t, bbr3Down, x.state, "10 % loss ends the probe")
	assert.False(t, math.IsInf(x.model.inflightLong, 1))
	x.OnLoss(&Loss{Now: x.now, Kind: Detected, FlightSize: x.f.inFlight, MSS: simMSS})
	x.OnExit(&Exit{Now: x.now, MSS: simMSS, Spurious: true})
	assert.Equal(t, bbr3Refill, x.state, "the probe is repeated")
	assert.True(t, math.IsInf(x.model.inflightLong, 1))
	assert.GreaterOrEqual(t, x.model.inflightShort, short)
	assert.GreaterOrEqual(t, x.cwnd, cwnd)
}

// TestBBR3Timeout checks that the window after a timeout is the data in flight plus one segment,
// and that the old window is restored after recovery.
func TestBBR3Timeout(t *testing.T) {
	x := newBBR3On(t, 10e6, 1<<30, 40*time.Millisecond)
	x.run(2 * time.Second)
	cwnd := x.Cwnd()
	x.OnLoss(&Loss{Now: x.now, Kind: Timeout, FlightSize: cwnd, InFlight: 3000, MSS: simMSS})
	assert.Equal(t, 4000, x.Cwnd())
	x.OnExit(&Exit{Now: x.now, MSS: simMSS})
	assert.Equal(t, cwnd, x.Cwnd())
}

// TestBBR3SubPacketPath checks that four packets keep busy a path that holds less than one.
func TestBBR3SubPacketPath(t *testing.T) {
	x := newBBR3On(t, 100e3, 1<<20, time.Millisecond)
	x.run(3 * time.Second)
	assert.GreaterOrEqual(t, x.Cwnd(), 4*simMSS)
	assert.Greater(t, x.goodput(2 * time.Second)[0], 0.95*100e3)
}
