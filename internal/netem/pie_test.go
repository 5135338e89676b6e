package netem

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// flood puts packets of 1000 bytes into a queue, one every gap. The server takes a millisecond for
// each. flood returns the waits of the packets that were served.
func flood(r *rig, start clock.Time, gap, d time.Duration) (waits []time.Duration) {
	free := start
	for now := start; now.Sub(start) < d; now = now.Add(gap) {
		for n, _ := r.Len(); n > 0 && free <= now; n, _ = r.Len() {
			p := r.Take(free)
			waits = append(waits, free.Sub(p.entered))
			free = free.Add(time.Millisecond)
		}
		free = max(free, now)
		r.offer(now, flow(1, 2, 1000))
	}
	return waits
}

func early(r *rig) (n int) {
	for _, d := range r.drops {
		if d.why == Early {
			n++
		}
	}
	return n
}

// RFC 8033 §4: the controller integrates the distance from the target. So under a constant load the
// wait settles at the target and the drops equal the excess: with a load of 1.25, a fifth of the
// packets are dropped.
func TestPIEHoldsItsTarget(t *testing.T) {
	for _, stamps := range []bool{false, true} {
		for _, target := range []time.Duration{0, 40 * milli} {
			for _, load := range []float64{1.05, 1.25, 2} {
				r := newRig(t, PIE{Packets: 1 << 20, Timestamps: stamps, Target: target}, 8e6)
				gap := time.Duration(float64(milli) / load)
				flood(r, 1, gap, 50*time.Second)
				before := len(r.drops)
				waits := flood(r, clock.Time(1).Add(50*time.Second), gap, 50*time.Second)
				arrived := float64(50*time.Second) / float64(gap)
				assert.InDelta(t, 1-1/load, float64(len(r.drops)-before)/arrived, 0.003, "load %v", load)
				mean := 0.0
				for _, w := range waits {
					mean += float64(w) / float64(len(waits))
				}
				want := 15 * milli
				if target > 0 {
					want = target
				}
				assert.InDelta(t, float64(want), mean, 0.1*float64(want), "load %v", load)
			}
		}
	}
}

// RFC 8033 §4.4: for 150 ms after the queue was idle, PIE drops nothing. The allowance is restored
// only after the congestion is over.
func TestPIEAllowsABurst(t *testing.T) {
	for _, burst := range []time.Duration{0, 60 * milli} {
		want := 150 * milli
		if burst > 0 {
			want = burst
		}
		r := newRig(t, PIE{Packets: 1 << 20, Burst: burst}, 8e6)
		start := clock.Time(1)
		for range 2 {
			before := len(r.drops)
			flood(r, start, 100*time.Microsecond, 2*time.Second)
			require.Greater(t, len(r.drops), before)
			first := r.drops[before].at.Sub(start)
			assert.GreaterOrEqual(t, first, want-15*milli)
			assert.Less(t, first, want+300*milli)
			end := start.Add(2 * time.Second)
			for n, _ := r.Len(); n > 0; n, _ = r.Len() {
				r.Take(end)
			}
			start = end.Add(10 * time.Second) // starts after an idle time
			r.Take(start)
		}
	}
}

// pieWith returns a PIE queue with a given drop probability and wait.
func pieWith(t *testing.T, c PIE, prob float64, wait time.Duration) (*rig, *pie) {
	t.Helper()
	c.Packets = 1 << 20
	r := newRig(t, c, 8e6)
	for range 10 {
		r.put(1, 1000)
	}
	q := r.Queue.(*pie)
	q.dropProb, q.delay, q.burst = prob, wait, 0
	return r, q
}

