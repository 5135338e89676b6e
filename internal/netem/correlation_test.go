package netem_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/netem"
)

// A correlation does not change how many packets are affected. With the kernel's arithmetic, `loss
// 0.3% 25%` would lose no packets and `loss 25% 25%` 16.7 %.
func TestCorrelationKeepsTheShare(t *testing.T) {
	for _, c := range []netem.CorrelatedLoss{
		{Share: 0.003, Correlation: 0.25},
		{Share: 0.05, Correlation: 0.25},
		{Share: 0.25, Correlation: 0.25},
		{Share: 0.5, Correlation: 0.9},
	} {
		const n = 400_000
		l := c.Start(0, sources(1)("loss"))
		lost, pairs, before := 0.0, 0.0, false
		for range n {
			now := l(0, 0)
			if now {
				lost++
			}
			if now && before {
				pairs++
			}
			before = now
		}
		p := lost / n
		assert.InEpsilon(t, c.Share, p, 0.1, "%+v", c)
		correlation := (pairs/n - p*p) / (p * (1 - p))
		assert.InDelta(t, c.Correlation, correlation, 0.04, "%+v", c)
	}
	require.ErrorIs(t, netem.CorrelatedLoss{Share: 0.1, Correlation: 1}.Validate(), netem.ErrConfig)
}

func TestJitterCorrelation(t *testing.T) {
	list := delays(t, netem.Config{
		Delay: 50 * time.Millisecond, Jitter: netem.NormalJitter(5 * time.Millisecond),
		Correlation: netem.Correlation{Jitter: 0.6},
	}, many)
	mean, sd := moments(list)
	assert.InEpsilon(t, 50e6, mean, 0.005)
	assert.InEpsilon(t, 5e6, sd, 0.03)
	sum := 0.0
	for i := 1; i < len(list); i++ {
		sum += (float64(list[i]) - mean) * (float64(list[i-1]) - mean)
	}
	assert.InDelta(t, 0.6, sum/float64(many)/sd/sd, 0.02)
}

// tc-netem(8): with `reorder 100% gap 5`, every fifth packet is sent at once.
func TestReorderingWithAGap(t *testing.T) {
	l := newLink(t, netem.Config{
		Delay: 10 * time.Millisecond, Reorder: netem.Reorder{Share: 1, Gap: 5},
	})
	for i := range uint64(20) {
		put(l, 1, i, 40)
	}
	var first []uint64
	for {
		_, tag, ok := l.Output(1)
		if !ok {
			break
		}
		first = append(first, tag)
	}
	assert.Equal(t, []uint64{4, 9, 14, 19}, first)
	assert.Equal(t, uint64(16), l.Counters().Delayed)
}

// Packets inside the link remain when its configuration changes: none is lost, and each is counted
// once.
func TestChange(t *testing.T) {
	l := newLink(t, netem.Config{
		Rate: netem.BitsPerSecond(8000), Queue: netem.DropTail{}, Delay: time.Second,
	})
	for i := range uint64(10) {
		put(l, 1, i, 1000) // each packet takes a second
	}
	l.Advance(clock.Time(1).Add(2500 * time.Millisecond))
	now := clock.Time(1).Add(2500 * time.Millisecond)
	require.NoError(t, l.Change(now, netem.Config{Delay: 100 * time.Millisecond}, sources(1)))
	list := drain(l, now)
	require.Len(t, list, 10)
	assert.Equal(t, clock.Time(1).Add(3*time.Second), list[9].at,
		"was on the link: keeps the old delay")
	assert.Equal(t, now.Add(100*time.Millisecond), list[1].at, "waited: uses the new delay")
	assert.Equal(t, uint64(10), l.Counters().In)
	assert.Equal(t, uint64(10), l.Counters().Out)
	require.ErrorIs(t, l.Change(now, netem.Config{Duplicate: 2}, sources(1)), netem.ErrConfig)

	require.NoError(t, l.Change(now, netem.Config{
		Rate: netem.BitsPerSecond(8000), Queue: netem.DropTail{Packets: 3},
	}, sources(1)))
	for i := range uint64(5) {
		put(l, now.Add(2*time.Second), i, 1000)
	}
	assert.Equal(t, uint64(1), l.Counters().QueueDropped)
	l.Clear()
	assert.Equal(t, netem.Counters{In: 4, InBytes: 4000}, l.Counters())
	assert.Len(t, drain(l, now.Add(2*time.Second)), 4)
	c := l.Counters()
	assert.Equal(t, c.In, c.Out)
	l.Release()
}
