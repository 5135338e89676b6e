package congestion

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// bbrOn runs a bbr over its own bottleneck and records its states.
func bbrOn(t *testing.T, rate float64, buffer int, rtt time.Duration) (
	*bbr, *bottleneck, *flow, *[]bbrState,
) {
	t.Helper()
	n := newBottleneck(rate, buffer)
	f := n.add(t, "bbr", rtt, 0)
	b, states := f.c.(*bbr), &[]bbrState{}
	f.watch = func(*Ack) {
		if k := len(*states); k == 0 || (*states)[k-1] != b.state {
			*states = append(*states, b.state)
		}
	}
	return b, n, f, states
}

// TestBBRFindsThePath checks that Startup ends at the plateau, Drain empties the queue, and the
// model has the link's rate and the empty path's round trip.
func TestBBRFindsThePath(t *testing.T) {
	for _, p := range []struct {
		rate float64
		rtt  time.Duration
	}{{1e6, 40 * time.Millisecond}, {10e6, 20 * time.Millisecond}, {10e6, 100 * time.Millisecond}} {
		b, n, f, states := bbrOn(t, p.rate, 1<<30, p.rtt)
		n.run(3 * time.Second)
		require.Equal(t, []bbrState{bbrStartup, bbrDrain, bbrProbeBW}, *states, "%+v", p)
		assert.InEpsilon(t, p.rate, b.bw.most, 0.02, "%+v", p)
		assert.InEpsilon(t, p.rtt, b.rtt.min, 0.05)
		assert.Greater(t, n.goodput(3 * time.Second)[0], 0.95*p.rate, "%+v", p)
		assert.Zero(t, f.drops)
		assert.Less(t, f.srtt, 2*p.rtt, "the queue is only a probe's")
	}
}

// TestBBRCycle checks the eight phases: the first is faster and the second slower.
func TestBBRCycle(t *testing.T) {
	b, n, f, _ := bbrOn(t, 10e6, 1<<30, 50*time.Millisecond)
	n.run(2 * time.Second)
	require.Equal(t, bbrProbeBW, b.state)
	var gains []float64
	last := -1
	f.watch = func(*Ack) {
		if b.cycle.phase != last {
			gains, last = append(gains, b.pacing), b.cycle.phase
		}
	}
	n.run(2 * time.Second)
	i := slices.Index(gains, 1.25)
	require.GreaterOrEqual(t, i, 0)
	require.GreaterOrEqual(t, len(gains), i+bbrPhases)
	assert.Equal(t, []float64{1.25, 0.75, 1, 1, 1, 1, 1, 1}, gains[i:i+bbrPhases])
}

// TestBBRProbeRTT checks that the window is four segments for 200 ms after ten seconds without a
// new minimum RTT.
func TestBBRProbeRTT(t *testing.T) {
	b, n, f, _ := bbrOn(t, 10e6, 1<<30, 40*time.Millisecond)
	var from, to clock.Time
	least, before := 1<<30, 0.0
	f.watch = func(a *Ack) {
		switch {
		case b.state == bbrProbeRTT && from == clock.Never:
			from, before = a.Now, b.saved
		case b.state == bbrProbeRTT:
			least = min(least, b.Cwnd())
		case from != clock.Never && to == clock.Never:
			to = a.Now
		}
	}
	n.run(14 * time.Second)
	require.NotEqual(t, clock.Never, to)
	assert.Equal(t, bbrMinPipe*simMSS, least)
	assert.Greater(t, to.Sub(from), bbrProbeRTTTime)
	assert.Less(t, to.Sub(from), 400*time.Millisecond)
	assert.InEpsilon(t, 10e6, b.bw.most, 0.02, "the low rates of ProbeRTT do not count")
	assert.InEpsilon(t, before, b.cwnd, 0.15, "the window is restored")
}

// TestBBRRecovery checks BBRModulateCwndForRecovery. In the first round one packet leaves for each
// delivered one, lost data leaves the window, and the end of recovery restores the old window.
func TestBBRRecovery(t *testing.T) {
	b, n, f, _ := bbrOn(t, 10e6, 1<<30, 40*time.Millisecond)
	n.run(2 * time.Second)
	cwnd := b.Cwnd()
	ack := func(lost, inflight int) {
		b.OnAck(&Ack{
			Now: n.now, Delivered: simMSS, InFlight: inflight, Prior: inflight, MSS: simMSS, Lost: lost,
			TotalDelivered: f.acked, PriorDelivered: f.acked - uint64(inflight),
		})
	}
	b.OnLoss(&Loss{Now: n.now, Kind: Detected, FlightSize: 200e3, MSS: simMSS})
	ack(3*simMSS, 150e3)
	assert.Equal(t, 150_000+simMSS, b.Cwnd())
	ack(0, 151e3)
	assert.Equal(t, 151_000+simMSS, b.Cwnd())
	b.OnExit(&Exit{Now: n.now, MSS: simMSS})
	assert.Equal(t, cwnd, b.Cwnd())
	b.OnLoss(&Loss{Now: n.now, Kind: Timeout, FlightSize: cwnd, InFlight: 3000, MSS: simMSS})
	assert.Equal(t, 4000, b.Cwnd())
	b.OnExit(&Exit{Now: n.now, MSS: simMSS, Spurious: true})
	assert.Equal(t, cwnd, b.Cwnd())
}

func TestBBRBandwidthChanges(t *testing.T) {
	b, n, _, _ := bbrOn(t, 2e6, 300000, 40*time.Millisecond)
	n.run(4 * time.Second)
	n.rate = 20e6
	n.run(8 * time.Second)
	assert.InEpsilon(t, 20e6, b.bw.most, 0.1, "a few cycles find ten times the rate")
	n.rate = 2e6
	n.run(5 * time.Second)
	assert.InEpsilon(t, 2e6, b.bw.most, 0.1, "the model follows a tenth of the rate")
}

// TestBBRSubPacketPath checks that four packets keep busy a path that holds less than one.
func TestBBRSubPacketPath(t *testing.T) {
	b, n, _, _ := bbrOn(t, 100e3, 1<<20, time.Millisecond)
	n.run(3 * time.Second)
	assert.GreaterOrEqual(t, b.Cwnd(), bbrMinPipe*simMSS)
	assert.Greater(t, n.goodput(2 * time.Second)[0], 0.95*100e3)
}

// TestBBRQuantum checks the send quantum: one segment below 1.2 Mbit/s, two below 24 Mbit/s, and
// then the data of a millisecond, at most 64 KiB.
func TestBBRQuantum(t *testing.T) {
	b, _, _, _ := bbrOn(t, 1e6, 1<<30, 40*time.Millisecond)
	for rate, want := range map[float64]float64{
		100e3: float64(b.mss), 200e3: float64(2 * b.mss), 10e6: 10e3, 1e9: 64 << 10,
	} {
		b.rate = rate
		assert.InDelta(t, want, b.quantum(), 1, "%.0f bytes/s", rate)
	}
}
