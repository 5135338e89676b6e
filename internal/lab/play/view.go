package play

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// view is what is seen of a sender: its round trips, and its congestion window over time.
type view struct {
	rtt     histogram
	samples uint64 // of the round trip, that were seen

	cwnd, cwndMost int
	cwndSince      clock.Time // never: there is no window yet
	cwndArea       float64    // bytes times nanoseconds
	cwndTime       time.Duration
}

// sampled takes a sample of the sender's connection and reports whether it has a measurement of
// the round trip that no other had.
func (v *view) sampled(s *tcp.Sample) (fresh bool) {
	if fresh = s.RTTSamples != v.samples; fresh {
		v.samples = s.RTTSamples
		v.rtt.add(s.LatestRTT)
	}
	if s.Cwnd != v.cwnd || v.cwndSince == clock.Never {
		v.settle(s.Time)
		v.cwnd, v.cwndSince = s.Cwnd, s.Time
		v.cwndMost = max(v.cwndMost, s.Cwnd)
	}
	return fresh
}

// settle adds up the window so far.
func (v *view) settle(now clock.Time) {
	if v.cwndSince == clock.Never {
		return
	}
	d := now.Sub(v.cwndSince)
	v.cwndArea += float64(float64(v.cwnd) * float64(d))
	v.cwndTime += d
	v.cwndSince = now
}

// warm forgets what was seen so far, but for the window.
func (v *view) warm(now clock.Time) {
	v.settle(now)
	v.rtt, v.cwndArea, v.cwndTime = histogram{}, 0, 0
}
