package simulation

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/netem"
)

// An application keeps its rate. It catches up after a time in which it could not write.
func TestApplicationRate(t *testing.T) {
	c := cell("reno", 60)
	c.Flows[0].App.Rate = 3e6
	c.Warmup = 5 * time.Second
	v := mustRun(t, c, 0).Flows[0].Values
	assert.InEpsilon(t, 3e6, v[result.Goodput], .002)

	c.Path.Down.Rate = netem.Schedule{Steps: []netem.Step{
		{Rate: 12e6}, {At: 6 * time.Second, Rate: 1e6}, {At: 8 * time.Second, Rate: 12e6},
	}}
	v = mustRun(t, c, 0).Flows[0].Values
	assert.InEpsilon(t, 3e6, v[result.Goodput], .005)
}

// perSecond returns how many bytes of the flow arrived in each second.
func perSecond(t *testing.T, app plan.App, seconds int) (each []float64) {
	t.Helper()
	c := cell("reno", 60)
	c.Flows[0].App = app
	c.Duration = time.Duration(seconds) * time.Second
	_, r := mustRecord(t, c)
	each = make([]float64, seconds)
	before := 0.0
	for _, p := range r.Flows[0].Progress {
		each[min(int(p.At/time.Second), seconds-1)] += p.Value - before
		before = p.Value
	}
	return each
}

func TestOnOffPeriods(t *testing.T) {
	each := perSecond(t, plan.App{Rate: 4e6, On: 2 * time.Second, Off: 2 * time.Second}, 8)
	for i, want := range []float64{480e3, 500e3, 20e3, 0, 480e3, 500e3, 20e3, 0} {
		assert.InDelta(t, want, each[i], 30e3, "second %d", i)
	}
	each = perSecond(t, plan.App{On: 2 * time.Second, Off: 2 * time.Second}, 8)
	full := float64(rate) / 8 * mss / mtu
	assert.InEpsilon(t, full, each[1], .07)
	assert.InEpsilon(t, full, each[5], .06)
	assert.Less(t, each[2], 300e3, "data written before the pause")
	assert.Zero(t, each[3])
}

func TestRequests(t *testing.T) {
	c := cell("reno", 60)
	c.HostJitter = 0
	c.Flows[0].App = plan.App{Size: 2 * mss, Requests: 5, Gap: 300 * ms}
	got, r := mustRecord(t, c)
	require.True(t, got.Finished, got.Note)
	v := got.Flows[0].Values
	assert.InDelta(t, 10*mss, v[result.Delivered], 0)
	// Each request takes one round trip plus two packets' service times. Connecting takes another
	// round trip.
	assert.InDelta(t, (trip + 2*service).Seconds(), v[result.RequestMean], .0003)
	assert.InDelta(t, (6*trip + 5*2*service + 4*300*ms).Seconds(), v[result.Completion], .002)
	require.Len(t, r.Objects, 5)
	for i, o := range r.Objects {
		assert.True(t, o.Done)
		assert.InDelta(t, (trip + 2*service).Seconds(), (o.End - o.Start).Seconds(), .0003)
		if i > 0 {
			assert.Equal(t, 300*ms, o.Start-r.Objects[i-1].End)
		}
	}
	c.Duration = 450 * ms
	got, r = mustRecord(t, c)
	assert.False(t, got.Finished)
	require.Len(t, r.Objects, 2)
	assert.False(t, r.Objects[1].Done)

	c.Duration, c.Flows[0].Upward = smooth, true
	up := mustRun(t, c, 0)
	assert.Equal(t, v, up.Flows[0].Values, "both directions of the path are equal")
}

// Data in the direction up is measured in that direction.
func TestUpward(t *testing.T) {
	testenv.NeedNoRace(t)
	c := cell("reno", 60)
	c.Path.Up, c.Path.Down = c.Path.Down, c.Path.Up
	c.Path.Down.Rate = netem.BitsPerSecond(1e6)
	c.Flows[0].Upward = true
	c.Warmup = 5 * time.Second
	got, r := mustRecord(t, c)
	assert.Greater(t, got.Whole[result.Utilization], .95)
	assert.InDelta(t, rate, r.Rate, 1)
	assert.True(t, r.Flows[0].Upward)
}

// The flow's own MSS determines its largest segment.
func TestSegmentSizeAndThreshold(t *testing.T) {
	c := cell("reno", 60)
	c.Flows[0].MSS, c.Flows[0].Ssthresh = 536, 4
	c.Flows[0].TCP.Recovery.InitialWindow = 1
	c.Duration = 2 * time.Second
	_, r := mustRecord(t, c)
	assert.Equal(t, 536-12, r.Flows[0].MSS)
	first := r.Flows[0].Samples[0]
	assert.Equal(t, 4*524, first.Ssthresh)
	assert.Equal(t, 524, first.Cwnd)

	c.Flows[0].Ssthresh = 0
	_, r = mustRecord(t, c)
	assert.Zero(t, r.Flows[0].Samples[0].Ssthresh, "not set yet")
}
