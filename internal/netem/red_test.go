package netem

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// holdLength keeps a RED queue at a given length, in packets of 1000 bytes, for a number of
// arrivals. It returns the numbers of the packets that were dropped or marked.
func holdLength(t *testing.T, d RED, length, arrivals int, ecn byte) (r *rig, hits []int) {
	t.Helper()
	r = newRig(t, d, 8_000_000)
	now := clock.Time(1)
	before := 0
	for i := range arrivals {
		now = now.Add(time.Millisecond)
		for n, _ := r.Len(); n > length; n, _ = r.Len() {
			r.Take(now)
		}
		r.offer(now, flow(1, ecn, 1000))
		if hit := len(r.drops) + r.marks; hit > before {
			before = hit
			hits = append(hits, i)
		}
	}
	return r, hits
}

// Floyd and Jacobson 1993 §7: the average is a low-pass filter. After n arrivals at a queue of
// constant length, it has covered 1-(1-w)^n of the distance to that length.
func TestREDAverage(t *testing.T) {
	const length, weight = 50, 0.002
	for _, n := range []int{10, 100, 500, 2000} {
		r, hits := holdLength(t, RED{Min: 60, Max: 70, InPackets: true, Weight: weight}, length,
			length+1+n, 0)
		assert.Empty(t, hits)
		filled := 0.0 // value after the first packets, during which the queue grew
		for k := range length + 1 {
			filled += weight * (float64(k) - filled)
		}
		want := length - (length-filled)*math.Pow(1-weight, float64(n))
		assert.InDelta(t, want, r.Queue.(*red).avg, 0.05, "%d arrivals", n)
	}
}

// Floyd and Jacobson 1993 §11: if the average is at a fraction of the range from Min to Max, RED
// hits a packet with p = MaxP × fraction, corrected by the count since the last hit. So the gaps
// are uniformly distributed from 1 to 1/p-1: their mean is 1/2p, and none is longer. Without the
// correction they would be geometric: unbounded, and with the same mean only at twice the
// probability.
func TestREDGapsAreUniform(t *testing.T) {
	const least, most, maxP = 20, 60, 0.1
	for _, fraction := range []float64{0.25, 0.5, 1 - 1e-9} {
		p := maxP * fraction
		length := least + int(math.Round(fraction*(most-least)))
		d := RED{Min: least, Max: most, InPackets: true, MaxP: maxP, Weight: 1}
		if fraction > 0.9 {
			d.Max++ // if the average were at Max, the gentle slope would begin
			length, p = most, maxP*float64(most-least)/float64(most+1-least)
		}
		_, hits := holdLength(t, d, length, 200_000, 0)
		for hits[0] < 2*length { // skips the hits while the queue grew
			hits = hits[1:]
		}
		longest := int(math.Ceil(1/p - 1))
		counts := make([]int, longest+2)
		for i := 1; i < len(hits); i++ {
			gap := hits[i] - hits[i-1]
			require.LessOrEqual(t, gap, longest, "p %v", p)
			counts[gap]++
		}
		gaps := float64(len(hits) - 1)
		mean := float64(hits[len(hits)-1]-hits[0]) / gaps
		// Gaps are uniform from 1 to 1/p-1, so the deviation of their mean is that range over
		// √(12n).
		assert.InDelta(t, 1/(2*p), mean, 4/p/math.Sqrt(12*gaps)+0.005/p, "p %v", p)
		share := p / (1 - p)
		for gap := 2; gap < longest; gap++ {
			sd := math.Sqrt(gaps * share * (1 - share))
			assert.InDelta(t, gaps*share, float64(counts[gap]), 5*sd,
				"p %v, gap %d", p, gap)
		}
	}
}

// Floyd 2000: the gentle slope rises from MaxP at Max to 1 at twice Max. Without it, all packets
// are dropped from Max on.
func TestREDSlope(t *testing.T) {
	share := func(d RED, length int) float64 {
		d.InPackets, d.Weight = true, 1
		_, hits := holdLength(t, d, length, 50_000, 0)
		return float64(len(hits)) / 50_000
	}
	d := RED{Min: 20, Max: 60, MaxP: 0.1}
	assert.Zero(t, share(d, 19))
	assert.Zero(t, share(d, 20))
	// A uniform gap has the mean 1/2p; above p = ½, at least every second packet is hit.
	assert.InDelta(t, 2*0.05, share(d, 40), 0.005)
	assert.InDelta(t, 2*(0.1+0.9*12/60), share(d, 72), 0.03)
	assert.InDelta(t, 1, share(d, 121), 0.01)
	d.Abrupt = true
	assert.InDelta(t, 2*0.05, share(d, 40), 0.005)
	assert.InDelta(t, 1, share(d, 61), 0.01)
}