// RFC 8033 §5.4: PIE never drops before the probabilities since the last drop have added up to
// 0.85, and always at 8.5. In between it drops each packet with the probability.
func TestPIESpacesDrops(t *testing.T) {
	const prob, n = 0.1, 100_000
	r, _ := pieWith(t, PIE{}, prob, 20*milli)
	for range n {
		r.put(1, 1000)
	}
	total := 0
	for i := 1; i < len(r.drops); i++ {
		gap := int(r.drops[i].tag - r.drops[i-1].tag)
		require.GreaterOrEqual(t, gap, 9, "0.85 takes nine packets")
		require.LessOrEqual(t, gap, 85)
		total += gap
	}
	// Eight packets cannot be dropped; after that, the gap is geometric.
	gaps := float64(len(r.drops) - 1)
	sd := math.Sqrt((1-prob)/(prob*prob)) / math.Sqrt(gaps)
	assert.InDelta(t, 8+1/prob, float64(total)/gaps, 4*sd)
}

// RFC 8033 §4.1: PIE never drops if the queue has two packets, or if the wait is low and the
// probability is below a fifth.
func TestPIEKeepsShortQueues(t *testing.T) {
	for _, c := range []struct {
		prob   float64
		wait   time.Duration
		queued int
		drops  bool
	}{
		{1, 100 * milli, 2, false},
		{1, 100 * milli, 3, true},
		{0.19, 7 * milli, 10, false},
		{0.19, 8 * milli, 10, true},
		{0.2, 7 * milli, 10, true},
		{0, time.Second, 10, false},
	} {
		r, _ := pieWith(t, PIE{}, c.prob, c.wait)
		for n, _ := r.Len(); n > c.queued; n, _ = r.Len() {
			r.tagOf(1)
		}
		r.Queue.(*pie).delay = c.wait
		for range 200 {
			before := len(r.drops)
			r.put(1, 1000)
			if len(r.drops) == before {
				r.tagOf(1)
			}
		}
		assert.Equal(t, c.drops, len(r.drops) > 0, "%+v", c)
	}
}

// RFC 8033 §5.1: while the probability is below a tenth, PIE marks ECN-capable packets; above that
// it drops them.
func TestPIEMarks(t *testing.T) {
	for _, c := range []struct {
		prob float64
		ecn  byte
		mark bool
	}{{0.09, 2, true}, {0.09, 0, false}, {0.1, 2, false}} {
		r, _ := pieWith(t, PIE{ECN: true}, c.prob, 20*milli)
		for range 1000 {
			r.offer(1, flow(1, c.ecn, 1000))
		}
		assert.Equal(t, c.mark, r.marks > 0, "%+v", c)
		assert.Equal(t, !c.mark, len(r.drops) > 0, "%+v", c)
	}
}

// RFC 8033 §4.2: the probability changes by alpha·(wait-target) + beta·(wait-last wait). The change
// is scaled down while the probability is small, and is at most 0.02 once it is above a tenth (RFC
// 8033 §5.5). The probability decays by 2 % while nothing waits.
func TestPIEUpdate(t *testing.T) {
	for _, c := range []struct {
		prob         float64
		before, wait time.Duration
		want         float64
	}{
		{0.5, 15 * milli, 15 * milli, 0.5},
		{0.5, 15 * milli, 25 * milli, 0.5 + 0.125*0.010 + 1.25*0.010},
		{0.5, 25 * milli, 20 * milli, 0.5 + 0.125*0.005 - 1.25*0.005},
		{0.05, 15 * milli, 25 * milli, 0.05 + (0.125*0.010+1.25*0.010)/2},
		{0.005, 15 * milli, 25 * milli, 0.005 + (0.125*0.010+1.25*0.010)/8},
		{0.0005, 15 * milli, 25 * milli, 0.0005 + (0.125*0.010+1.25*0.010)/32},
		{0.00005, 15 * milli, 25 * milli, 0.00005 + (0.125*0.010+1.25*0.010)/128},
		{0.000005, 15 * milli, 25 * milli, 0.000005 + (0.125*0.010+1.25*0.010)/512},
		{0, 15 * milli, 25 * milli, (0.125*0.010 + 1.25*0.010) / 2048},
		{0.5, 0, 0, (0.5 - 0.125*0.015) * 0.98},
		{0.5, 15 * milli, time.Second, 0.52},
		{0.99, 15 * milli, time.Second, 1},
		{0.001, 50 * milli, 0, 0},
	} {
		_, q := pieWith(t, PIE{Timestamps: true}, c.prob, c.before)
		if q.sojourn = c.wait; c.wait == 0 {
			for q.ring.n > 0 {
				q.ring.pop()
			}
		}
		q.calculate()
		assert.InDelta(t, c.want, q.dropProb, 1e-12, "%+v", c)
		assert.Equal(t, c.wait, q.delay)
	}
}

