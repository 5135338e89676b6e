package netem_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/netem"
)

func TestLossByTime(t *testing.T) {
	windows := []netem.Window{{10 * ms, 20 * ms, 1}, {20 * ms, 30 * ms, 0.25}, {50 * ms, 60 * ms, 1}}
	const origin = clock.Time(7e9)
	for _, every := range []time.Duration{0, 60 * ms, 100 * ms} {
		model := netem.ByTime{Windows: windows, Every: every}
		require.NoError(t, model.Validate())
		l := model.Start(origin, sources(1)("loss"))
		lost, drawn := 0, 0
		for i := range 4_000_000 {
			since := time.Duration(i) * 100 * time.Nanosecond
			got := l(origin.Add(since), 100)
			if every > 0 {
				since %= every
			}
			switch {
			case since >= 20*ms && since < 30*ms:
				drawn++
				if got {
					lost++
				}
			default:
				want := since >= 10*ms && since < 20*ms || since >= 50*ms && since < 60*ms
				if got != want {
					t.Fatalf("every %v: %v after the origin: %v", every, since, got)
				}
			}
		}
		within(t, lost, drawn, 0.25, "in the second window")
	}
	for name, bad := range map[string]netem.ByTime{
		"empty window": {Windows: []netem.Window{{5, 5, 1}}},
		"overlap":      {Windows: []netem.Window{{0, 5, 1}, {4, 6, 1}}},
		"share":        {Windows: []netem.Window{{0, 5, 2}}},
		"too soon":     {Windows: []netem.Window{{0, 5, 1}}, Every: 4},
	} {
		require.ErrorIs(t, bad.Validate(), netem.ErrConfig, name)
	}
}

// mahimahi's mm-onoff with fixed times: the link is on first, and then off at the same phase of
// each period, however long it was idle.
func TestOnOffFixedTimes(t *testing.T) {
	const origin = clock.Time(3e9)
	l := netem.OnOff{On: 700 * ms, Off: 300 * ms}.Start(origin, sources(1)("loss"))
	for _, at := range []time.Duration{
		0, 699 * ms, 700 * ms, 999 * ms, time.Second, 1699 * ms, 1700 * ms, time.Hour,
		time.Hour + 800*ms, 1000*time.Hour + 999*ms, 1001 * time.Hour,
	} {
		assert.Equal(t, at%time.Second >= 700*ms, l(origin.Add(at), 1), at)
	}
	always := netem.OnOff{Off: time.Second}.Start(origin, sources(1)("loss"))
	assert.True(t, always(origin, 1) && always(origin.Add(time.Hour), 1))
	never := netem.OnOff{On: time.Second}.Start(origin, sources(1)("loss"))
	assert.False(t, never(origin, 1) || never(origin.Add(time.Hour), 1))
	for _, bad := range []netem.OnOff{{}, {On: -1, Off: 1}, {On: 1 << 62}} {
		require.ErrorIs(t, bad.Validate(), netem.ErrConfig)
	}
}

// With Poisson switching, the length of each state is exponentially distributed: its mean is the
// configured one, and the largest distance between the empirical distribution and 1-e^(-t/mean) is
// within the bound of Kolmogorov and Smirnov, 1.95/√n for one chance in a thousand.
func TestOnOffPoisson(t *testing.T) {
	model := netem.OnOff{On: 20 * ms, Off: 5 * ms, Poisson: true}
	l := model.Start(0, sources(4)("loss"))
	const step = 10 * time.Microsecond
	lasted := map[bool][]float64{}
	was, since, off := false, clock.Time(0), 0
	const n = 10_000_000
	for i := range n {
		now := clock.Time(1).Add(time.Duration(i) * step)
		lost := l(now, 1)
		if lost {
			off++
		}
		if lost != was {
			lasted[was] = append(lasted[was], float64(now-since))
			was, since = lost, now
		}
	}
	// A state of mean m has the variance m². So the share of time has the standard deviation
	// √(2·on²·off²/((on+off)³·total)), which is 0.0036 here.
	assert.InDelta(t, model.Mean(), float64(off)/n, 0.01)
	for state, mean := range map[bool]float64{false: 20e6, true: 5e6} {
		list := lasted[state]
		slices.Sort(list)
		sum, most := 0.0, 0.0
		for i, d := range list {
			sum += d
			want := 1 - math.Exp(-d/mean)
			most = max(most, math.Abs(want-float64(i)/float64(len(list))))
		}
		count := float64(len(list))
		assert.InDelta(t, mean, sum/count, 4*mean/math.Sqrt(count)+float64(step), "lost: %v", state)
		assert.Less(t, most, 1.95/math.Sqrt(count)+float64(step)/mean, "lost: %v", state)
	}
}