// Floyd and Jacobson 1993 §4: while the queue is empty, the average falls as if typical packets had
// arrived: by (1-w)^m, where m is the number that could have left.
func TestREDAverageSinksWhileIdle(t *testing.T) {
	const weight = 0.01
	r, _ := holdLength(t, RED{Min: 60, Max: 70, InPackets: true, Weight: weight, Mean: 1000}, 50,
		2000, 0)
	q := r.Queue.(*red)
	now := clock.Time(1).Add(time.Hour)
	for n, _ := r.Len(); n > 0; n, _ = r.Len() {
		r.Take(now)
	}
	assert.Nil(t, r.Take(now.Add(time.Second)), "the queue is empty")
	before := q.avg
	const m = 120 // number of packets of 1000 bytes at 8 Mbit/s
	r.put(now.Add(m*time.Millisecond), 1000)
	assert.InEpsilon(t, before*math.Pow(1-weight, m), q.avg, 1e-9)
	r.put(now.Add(m*time.Millisecond+time.Second), 1000)
	assert.InEpsilon(t, before*math.Pow(1-weight, m+1)+weight, q.avg, 1e-9,
		"the queue was not idle")
}

// A packet that arrives at an empty queue and is dropped also lowers the average. The next packet
// lowers it only for the time since then.
func TestREDAverageSinksOnce(t *testing.T) {
	r := newRig(t, RED{Min: 60, Max: 70, InPackets: true, Weight: 0.01, Bytes: 500}, 8e6)
	q := r.Queue.(*red)
	q.avg, q.idleSince = 50, 1
	r.put(clock.Time(1).Add(20*milli), 1000) // the packet does not fit
	r.put(clock.Time(1).Add(50*milli), 1000)
	require.Len(t, r.drops, 2)
	assert.InEpsilon(t, 50*math.Pow(0.99, 50), q.avg, 1e-9)
}

// Floyd and Jacobson 1993 §4: below Min the count is reset, so the first packet above Min is hit
// with p itself.
func TestREDCountStartsOver(t *testing.T) {
	r, _ := holdLength(t, RED{Min: 20, Max: 60, InPackets: true, Weight: 1, MaxP: 1e-9}, 30, 100, 0)
	q := r.Queue.(*red)
	assert.Greater(t, q.count, 50)
	for n, _ := r.Len(); n > 5; n, _ = r.Len() {
		r.Take(1e9)
	}
	r.put(1e9, 1000)
	assert.Equal(t, -1, q.count)
}

// RFC 3168 §5: between the thresholds, ECN-capable packets are marked as often as others are
// dropped. Above the thresholds they are dropped, too.
func TestREDMarks(t *testing.T) {
	d := RED{Min: 20, Max: 60, InPackets: true, Weight: 1, ECN: true}
	r, hits := holdLength(t, d, 40, 20_000, 2)
	assert.Empty(t, r.drops)
	assert.Equal(t, len(hits), r.marks)
	assert.InDelta(t, 2*0.05, float64(r.marks)/20_000, 0.005, "the mark rate equals the drop rate")
	r, _ = holdLength(t, d, 40, 20_000, 0)
	assert.Zero(t, r.marks)
	assert.NotEmpty(t, r.drops)
	d.Abrupt = true
	r, _ = holdLength(t, d, 61, 1000, 2)
	marked := r.marks
	assert.Greater(t, len(r.drops), 900)
	assert.Less(t, marked, 50, "on the way up")
}

// RFC 8257 §3.1: a step at a threshold marks all ECN-capable packets above it, and drops the
// others.
func TestREDAsAStep(t *testing.T) {
	d := RED{Min: 20, Max: 21, MaxP: 1, InPackets: true, Weight: 1, ECN: true, MarkAll: true}
	r, _ := holdLength(t, d, 60, 1000, 2)
	assert.Empty(t, r.drops)
	assert.Greater(t, r.marks, 970)
	r, _ = holdLength(t, d, 19, 1000, 2)
	assert.Zero(t, r.marks)
	r, _ = holdLength(t, d, 60, 1000, 0)
	assert.Zero(t, r.marks)
	assert.Greater(t, len(r.drops), 970)
}

func TestREDInBytesAndDefaults(t *testing.T) {
	d := RED{Bytes: 120_000, Weight: 1}.WithDefaults()
	assert.Equal(t, []int{10_000, 30_000}, []int{d.Min, d.Max})
	_, hits := holdLength(t, d, 20, 50_000, 0)
	assert.InDelta(t, 2*0.05, float64(len(hits))/50_000, 0.01, "half way: 20 packets of 1000 bytes")
	r, _ := holdLength(t, RED{Min: 1e6, Max: 2e6, Packets: 5}, 100, 20, 0)
	assert.Len(t, r.drops, 15)
	assert.Equal(t, Tail, r.drops[0].why)
	for name, bad := range map[string]RED{
		"no thresholds": {}, "disorder": {Min: 5, Max: 5}, "probability": {Min: 1, Max: 2, MaxP: 1.5},
		"weight": {Min: 1, Max: 2, Weight: math.NaN()}, "bound": {Min: 1, Max: 2, Bytes: -1},
	} {
		assert.ErrorIs(t, bad.Validate(), ErrConfig, name)
	}
}
