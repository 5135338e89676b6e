package tcp

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
)

// validation is RFC 7661: what the sender is known to have used of its window
// lately. A window that is not used is not grown (limited.byCwnd); one that is
// not half used is kept for a while, and when a loss comes, what was used counts
// and not what was allowed.
type validation struct {
	begun  uint64     // bytes delivered as this round began; zero: it is not a whole one
	bins   [2]int     // the most that a round delivered, in this half period and in the last
	binAt  clock.Time // when this half began; never: pipeACK is undefined
	since  clock.Time // when the non-validated phase began; never: the window is validated
	volume int        // what a loss in that phase found in use; zero: none did
	resent int        // bytes sent again since that loss
}

const (
	// samplingPeriod is the least of RFC 7661 §4.2.
	samplingPeriod = time.Second
	// nonValidatedPeriod is how long a window is kept that is not used: RFC 7661 §4.4.3.
	nonValidatedPeriod = 5 * time.Minute
)

// turn moves the halves of the sampling period along: max(3 * RTT, 1 s).
func (v *validation) turn(now clock.Time, srtt time.Duration) {
	half := max(3*srtt, samplingPeriod) / 2
	switch age := now.Sub(v.binAt); {
	case v.binAt == clock.Never || age < half:
	case age < 2*half:
		v.bins[0], v.bins[1], v.binAt = 0, v.bins[0], v.binAt.Add(half)
	default:
		v.bins, v.binAt = [2]int{}, now
	}
}

// pipeACK returns the most that a round trip has delivered lately (RFC 7661
// §4.2), and false while that is undefined.
func (c *Conn) pipeACK(now clock.Time) (int, bool) {
	v := &c.limit.use
	v.turn(now, c.rtt.srtt)
	return max(v.bins[0], v.bins[1]), v.binAt != clock.Never
}

// validated reports whether the sender uses its window: RFC 7661 §4.3, half of
// it, or nothing is known yet. A window that held the sender back within the
// last two round trips was used, whatever it has grown to since.
func (c *Conn) validated(now clock.Time) bool {
	used, known := c.pipeACK(now)
	return !known || c.limit.used || c.limit.usedLast || 2*used >= c.cc.Cwnd()
}

// measureUse takes the sample of a round trip that is over.
func (c *Conn) measureUse(now clock.Time) {
	v := &c.limit.use
	n, whole := int(c.rec.sent.delivered-v.begun), v.begun != 0
	if v.begun = c.rec.sent.delivered; !whole {
		return
	}
	if v.binAt == clock.Never {
		v.binAt = now
	}
	v.turn(now, c.rtt.srtt)
	v.bins[0] = max(v.bins[0], n)
	switch {
	case c.validated(now):
		v.since = clock.Never
	case v.since == clock.Never:
		v.since = now
	case now.Sub(v.since) >= nonValidatedPeriod:
		v.since = now
		restarter, ok := c.cc.Controller.(congestion.Restarter)
		if !ok {
			return
		}
		e := &c.host.restart
		*e = congestion.Restart{Now: now, MSS: c.snd.mss, Unvalidated: true}
		restarter.OnRestart(e)
	}
}

// lossFlight returns the flight that a reduction goes by: in the non-validated
// phase RFC 7661 §4.4.1 takes the larger of pipeACK and the flight.
func (c *Conn) lossFlight(now clock.Time, k congestion.Kind, flight int) int {
	v := &c.limit.use
	if k == congestion.Detected && !c.validated(now) {
		used, _ := c.pipeACK(now)
		flight = max(flight, used)
		v.volume, v.resent = flight, 0
	}
	return flight
}

// endUse closes the books of an episode and returns the window that RFC 7661
// §4.4.1 leaves after one that began in the non-validated phase: half of what
// was in use and did not have to be sent again. Zero: no bound. What was
// measured before says nothing about now.
func (c *Conn) endUse() int {
	v := &c.limit.use
	ceiling := 0
	if v.volume > 0 {
		ceiling = max((v.volume-v.resent)/2, 2*c.snd.mss)
	}
	*v = validation{}
	return ceiling
}
