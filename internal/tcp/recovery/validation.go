package recovery

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
)

// validation measures how much of its window the sender has used lately (RFC 7661). A window that
// is not fully used does not grow (cwndLimited). If less than half of it is used, the sender keeps
// it for a while, and a loss then halves the part that was used.
type validation struct {
	begun  uint64     // bytes delivered when this round began; zero: this round is partial
	bins   [2]int     // most bytes that a round delivered, in this half period and the last
	binAt  clock.Time // when this half began; never: pipeACK is undefined
	since  clock.Time // when the non-validated phase began; never: the window is validated
	volume int        // bytes in use at a loss in that phase; zero: no loss
	resent int        // bytes retransmitted since that loss
}

const (
	// samplingPeriod is the minimum in RFC 7661 §4.2.
	samplingPeriod = time.Second
	// nonValidatedPeriod is how long the sender keeps an unused window (RFC 7661 §4.4.3).
	nonValidatedPeriod = 5 * time.Minute
)

// rotate begins a new half of the sampling period of max(3 * RTT, 1 s) when it is time.
func (v *validation) rotate(now clock.Time, srtt time.Duration) {
	half := max(3*srtt, samplingPeriod) / 2
	switch age := now.Sub(v.binAt); {
	case v.binAt == clock.Never || age < half:
	case age < 2*half:
		v.bins[0], v.bins[1], v.binAt = 0, v.bins[0], v.binAt.Add(half)
	default:
		v.bins, v.binAt = [2]int{}, now
	}
}

// rounds is the state of the current and the last round trip.
type rounds struct {
	used     bool   // the window limited the sender in this round
	usedLast bool   // the window limited the sender in the last round
	roundEnd uint64 // SND.NXT when the round began
	// roundBegan is when the round began, roundSent the count of transmissions at that time.
	roundBegan clock.Time
	roundSent  uint64
	peak       int // most bytes in flight in this round
	peakLast   int // most bytes in flight in the last round
	window     validation
	batch      batch
}

// batch is a group of acknowledgments that arrive together, so that nothing is sent between them.
type batch struct {
	at     clock.Time
	sent   uint64 // count of transmissions at that time
	flight int    // bytes outstanding when the first one arrived
}

// gather adds an acknowledgment, at which flight bytes are outstanding.
func (b *batch) gather(now clock.Time, flight int, sent uint64) {
	if b.at != now || b.sent != sent {
		*b = batch{now, sent, flight}
	}
}

// flightSize returns the bytes that were outstanding before the batch. FlightSize should measure
// what the path carried, and not depend on how acknowledgments were batched.
func (b *batch) flightSize(now clock.Time, flight int, sent uint64) int {
	if b.at == now && b.sent == sent {
		return max(flight, b.flight)
	}
	return flight
}

// advance reports whether SND.UNA has passed the data that was in flight when this round began. If
// so, it begins a new round. prior is the data in flight, sent the count of transmissions.
func (l *rounds) advance(now clock.Time, snd *Space, prior int, sent uint64) bool {
	l.peak = max(l.peak, prior)
	if snd.Una < l.roundEnd {
		return false
	}
	if sent != l.roundSent || now != l.roundBegan {
		// For later acknowledgments of a batch, the round has just begun, and nothing could be sent
		// in it. Such a round says nothing about the window.
		l.usedLast, l.used = l.used, false
		l.peakLast, l.peak = l.peak, 0
	}
	l.roundEnd, l.roundBegan, l.roundSent = snd.Nxt, now, sent
	return true
}

// cwndLimited reports whether the congestion window limited the sender lately. In slow start it is
// enough that half of the window is in use (RFC 7661 §4.3), because the window doubles in a round.
func (l *rounds) cwndLimited(cc congestion.Controller) bool {
	return l.used || l.usedLast ||
		cc.Cwnd() < cc.Ssthresh() && cc.Cwnd() < 2*max(l.peak, l.peakLast)
}

// validated reports whether the sender uses half of its window (RFC 7661 §4.3), nothing is measured
// yet, or the window limited it within the last two round trips. It also returns pipeACK, the most
// that a round trip has delivered lately (RFC 7661 §4.2).
func (l *rounds) validated(now clock.Time, srtt time.Duration, cwnd int) (yes bool, pipeACK int) {
	w := &l.window
	w.rotate(now, srtt)
	used := max(w.bins[0], w.bins[1])
	return w.binAt == clock.Never || l.used || l.usedLast || 2*used >= cwnd, used
}

// measure ends a round trip with the total delivered, and reports whether the window has been
// unused for too long.
func (l *rounds) measure(now clock.Time, delivered uint64, srtt time.Duration, cwnd int) bool {
	w := &l.window
	n, whole := int(delivered-w.begun), w.begun != 0
	if w.begun = delivered; !whole {
		return false
	}
	if w.binAt == clock.Never {
		w.binAt = now
	}
	w.rotate(now, srtt)
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

// lossFlight returns the flight size for a reduction. In the non-validated phase RFC 7661 §4.4.1
// takes the larger of pipeACK and the flight.
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

// endEpisode ends an episode. If the episode began in the non-validated phase, endEpisode returns
// the window of RFC 7661 §4.4.1: half of the data that was in use and not retransmitted. Zero: no
// bound.
func (l *rounds) endEpisode(mss int) int {
	ceiling := 0
	if w := &l.window; w.volume > 0 {
		ceiling = max((w.volume-w.resent)/2, 2*mss)
	}
	l.window = validation{}
	return ceiling
}