// RFC 8033 §4.3, §5.2: the wait is estimated from the departure rate, which equals the server's
// rate, whatever it was before.
func TestPIEMeasuresTheRate(t *testing.T) {
	r := newRig(t, PIE{Packets: 1 << 20}, 8e6)
	q := r.Queue.(*pie)
	now := clock.Time(1)
	for _, took := range []time.Duration{milli, 3 * milli, 200 * time.Microsecond} {
		for range 2000 { // enough for at least 16 measurements
			for n, _ := r.Len(); n < 40; n, _ = r.Len() {
				q.burst = time.Hour
				r.put(now, 700)
			}
			r.Take(now)
			now = now.Add(took)
		}
		_, bytes := r.Len()
		assert.InEpsilon(t, float64(bytes)/700*float64(took), float64(q.wait()), 0.001)
	}
}

// A measurement does not count time in which nothing was sent.
func TestPIEMeasuresNoIdleTime(t *testing.T) {
	r := newRig(t, PIE{Packets: 1 << 20}, 8e6)
	q := r.Queue.(*pie)
	now := clock.Time(1)
	for range 200 {
		for range 20 { // more than DQ_THRESHOLD, but not enough for two measurements
			q.burst = time.Hour
			r.put(now, 1000)
		}
		for n, _ := r.Len(); n > 0; n, _ = r.Len() {
			r.Take(now)
			now = now.Add(milli)
		}
		assert.Nil(t, r.Take(now))
		now = now.Add(time.Second)
	}
	assert.InEpsilon(t, 16.384e6, float64(q.perCycle), 0.01, "16384 bytes at a megabyte a second")
}

// RFC 8033 §5.4: the sum of the probabilities is cleared when the probability becomes zero.
func TestPIEClearsItsSum(t *testing.T) {
	r, q := pieWith(t, PIE{}, 0.1, 20*milli)
	q.accumulated = 8.4
	q.dropProb = 0
	r.put(1, 1000)
	q.dropProb = 0.1
	for range 8 {
		r.put(1, 1000)
	}
	assert.Empty(t, r.drops)
}

// A late update has the same result as a timely one, because the queue has not changed.
func TestPIEUpdatesLate(t *testing.T) {
	_, one := pieWith(t, PIE{}, 0.3, 30*milli)
	_, other := pieWith(t, PIE{}, 0.3, 30*milli)
	for _, q := range []*pie{one, other} {
		q.perCycle = 30 * milli
	}
	end := clock.Time(1).Add(20 * time.Second)
	for now := clock.Time(1); now < end; now = now.Add(700 * time.Microsecond) {
		one.update(now)
	}
	one.update(end)
	other.update(end)
	assert.InDelta(t, one.dropProb, other.dropProb, 0)
	assert.Equal(t, one.updated, other.updated)
	for one.ring.n > 0 {
		one.ring.pop()
	}
	one.update(end.Add(100 * 365 * 24 * time.Hour)) // makes up for an idle century immediately
	assert.Zero(t, one.dropProb)
	assert.Equal(t, one.cfg.Burst, one.burst)
}

func TestPIEInvalidConfigs(t *testing.T) {
	r := newRig(t, PIE{Bytes: 5000}, 8e6)
	for range 10 {
		r.put(1, 1000)
	}
	assert.Len(t, r.drops, 5)
	assert.Zero(t, early(r))
	for name, bad := range map[string]PIE{
		"target": {Target: -1}, "update": {Update: 1}, "alpha": {Alpha: math.NaN()},
		"beta": {Beta: -1}, "burst": {Burst: -1}, "bound": {Packets: -1},
	} {
		assert.ErrorIs(t, bad.Validate(), ErrConfig, name)
	}
}
