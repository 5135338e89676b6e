package tcp

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// delayedAck decides when a receiver sends acknowledgments (RFC 9293 §3.8.6.3, RFC 5681 §4.2).
type delayedAck struct {
	pending  int        // received bytes that are not yet acknowledged
	timer    clock.Time // when to acknowledge them
	owed     int32      // acknowledgments to send now
	quick    int8       // number of arrivals that are still acknowledged at once
	pingpong bool       // data of ours carries the acknowledgments
	single   bool       // the last arrival was one segment after a pause
	singles  bool       // so were the last two arrivals
}

// initialQuickAcks is how many arrivals, each a segment or a train, the receiver acknowledges at
// once at the start of a connection, after a gap and after a long pause. At these times the peer's
// congestion window is small, and a delayed acknowledgment would stall the peer.
const initialQuickAcks = 16

const (
	// minPause and maxPause bound the time without data that counts as a pause. It must exceed two
	// round trips, because a sender whose window is full waits for one. During loss recovery on a
	// short path, the gaps are shorter than minPause.
	minPause, maxPause = 10 * time.Millisecond, 50 * time.Millisecond
	// singleCost is how many additional quick acknowledgments a single segment after a pause uses
	// up, if another such segment preceded it. So the receiver acknowledges only the first four of
	// a series at once.
	singleCost = 3
)

// maxDupAcks bounds the duplicate acknowledgments owed to a peer without SACK.
const maxDupAcks = 64

// acksAfterGap is how many acknowledgments answer a train on a path that loses packets. RFC 5681
// §4.2 requires one for every second segment. If a train had a single acknowledgment and that were
// lost, the peer would receive nothing. Both acknowledgments are identical: a peer with SACK does
// not count a copy as a duplicate acknowledgment (RFC 6675 §2).
const acksAfterGap = 2

func (a *delayedAck) atOnce() { a.owed = max(a.owed, 1) }

func (a *delayedAck) quicken() { a.quick, a.pingpong = initialQuickAcks, false }

// answer schedules one acknowledgment for each segment that arrived, as RFC 5681 §4.2 allows, but
// no more than most in all.
func (a *delayedAck) answer(segments, most int) {
	a.owed = max(a.owed, int32(min(int(a.owed)+segments, most)))
}

// advance runs the timer of the delayed acknowledgment.
func (a *delayedAck) advance(now clock.Time) {
	if !a.timer.Due(now) {
		return
	}
	a.timer = clock.Never
	if a.pending > 0 {
		a.atOnce()
		a.pingpong = false // no data of ours carried the acknowledgment
	}
}

// sent records that a segment with the current acknowledgment and data bytes of payload leaves.
func (a *delayedAck) sent(data int) {
	if data > 0 && a.pending > 0 && a.quick == 0 {
		a.pingpong = true
	}
	a.owed = max(0, a.owed-1)
	a.pending, a.timer = 0, clock.Never
}

// notePause measures the pause before a segment with data. After a long pause the peer may restart
// from one segment, so the receiver acknowledges the next segments at once, and the first
// acknowledgment lets the window grow to two segments. A peer that sends single segments with
// pauses between them does not wait for acknowledgments, so delaying them costs it nothing (RFC
// 9293 §3.8.6.3).
func (r *receiver) notePause(now clock.Time, segments int, srtt, rto time.Duration) {
	a, silence := &r.ack, now.Sub(r.lastDataAt)
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

// ackInOrder decides when to acknowledge n bytes in order. The receiver acknowledges trains, every
// second full segment and data that nearly fills the window at once. Unless its own data carries
// the acknowledgments, it also acknowledges every arrival while quick, and the end of a message
// from a peer that does not send single segments. All other data waits for the timer. While quick
// after a gap, the receiver acknowledges a train twice.
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

// ackOutOfOrder acknowledges an out-of-order segment at once (RFC 5681 §4.2). A peer without SACK
// counts duplicates, so the receiver sends one acknowledgment for each segment of a train. Other
// peers need only one for each run.
func (r *receiver) ackOutOfOrder(s *Segment) {
	most := maxDupAcks
	if r.sack {
		most = max(acksAfterGap, int(r.runs)+1)
	}
	r.ack.answer(s.Count, most)
}

// ackBare reports whether the acknowledgment must be sent without data. SACK blocks would make a
// full segment too long, and the peer does not count a duplicate that carries data (RFC 5681 §2).
func (r *receiver) ackBare() bool {
	return r.ack.owed > 1 || r.ack.owed == 1 && r.reassembly.reports()
}