// After a long idle time, the link is on with the probability of its share of time.
func TestOnOffAfterIdleTime(t *testing.T) {
	off := 0
	const n = 20_000
	l := netem.OnOff{On: 3 * ms, Off: ms, Poisson: true}.Start(0, sources(5)("loss"))
	for i := range n {
		if l(clock.Time(1).Add(time.Duration(i)*time.Hour), 1) {
			off++
		}
	}
	within(t, off, n, 0.25, "off")
}

// ByteLoss numbers bytes from 0: with packets of 100 bytes, byte 250 is in the third packet.
func TestLossOfBytes(t *testing.T) {
	l := netem.ByteLoss{250, 0, 399, 400, 450, 1000}.Start(0, nil)
	var lost []int
	for i := range 12 {
		if l(1, 100) {
			lost = append(lost, i)
		}
	}
	assert.Equal(t, []int{0, 2, 3, 4, 10}, lost)
}

// Salsano, Ludovici and Ordine: the share of each state equals the chain's stationary distribution.
// Bursts, in states 2 and 3, end with p31 in state 3. A loss in state 4 is isolated.
func TestFourStates(t *testing.T) {
	testenv.NeedNoRace(t)
	const n = 2_000_000
	for _, f := range []netem.FourStates{
		{P13: 0.01, P31: 0.1, P32: 0.2, P23: 0.3, P14: 0.005},
		{P13: 0.05, P31: 0.5},
		{P13: 0.02, P31: 0.2, P32: 0.3, P23: 0.6},
		{P13: 0.02, P31: 0.2, P32: 0.5, P23: 0.05},
		{P14: 0.1},
		{P13: 0.1, P31: 0.9, P23: 1}, // Bernoulli loss: tc's defaults for the omitted parameters
	} {
		require.NoError(t, f.Validate())
		lost := draws(f, 6, n)
		// Successive states are correlated, so the variance is larger than a binomial's, by a
		// factor below 20 here.
		p := f.Mean()
		assert.InDelta(t, p, float64(count(lost))/n, 4*math.Sqrt(20*p*(1-p)/n), "%+v", f)
		if f.P14 > 0 && f.P13 == 0 {
			for i := 1; i < n; i++ {
				if lost[i] && lost[i-1] {
					t.Fatal("more than a single loss")
				}
			}
		}
		if f.P14 == 0 {
			after, again := 0, 0
			for i := 1; i < n; i++ {
				if lost[i-1] {
					after++
					if lost[i] {
						again++
					}
				}
			}
			within(t, again, after, 1-f.P31-f.P32, "a loss after a loss")
		}
	}
	b := netem.FourStates{P13: 0.1, P31: 0.9, P23: 1}
	assert.InDelta(t, 0.1, b.Mean(), 1e-12)
	assert.InDelta(t, 1, netem.FourStates{P13: 0.1}.Mean(), 1e-12, "the burst never ends")
	assert.Zero(t, netem.FourStates{P31: 0.1}.Mean())
	assert.Zero(t, netem.FourStates{P13: 0.1, P31: 0.1, P32: 0.1}.Mean(), "it ends in state 2")
	assert.InDelta(t, 0.25, netem.FourStates{P13: 1, P32: 0.3, P23: 0.1}.Mean(), 1e-12)
	for name, bad := range map[string]netem.FourStates{
		"share": {P13: 2}, "out of 1": {P13: 0.6, P14: 0.6}, "out of 3": {P31: 0.6, P32: 0.6},
	} {
		require.ErrorIs(t, bad.Validate(), netem.ErrConfig, name)
	}
}
