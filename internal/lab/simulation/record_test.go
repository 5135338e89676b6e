package simulation

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/netem"
)

func TestRecordAgreesWithMetrics(t *testing.T) {
	testenv.NeedNoRace(t)
	c := cell("reno", 20)
	addFlow(c, "cubic").Upward = true
	c.Path.Up.Queue = netem.DropTail{Packets: 20}
	c.Path.Down.Loss = netem.UniformLoss(.002)
	got, r := mustRecord(t, c)
	require.Empty(t, r.Notes, "nothing was thinned")
	assert.Equal(t, c.Duration, r.Duration)
	assert.Equal(t, trip, r.RTT)
	drops, lost := 0, 0
	for i, l := range r.Links {
		assert.Equal(t, 20*mtu, l.Limit)
		queued, waiting := 0, 0
		for _, e := range l.Events {
			switch e.Kind {
			case result.Arrival:
				waiting++
			case result.Departure:
				waiting--
				assert.LessOrEqual(t, e.Wait, 21*service)
			case result.Drop:
				if e.Why == "loss" {
					lost++
					continue
				}
				require.Equal(t, "tail", e.Why)
				waiting--
				if i == 0 {
					drops++
				}
			case result.Marked, result.Opportunity:
			}
			queued = e.Queued
			assert.LessOrEqual(t, queued, 21*mtu)
		}
		assert.LessOrEqual(t, waiting, 21)
		assert.True(t, slices.IsSortedFunc(l.Events, func(a, b result.LinkEvent) int {
			return int(a.At - b.At)
		}))
	}
	assert.InDelta(t, got.Whole[result.QueueDrops], drops, 0)
	assert.InDelta(t, got.Whole[result.Losses], lost, 0)
	total := 0.0
	for _, l := range r.Links {
		for _, e := range l.Events {
			if e.Kind == result.Drop {
				total++
			}
		}
	}
	all := 0.0
	for i, f := range r.Flows {
		v := got.Flows[i].Values
		all += v[result.Drops]
		assert.Equal(t, i == 1, f.Upward)
		assert.Equal(t, mss, f.MSS)
		again, data, rtts := 0, 0, 0
		for _, s := range f.Segments {
			if !s.Received && s.Len > 0 {
				data++
				if s.Again {
					again++
				}
			}
		}
		for _, s := range f.Samples {
			if s.RTT > 0 {
				rtts++
				assert.GreaterOrEqual(t, s.RTT.Seconds(), v[result.RTTMin])
				assert.LessOrEqual(t, s.RTT.Seconds(), v[result.RTTMax])
			}
		}
		assert.Greater(t, rtts, 1000)
		assert.InDelta(t, v[result.Retransmits], again, 0)
		assert.InDelta(t, v[result.DataSent], data, 10, "10 ms of access link hold up to ten packets")
		last := f.Progress[len(f.Progress)-1]
		assert.InDelta(t, v[result.Delivered], last.Value, 0)
		end := f.Samples[len(f.Samples)-1]
		assert.InDelta(t, v[result.Retransmits], float64(end.Retransmits), 0)
	}
	assert.InDelta(t, total, all, 0)
}

// Long series are thinned. Sums and rare events are kept, and the record says that it was thinned.
func TestLongRecordIsThinned(t *testing.T) {
	testenv.NeedLong(t)
	c := cell("cubic", 200)
	c.Path.Down.Rate, c.Path.Up.Rate = netem.BitsPerSecond(300e6), netem.BitsPerSecond(300e6)
	c.Duration = 15 * time.Second
	got, r := mustRecord(t, c)
	require.Len(t, r.Notes, 3)
	f, down := &r.Flows[0], &r.Links[0]
	assert.LessOrEqual(t, len(f.Samples), MaxSamples)
	assert.LessOrEqual(t, len(f.Segments), MaxSegments)
	assert.LessOrEqual(t, len(f.Progress), MaxPoints)
	assert.LessOrEqual(t, len(down.Events), MaxEvents)
	assert.Greater(t, len(down.Events), MaxEvents/8)
	var bytes, drops int
	for _, e := range down.Events {
		switch e.Kind {
		case result.Departure:
			bytes += e.Bytes
		case result.Drop:
			drops++
		case result.Arrival, result.Marked, result.Opportunity:
		}
	}
	assert.InEpsilon(t, got.Whole[result.Utilization]*300e6*15/8, bytes, .001)
	assert.InDelta(t, got.Whole[result.QueueDrops], drops, 0)
	again := 0
	for _, s := range f.Segments {
		if s.Again {
			again++
		}
	}
	assert.InDelta(t, got.Flows[0].Values[result.Retransmits], again, 0)
	// The second half has the same resolution as the first.
	half := 0
	for _, s := range f.Samples {
		if s.At < c.Duration/2 {
			half++
		}
	}
	assert.InDelta(t, .5, float64(half)/float64(len(f.Samples)), .2)
}
