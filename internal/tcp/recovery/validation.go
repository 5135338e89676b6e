package recovery

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
)

// validation is RFC 7661: what the sender has used of its window lately. A window that is not used
// does not grow (cwndLimited). One that is not half used is kept for a while, and a loss then
// halves what was used.
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

// rounds are what is known of the round trip in progress, and of those before it.
type rounds struct {
	used     bool   // the window was the limit in this round,
	usedLast bool   // or in the one before
	roundEnd uint64 // SND.NXT as the round began
	// roundBegan is when, and roundSent the segments with text that had been sent.
	roundBegan clock.Time
	roundSent  uint64
	peak       int // the most in flight in this round,
	peakLast   int // and in the one before
	window     validation
	batch      batch
}

// batch is acknowledgments that come together: nothing can be sent between them.
type batch struct {
	at     clock.Time
	sent   uint64 // segments with text until then
	flight int    // as the first of them came
}

// gather takes note of an acknowledgment that finds so much outstanding.
func (b *batch) gather(now clock.Time, flight int, sent uint64) {
	if b.at != now || b.sent != sent {
		*b = batch{now, sent, flight}
	}
}

// flightSize is what is outstanding, and what earlier acknowledgments of the batch made room for:
// FlightSize is to say what the path carried, not how acknowledgments were gathered.
func (b *batch) flightSize(now clock.Time, flight int, sent uint64) int {
	if b.at == now && b.sent == sent {
		return max(flight, b.flight)
	}
	return flight
}

// turn reports whether SND.UNA has passed what was in flight when the last round began, and begins
// another. Prior was in flight, and so many segments have ever been sent.
func (l *rounds) turn(now clock.Time, snd *Space, prior int, sent uint64) bool {
	l.peak = max(l.peak, prior)
	if snd.Una < l.roundEnd {
		return false
	}
	if sent != l.roundSent || now != l.roundBegan {
		// Of acknowledgments that come together the later ones find a round that has just begun,
		// in which nothing could be sent yet. It would say nothing of the window.
		l.usedLast, l.used = l.used, false
		l.peakLast, l.peak = l.peak, 0
	}
	l.roundEnd, l.roundBegan, l.roundSent = snd.Nxt, now, sent
	return true
}

// cwndLimited reports whether the congestion window bounded the sender lately. In slow start half
// of it in use is enough (RFC 7661 §4.3 validates so), because it doubles in a round.
func (l *rounds) cwndLimited(cc congestion.Controller) bool {
	return l.used || l.usedLast ||
		cc.Cwnd() < cc.Ssthresh() && cc.Cwnd() < 2*max(l.peak, l.peakLast)
}

// validated reports whether the sender uses half of its window (RFC 7661 §4.3), nothing is known
// yet, or the window held it back within the last two round trips. The other result is pipeACK, the
// most that a round trip has delivered lately (RFC 7661 §4.2).
func (l *rounds) validated(now clock.Time, srtt time.Duration, cwnd int) (yes bool, pipeACK int) {
	w := &l.window
	w.turn(now, srtt)
	used := max(w.bins[0], w.bins[1])
	return w.binAt == clock.Never || l.used || l.usedLast || 2*used >= cwnd, used
}

// measure takes the sample of a round trip that is over, by which so much was delivered in all. It
// reports whether the window has not been used for too long.
func (l *rounds) measure(now clock.Time, delivered uint64, srtt time.Duration, cwnd int) bool {
	w := &l.window
	n, whole := int(delivered-w.begun), w.begun != 0
	if w.begun = delivered; !whole {
		return false
	}
	if w.binAt == clock.Never {
		w.binAt = now
	}
	w.turn(now, srtt)
	w.bins[0] = max(w.bins[0], n)
	validated, _ := l.validated(now, srtt, cwnd)
	switch {
	case validated:
		w.since = clock.Never
	case w.since == clock.Never:
		w.since = now
	case now.Sub(w.since) >= nonValidatedPeriod:
		w.since = now
		return true
	}
	return false
}

// lossFlight returns the flight that a reduction goes by: in the non-validated
// phase RFC 7661 §4.4.1 takes the larger of pipeACK and the flight.
func (l *rounds) lossFlight(
	now clock.Time, k congestion.Kind, flight int, srtt time.Duration, cwnd int,
) int {
	if k != congestion.Detected {
		return flight
	}
	if validated, used := l.validated(now, srtt, cwnd); !validated {
		flight = max(flight, used)
		l.window.volume, l.window.resent = flight, 0
	}
	return flight
}

// endUse ends an episode and returns the window that RFC 7661 §4.4.1 leaves after one that began in
// the non-validated phase: half of what was in use and not retransmitted. Zero: no bound.
func (l *rounds) endUse(mss int) int {
	ceiling := 0
	if w := &l.window; w.volume > 0 {
		ceiling = max((w.volume-w.resent)/2, 2*mss)
	}
	l.window = validation{}
	return ceiling
}
