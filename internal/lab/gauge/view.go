package gauge

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// View is what is seen of a sender: its round trips, and its congestion window over time.
type View struct {
	rtt     Histogram
	samples uint64 // of the round trip, that were seen

	cwnd                int
	cwndLeast, cwndMost int
	cwndSince           clock.Time // never: there is no window yet
	cwndArea            float64    // bytes times nanoseconds
	cwndTime            time.Duration
}

// Sampled takes a sample of the sender's connection and reports whether it has a measurement of
// the round trip that no other had.
func (v *View) Sampled(s *tcp.Sample) (fresh bool) {
	if fresh = s.RTTSamples != v.samples; fresh {
		v.samples = s.RTTSamples
		v.rtt.Add(s.LatestRTT)
	}
	first := v.cwndSince == clock.Never
	if s.Cwnd != v.cwnd || first {
		v.settle(s.Time)
		v.cwnd, v.cwndSince = s.Cwnd, s.Time
		if first {
			v.cwndLeast = s.Cwnd
		}
		v.cwndLeast, v.cwndMost = min(v.cwndLeast, s.Cwnd), max(v.cwndMost, s.Cwnd)
	}
	return fresh
}

// settle adds up the window so far.
func (v *View) settle(now clock.Time) {
	if v.cwndSince == clock.Never {
		return
	}
	d := now.Sub(v.cwndSince)
	v.cwndArea += float64(float64(v.cwnd) * float64(d))
	v.cwndTime += d
	v.cwndSince = now
}

// Warm forgets what was seen so far, but for the window.
func (v *View) Warm(now clock.Time) {
	v.settle(now)
	v.rtt, v.cwndArea, v.cwndTime = Histogram{}, 0, 0
	v.cwndLeast, v.cwndMost = v.cwnd, v.cwnd
}

// Cwnd is the congestion window as it was seen last, in bytes.
func (v *View) Cwnd() int { return v.cwnd }

// Result adds what was seen until an instant.
func (v *View) Result(until clock.Time, to result.Values) {
	if h := &v.rtt; h.Count > 0 {
		to[result.RTTMean] = h.Mean().Seconds()
		to[result.RTTMin] = h.Least.Seconds()
		to[result.RTTMax] = h.Most.Seconds()
		to[result.RTTP50] = h.Percentile(.50).Seconds()
		to[result.RTTP95] = h.Percentile(.95).Seconds()
		to[result.RTTP99] = h.Percentile(.99).Seconds()
	}
	if v.cwndSince == clock.Never {
		return
	}
	if until > v.cwndSince {
		v.settle(until)
	}
	if v.cwndTime > 0 {
		to[result.CwndMean] = v.cwndArea / float64(v.cwndTime)
	}
	to[result.CwndMin] = float64(v.cwndLeast)
	to[result.CwndMax] = float64(v.cwndMost)
}
