package tcp

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// delayedAck decides when a receiver acknowledges: RFC 9293 §3.8.6.3, RFC 5681 §4.2.
type delayedAck struct {
	pending  int        // bytes that wait for a delayed acknowledgment
	timer    clock.Time // when they are acknowledged
	owed     int32      // acknowledgments to send now
	quick    int8       // arrivals still acknowledged at once
	pingpong bool       // data of ours carries the acknowledgments
	single   bool       // the last arrival was one segment after a pause
	singles  bool       // and so was the arrival before it
}

// initialQuickAcks is how many arrivals, each a segment or a train, are acknowledged
// at once at the start of a connection and after a gap: then the peer's window is
// small, and a sender of few segments must not wait for a timer.
const initialQuickAcks = 16

const (
	// minPause and maxPause bound the silence before a segment that counts as a pause. It is two
	// round trips: a sender whose window is full waits one. Loss recovery on a short path is silent
	// for less than minPause.
	minPause, maxPause = 10 * time.Millisecond, 50 * time.Millisecond
	// singleCost is how many additional quick acknowledgments each segment uses up that a peer
	// sends alone, after another such segment: only the first four of them are acknowledged at
	// once.
	singleCost = 3
)

// maxDupAcks bounds the duplicate acknowledgments owed to a peer without SACK.
const maxDupAcks = 64

// acksAfterGap is how many acknowledgments answer a train on a path that loses packets. RFC 5681
// §4.2 sends one for every second segment. If a train drew only one and it was lost, the peer would
// hear nothing. Both are equal: a peer with SACK does not count a copy as a duplicate
// acknowledgment (RFC 6675 §2).
const acksAfterGap = 2

// atOnce makes the receiver acknowledge at once.
func (a *delayedAck) atOnce() { a.owed = max(a.owed, 1) }

// quicken makes the receiver acknowledge the next segments at once.
func (a *delayedAck) quicken() { a.quick, a.pingpong = initialQuickAcks, false }

// answer owes one acknowledgment for each segment that arrived, as RFC 5681 §4.2 allows, but no
// more than most in all.
func (a *delayedAck) answer(segments, most int) {
	a.owed = max(a.owed, int32(min(int(a.owed)+segments, most)))
}

// advance is the delayed acknowledgment's timer.
func (a *delayedAck) advance(now clock.Time) {
	if !a.timer.Due(now) {
		return
	}
	a.timer = clock.Never
	if a.pending > 0 {
		a.atOnce()
		a.pingpong = false // nothing of ours was there to carry it
	}
}

// sent notes that a segment with the current acknowledgment leaves, with so many bytes of data.
func (a *delayedAck) sent(data int) {
	if data > 0 && a.pending > 0 && a.quick == 0 {
		a.pingpong = true
	}
	a.owed = max(0, a.owed-1)
	a.pending, a.timer = 0, clock.Never
}

// notePause looks at the silence before segments with data. After a long one the peer may start
// again from one segment, which is acknowledged at once. Its acknowledgment makes the window two
// segments. A peer that sends single segments with pauses between them does not wait for
// acknowledgments, so delaying them costs it nothing (RFC 9293 §3.8.6.3).
func (r *receiver) notePause(now clock.Time, segments int, srtt, rto time.Duration) {
	a, silence := &r.ack, now.Sub(r.heardAt)
	pause := max(r.shared.cfg.DelayedAck, min(max(2*srtt, minPause), maxPause))
	paused := segments == 1 && silence > pause
	a.singles = paused && a.single
	a.single = paused
	switch {
	case a.singles:
		a.quick = max(0, a.quick-singleCost)
	case silence > rto:
		a.quick = initialQuickAcks
	}
}

// ackInOrder decides when n bytes in order are acknowledged. At once for every second full
// segment, for a train, and when the window is used up. Also at once while quick, and at the end
// of a message unless the peer sends single segments. Everything else waits for the timer. While
// quick after a gap, a train is acknowledged twice.
func (r *receiver) ackInOrder(now clock.Time, s *Segment, n int) {
	a := &r.ack
	a.pending += n
	tail := s.Flags.Has(PSH) && s.Len < r.mss && !a.singles
	most := 1
	if a.quick > 0 && r.early > 0 && r.sack {
		most = acksAfterGap
	}
	switch {
	case s.Count > 1, a.pending >= 2*r.mss, r.window() < r.mss,
		!a.pingpong && (tail || a.quick > 0):
		a.answer(s.Count, most)
	case a.timer == clock.Never:
		a.timer = now.Later(r.shared.cfg.DelayedAck)
	}
	a.quick = max(0, a.quick-1)
}

// ackOutOfOrder acknowledges a segment that is not the next one at once (RFC 5681 §4.2). A peer
// without SACK counts duplicates, so it gets one for each segment of a train. For other peers one
// for each run is enough.
func (r *receiver) ackOutOfOrder(s *Segment) {
	most := maxDupAcks
	if r.sack {
		most = max(acksAfterGap, int(r.runs)+1)
	}
	r.ack.answer(s.Count, most)
}

// ackBare reports whether the acknowledgment must be sent without data: one with SACK blocks, which
// would make a full segment too long, and a duplicate, which the peer does not count if it carries
// data (RFC 5681 §2).
func (r *receiver) ackBare() bool {
	return r.ack.owed > 1 || r.ack.owed == 1 && r.reassembly.reports()
}
