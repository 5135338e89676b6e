package tcp

import "github.com/tidepool-net/tidepool/internal/clock"

// initialQuickAcks is how many arrivals, each a segment or a train, are acknowledged
// at once at the start of a connection and after a gap: then the peer's window is
// small, and a sender of few segments must not wait for a timer.
const initialQuickAcks = 16

// hurry has what arrives next acknowledged at once.
func (s *receiveSpace) hurry() { s.quick, s.pingpong = initialQuickAcks, false }

// maxDupAcks bounds the duplicate acknowledgments owed to a peer without SACK.
const maxDupAcks = 64

// acksAfterGap is how many acknowledgments what arrives together draws on a path that
// loses, if it is as many segments. One for all of a train makes silence of an
// acknowledgment that is lost, where RFC 5681 §4.2 has one for every second segment. Both
// say the same, all that there is to say: to peers with SACK a copy is not a duplicate
// acknowledgment (RFC 6675 §2).
const acksAfterGap = 2

// What comes out of order together may be many runs with gaps in between, each a range, and an
// acknowledgment has room for sureBlocks of them beside the timestamps. What no block tells of is
// sent again. So there are as many acknowledgments as it takes to report each range twice, of up
// to maxRuns.
const (
	sureBlocks = 3
	maxRuns    = 48
)

// answer has segments that arrived acknowledged now, each by one acknowledgment, as RFC
// 5681 §4.2 allows, but all that wait by most.
func (s *receiveSpace) answer(segments, most int) {
	s.acks = max(s.acks, min(s.acks+segments, most))
}

// ackInOrder decides when in-order text is acknowledged: RFC 9293 §3.8.6.3,
// RFC 5681 §4.2. At once for every second full segment, for a train, while
// quick, at the end of what the peer had to say, and when it may send no more;
// else when the timer says. While quick after a gap, a train is acknowledged twice.
func (c *Conn) ackInOrder(now clock.Time, s *Segment, n int) {
	c.rcv.pending += n
	tail := s.Flags.Has(PSH) && s.Len < c.rcv.mss && !c.rcv.pingpong
	most := 1
	if c.rcv.quick > 0 && c.rcv.unordered > 0 && c.has(flagSACK) {
		most = acksAfterGap
	}
	switch {
	case s.Count > 1, c.rcv.pending >= 2*c.rcv.mss, tail, c.rcv.edge-c.rcv.nxt < uint64(c.rcv.mss):
		c.rcv.answer(s.Count, most)
	case c.rcv.quick > 0 && !c.rcv.pingpong:
		c.rcv.answer(s.Count, most)
	case c.timers[timerDelayedAck] == clock.Never:
		c.timers[timerDelayedAck] = in(now, c.host.cfg.DelayedAck)
	}
	c.rcv.quick = max(0, c.rcv.quick-1)
}

// ackOutOfOrder acknowledges a segment that is not the next one at once (RFC
// 5681 §4.2). A peer without SACK counts duplicates, so it gets one for each
// segment of a train; to others one tells everything, and is sent twice.
func (c *Conn) ackOutOfOrder(s *Segment) {
	if c.has(flagSACK) {
		c.rcv.runs = min(c.rcv.runs+1, maxRuns)
		c.rcv.answer(s.Count, acksAfterGap)
		c.rcv.acks = max(c.rcv.acks, ceilDiv(2*int(c.rcv.runs), sureBlocks))
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
	c.rcv.acks, c.rcv.runs = max(0, c.rcv.acks-1), 0
	if c.rcv.acks == 0 {
		c.rcv.told = 0
	}
	c.rcv.pending = 0
	c.stamps.lastAck = c.rcv.nxt
	c.timers[timerDelayedAck] = clock.Never
}
