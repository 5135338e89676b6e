package play

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/netem"
)

// A record tells the same story as the numbers.
func TestARecordAddsUp(t *testing.T) {
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
		assert.InDelta(t, v[result.DataSent], data, 2, "what is on the access wire has not come")
		last := f.Progress[len(f.Progress)-1]
		assert.InDelta(t, v[result.Delivered], last.Value, 0)
		end := f.Samples[len(f.Samples)-1]
		assert.InDelta(t, v[result.Retransmits], float64(end.Retransmits), 0)
	}
	assert.InDelta(t, total, all, 0)
}

// What exceeds the bounds is thinned: sums stay, what is rare stays, and the record says so.
func TestALongRecordIsThinned(t *testing.T) {
	if quick() {
		t.Skip("a few seconds")
	}
	c := cell("cubic", 200)
	c.Path.Down.Rate, c.Path.Up.Rate = netem.BitsPerSecond(300e6), netem.BitsPerSecond(300e6)
	c.Duration = 15 * time.Second
	got, r := mustRecord(t, c)
	require.Len(t, r.Notes, 3)
	f, down := &r.Flows[0], &r.Links[0]
	assert.LessOrEqual(t, len(f.Samples), maxSamples)
	assert.LessOrEqual(t, len(f.Segments), maxSegments)
	assert.LessOrEqual(t, len(f.Progress), maxPoints)
	assert.LessOrEqual(t, len(down.Events), maxEvents)
	assert.Greater(t, len(down.Events), maxEvents/8)
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
	assert.InEpsilon(t, got.Whole[result.Utilisation]*300e6*15/8, bytes, .001)
	assert.InDelta(t, got.Whole[result.QueueDrops], drops, 0)
	again := 0
	for _, s := range f.Segments {
		if s.Again {
			again++
		}
	}
	assert.InDelta(t, got.Flows[0].Values[result.Retransmits], again, 0)
	// As fine in its second half as in its first.
	half := 0
	for _, s := range f.Samples {
		if s.At < c.Duration/2 {
			half++
		}
	}
	assert.InDelta(t, .5, float64(half)/float64(len(f.Samples)), .2)
}

func TestThinner(t *testing.T) {
	sum := func(a *int, b int) (int, bool) { return *a + b, true }
	for _, n := range []int{1, 7, 8, 9, 100, 1000} {
		l := thinner[int]{limit: 8, merge: sum}
		for i := range n {
			l.add(1, uint64(i))
			require.LessOrEqual(t, len(l.rows), 8)
		}
		total := 0
		for _, v := range together(&l) {
			total += v
		}
		assert.Equal(t, n, total)
	}
	never := thinner[int]{limit: 8, merge: func(_ *int, b int) (int, bool) { return b, false }}
	for i := range 1000 {
		never.add(i, uint64(i))
		require.LessOrEqual(t, len(never.rows), 8)
	}
	rows := together(&never)
	assert.Equal(t, 999, rows[len(rows)-1])
	assert.True(t, slices.IsSorted(rows))
	twins := thinner[int]{limit: 8, merge: sum, same: func(a, b *int) bool { return *b == 0 }}
	for i, v := range []int{1, 0, 0, 1, 0} {
		twins.add(v, uint64(i))
	}
	assert.Equal(t, []int{1, 1}, together(&twins))
}

func TestHistogram(t *testing.T) {
	var h histogram
	assert.Zero(t, h.mean())
	for i := range 10_000 {
		h.add(time.Duration(i+1) * 10 * time.Microsecond)
	}
	h.add(-1)
	assert.InEpsilon(t, .05, h.mean().Seconds(), .001)
	for _, share := range []float64{.05, .5, .95, .99} {
		assert.InEpsilon(t, share*.1, h.percentile(share).Seconds(), .001)
	}
	assert.Equal(t, time.Duration(0), h.percentile(0))
	assert.InEpsilon(t, .1, h.percentile(1).Seconds(), .001)
	assert.Equal(t, 100*ms, h.most)
	assert.Zero(t, h.least)
}

// What is damaged is nobody's, or whoever's it says; it harms nothing.
func TestParse(t *testing.T) {
	for n := range 64 {
		junk := make([]byte, n)
		for i := range junk {
			junk[i] = 0xff
		}
		if n > ipSource {
			junk[ipSource] = ourNetwork
		}
		p := parse(junk, 3)
		assert.Equal(t, -1, p.flow)
		if n > 11 {
			junk[0], junk[9] = 0x4f, protocolTCP
		}
		if n >= ipMinimum {
			junk[ipSource+1], junk[ipSource+2] = byte(rightSide), 2
			p = parse(junk, 3)
			assert.Equal(t, 2, p.flow)
			assert.Equal(t, rightSide, p.from)
		}
	}
}
