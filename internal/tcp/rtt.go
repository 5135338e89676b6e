package tcp

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// rtt estimates the round trip, RFC 6298.
type rtt struct {
	srtt, rttvar time.Duration // zero srtt: no sample yet
	rto          time.Duration // without backoff
	latest       time.Duration
	// What the estimate must not fall below with its next sample, after a spurious time-out.
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

// sample takes one measurement. Share says how many such samples a window of
// data gives: RFC 7323 appendix G divides the gains by it, lest a burst of
// acknowledgments make the estimate forget everything older than itself.
func (e *rtt) sample(now clock.Time, r time.Duration, share int, o *lossOptions) {
	r = max(r, time.Nanosecond)
	e.latest = r
	e.samples++
	e.fresh = true
	e.minimum(now, r)
	switch {
	case e.srtt == 0:
		e.srtt, e.rttvar = r, r/2 // RFC 6298 §2.2
	case e.keepSRTT != 0:
		// RFC 4015 §3.1 step 11: the path has shown that it may take so long.
		e.srtt, e.rttvar = max(e.keepSRTT, r), max(e.keepVar, r/2)
		e.keepSRTT, e.keepVar = 0, 0
	default:
		// RFC 6298 §2.3, rttvar first: it is about the old srtt.
		n := time.Duration(min(max(share, 1), 64))
		e.rttvar += ((e.srtt - r).Abs() - e.rttvar) / (4 * n)
		e.srtt += (r - e.srtt) / (8 * n)
	}
	// RFC 6298 §2.3 with the clock's granularity G of a nanosecond; §2.4's lower bound of 1 s
	// is RTOMin's to choose.
	e.rto = min(max(e.srtt+4*e.rttvar, o.RTOMin), o.RTOMax)
}

// adapt makes the next sample start the estimate anew, from no less than what it was before a
// spurious timeout (RFC 4015 §3.1 step 11, with a granularity G of a nanosecond).
func (e *rtt) adapt(srtt, rttvar time.Duration) { e.keepSRTT, e.keepVar = srtt, rttvar }

func (e *rtt) minimum(now clock.Time, r time.Duration) {
	if e.minSince == clock.Never || now.Sub(e.minSince) >= minWindow {
		e.minBefore, e.min, e.minSince = e.min, r, now
	}
	e.min = min(e.min, r)
}

// lowest returns the minimum, zero before the first sample.
func (e *rtt) lowest() time.Duration {
	if e.minBefore != 0 {
		return min(e.min, e.minBefore)
	}
	return e.min
}

// timeout returns the time-out after some doublings (RFC 6298 §5.5).
func (e *rtt) timeout(backoff uint8, o *lossOptions) time.Duration {
	d := e.rto
	for range backoff {
		d = min(2*d, o.RTOMax)
	}
	return min(d, o.RTOMax)
}
