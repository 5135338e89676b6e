package recovery

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Estimator estimates the round trip, RFC 6298.
type Estimator struct {
	SRTT, rttvar time.Duration // zero SRTT: no sample yet
	RTO          time.Duration // without backoff
	latest       time.Duration
	// What the next sample, which begins anew after a spurious timeout, must not fall below.
	keepSRTT, keepVar time.Duration
	// The minimum over the last one to two windows: RFC 8985 §6.2 step 1 wants a filter that
	// forgets, because routes change.
	min, minBefore time.Duration
	minSince       clock.Time
	samples        uint64
	fresh          bool // one was taken since the last tail probe
}

// minWindow is how long a minimum is believed at least.
const minWindow = 30 * time.Second

// Sample takes one measurement. Share says how many such samples a window of data gives: RFC 7323
// appendix G divides the gains by it, so that a burst of acknowledgments does not erase the past.
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
		// RFC 4015 §3.1 step 11: the path has shown that it may take so long.
		e.SRTT, e.rttvar = max(e.keepSRTT, r), max(e.keepVar, r/2)
		e.keepSRTT, e.keepVar = 0, 0
	default:
		// RFC 6298 §2.3, rttvar first: it is about the old srtt.
		n := time.Duration(min(max(share, 1), 64))
		e.rttvar += ((e.SRTT - r).Abs() - e.rttvar) / (4 * n)
		e.SRTT += (r - e.SRTT) / (8 * n)
	}
	// RFC 6298 §2.3 with the clock's granularity G of a nanosecond; §2.4's lower bound of 1 s
	// is RTOMin's to choose.
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

// Timeout returns the time-out after some doublings (RFC 6298 §5.5).
func (e *Estimator) Timeout(backoff uint8, o *Options) time.Duration {
	d := e.RTO
	for range backoff {
		d = min(2*d, o.RTOMax)
	}
	return min(d, o.RTOMax)
}
