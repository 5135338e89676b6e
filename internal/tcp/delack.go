package tcp

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// initialQuickAcks is how many arrivals, each a segment or a train, are acknowledged
// at once at the start of a connection and after a gap: then the peer's window is
// small, and a sender of few segments must not wait for a timer.
const initialQuickAcks = 16

const (
	// minPause and maxPause bound the silence before a segment that counts as a pause. It is two
	// round trips: a sender whose window is full waits one. Loss recovery on a short path is silent
	// for less than minPause.
	minPause, maxPause = 10 * time.Millisecond, 50 * time.Millisecond
	// singleCost is how many of the quick acknowledgments a single segment after another uses up,
	// besides its own: four are acknowledged at once.
	singleCost = 3
)

// hurry has what arrives next acknowledged at once.
func (s *receiveSpace) hurry() { s.quick, s.pingpong = initialQuickAcks, false }

// notePause looks at the silence before a segment with data. After a long one the peer may start
// again from one segment, which is acknowledged at once. Its acknowledgment makes the window two
// segments. A peer that sends single segments with pauses between them does not wait for
// acknowledgments, so delaying them costs it nothing (RFC 9293 §3.8.6.3).
func (c *Conn) notePause(now clock.Time, s *Segment) {
	silence := now.Sub(c.stats.lastReceived)
	pause := max(c.host.cfg.DelayedAck, min(max(2*c.rtt.srtt, minPause), maxPause))
	paused := s.Count == 1 && silence > pause
	c.rcv.singles = paused && c.rcv.single
	c.rcv.single = paused
	switch {
	case c.rcv.singles:
		c.rcv.quick = max(0, c.rcv.quick-singleCost)
	case silence > c.rtt.rto:
		c.rcv.quick = initialQuickAcks
	}
}

// maxDupAcks bounds the duplicate acknowledgments owed to a peer without SACK.
const maxDupAcks = 64

// acksAfterGap is how many acknowledgments what arrives together draws on a path that
// loses, if it is as many segments. One for all of a train makes silence of an
// acknowledgment that is lost, where RFC 5681 §4.2 has one for every second segment. Both
// say the same, all that there is to say: to peers with SACK a copy is not a duplicate
// acknowledgment (RFC 6675 §2).
const acksAfterGap = 2

// maxRuns bounds how much of what arrives out of order together is reported. That may be many
// runs with gaps in between, each a range; an acknowledgment has room for three, and what no block
// tells of is sent again. So each run has an acknowledgment, as if it had come by itself, and the
// last has two. They report the runs before it too, so that each is reported twice or three times,
// and none later than one that came after it: the peer would take it for lost (RFC 8985 §6.2).
const maxRuns = 48

// answer has segments that arrived acknowledged now, each by one acknowledgment, as RFC
// 5681 §4.2 allows, but all that wait by most.
func (s *receiveSpace) answer(segments, most int) {
	s.acks = max(s.acks, min(s.acks+segments, most))
}

// ackInOrder decides when in-order data is acknowledged: RFC 9293 §3.8.6.3,
// RFC 5681 §4.2. At once for every second full segment, for a train, and when the
// window is used up. Also at once while quick, and at the end of a message unless
// the peer sends single segments. Everything else waits for the timer. While quick
// after a gap, a train is acknowledged twice.
func (c *Conn) ackInOrder(now clock.Time, s *Segment, n int) {
	c.rcv.pending += n
	tail := s.Flags.Has(PSH) && s.Len < c.rcv.mss && !c.rcv.singles
	most := 1
	if c.rcv.quick > 0 && c.trouble.unordered > 0 && c.has(flagSACK) {
		most = acksAfterGap
	}
	switch {
	case s.Count > 1, c.rcv.pending >= 2*c.rcv.mss, c.rcv.edge-c.rcv.nxt < uint64(c.rcv.mss),
		!c.rcv.pingpong && (tail || c.rcv.quick > 0):
		c.rcv.answer(s.Count, most)
	case c.timers[timerDelayedAck] == clock.Never:
		c.timers[timerDelayedAck] = in(now, c.host.cfg.DelayedAck)
	}
	c.rcv.quick = max(0, c.rcv.quick-1)
}

// ackOutOfOrder acknowledges a segment that is not the next one at once (RFC
// 5681 §4.2). A peer without SACK counts duplicates, so it gets one for each
// segment of a train; to others one for each run tells everything.
func (c *Conn) ackOutOfOrder(s *Segment) {
	if c.has(flagSACK) {
		c.rcv.answer(s.Count, max(acksAfterGap, int(c.rcv.runs)+1))
		return
	}
	c.rcv.answer(s.Count, maxDupAcks)
}

// onDelayedAck is the delayed acknowledgment's timer.
func (c *Conn) onDelayedAck() {
	if c.rcv.pending > 0 {
		c.rcv.acks = max(c.rcv.acks, 1)
		c.rcv.pingpong = false // nothing of ours was there to carry it
	}
}

// acknowledged notes that a segment with the current acknowledgment leaves;
// carried says that it had text of its own.
func (c *Conn) acknowledged(carriedText int) {
	if carriedText > 0 && c.rcv.pending > 0 && c.rcv.quick == 0 {
		c.rcv.pingpong = true
	}
	c.rcv.acks = max(0, c.rcv.acks-1)
	c.rcv.pending = 0
	c.stamps.lastAck = c.rcv.nxt
	c.timers[timerDelayedAck] = clock.Never
}
