package recovery

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Estimator estimates the round-trip time (RFC 6298).
type Estimator struct {
	SRTT, rttvar time.Duration // zero SRTT: no sample yet
	RTO          time.Duration // without backoff
	latest       time.Duration
	// Lower bounds for the next sample, which restarts the estimate after a spurious timeout.
	keepSRTT, keepVar time.Duration
	// The minimum over the last one to two windows: RFC 8985 §6.2 step 1 requires a windowed
	// minimum, because routes change.
	min, minBefore time.Duration
	minSince       clock.Time
	samples        uint64
	fresh          bool // a sample was taken since the last tail loss probe
}

// minWindow is the shortest window of the minimum.
const minWindow = 30 * time.Second

// Sample adds a measurement. share is the number of samples in a window of data. RFC 7323 appendix
// G divides the gains by it, so that a burst of acknowledgments does not erase the history.
func (e *Estimator) Sample(now clock.Time, r time.Duration, share int, o *Options) {
	r = max(r, time.Nanosecond)
	e.latest = r
	e.samples++
	e.fresh = true
	e.minimum(now, r)
	switch {
	case e.SRTT == 0:
		e.SRTT, e.rttvar = r, r/2 // RFC 6298 §2.2
	case e.keepSRTT != 0:
		// RFC 4015 §3.1 step 11: the path has shown that a round trip can take this long.
		e.SRTT, e.rttvar = max(e.keepSRTT, r), max(e.keepVar, r/2)
		e.keepSRTT, e.keepVar = 0, 0
	default:
		// RFC 6298 §2.3: rttvar first, because it uses the old SRTT.
		n := time.Duration(min(max(share, 1), 64))
		e.rttvar += ((e.SRTT - r).Abs() - e.rttvar) / (4 * n)
		e.SRTT += (r - e.SRTT) / (8 * n)
	}
	// RFC 6298 §2.3 with a clock granularity G of 1 ns. RTOMin replaces the minimum of §2.4, 1 s.
	e.RTO = min(max(e.SRTT+4*e.rttvar, o.RTOMin), o.RTOMax)
}

func (e *Estimator) minimum(now clock.Time, r time.Duration) {
	if e.minSince == clock.Never || now.Sub(e.minSince) >= minWindow {
		e.minBefore, e.min, e.minSince = e.min, r, now
	}
	e.min = min(e.min, r)
}

// lowest returns the minimum, zero before the first sample.
func (e *Estimator) lowest() time.Duration {
	if e.minBefore != 0 {
		return min(e.min, e.minBefore)
	}
	return e.min
}

// Timeout returns the RTO after a number of doublings (RFC 6298 §5.5).
func (e *Estimator) Timeout(backoff uint8, o *Options) time.Duration {
	d := e.RTO
	for range backoff {
		d = min(2*d, o.RTOMax)
	}
	return min(d, o.RTOMax)
}
