package workload

import (
	"cmp"
	"math"
	"strconv"
)

// TahoeConfig configures a Tahoe. The zero value is the document's TahoeStrategy(10, 1).
type TahoeConfig struct {
	Ssthresh int // slow start threshold in segments; 0: 10
	Cwnd     int // initial window in segments; 0: 1
	// Even makes the window grow by one for each acknowledged window of segments, as the document
	// says. Its code grows the window whenever the segment's number is divisible by it: with each
	// segment before the first loss, and then nearly twice per round trip.
	Even bool
}

const (
	// segmentTimeout is the time in seconds after which a segment without an acknowledgment is
	// retransmitted. retransmitRetry is the time after which a retransmission is repeated.
	segmentTimeout  = 4
	retransmitRetry = 1
)

type segment struct {
	seq  int
	sent float64
}

// tahoe is the document's TahoeStrategy. Its dictionary of unacknowledged packets is divided here:
// the packets from NextAck on, without a gap, are in a ring. Those below are sent after it has gone
// back too far, and are discarded at the next new acknowledgment.
type tahoe struct {
	SenderState
	even    bool
	growth  int        // acknowledgments since the window last grew, for Even
	ring    []*segment // the length is a power of two; entries from NextAck to end are in use
	end     int
	stale   []*segment
	scan    float64 // no segment has timed out before then
	repeat  *segment
	repeats bool // repeat was sent at repeatAt
	// repeatAt is when repeat was sent last.
	repeatAt   float64
	duplicated int // segment of the last duplicate; -1: none
}

// NewTahoe returns a Tahoe.
func NewTahoe(cfg TahoeConfig) Strategy {
	cfg.Ssthresh = cmp.Or(cfg.Ssthresh, 10)
	cfg.Cwnd = cmp.Or(cfg.Cwnd, 1)
	return &tahoe{
		SenderState: SenderState{Cwnd: cfg.Cwnd, Ssthresh: cfg.Ssthresh}, even: cfg.Even,
		ring: make([]*segment, 64), scan: math.Inf(1), duplicated: -1,
	}
}

func (t *tahoe) at(seq int) **segment { return &t.ring[seq&(len(t.ring)-1)] }

// find returns an unacknowledged segment, or nil.
func (t *tahoe) find(seq int) *segment {
	if seq >= t.NextAck {
		if seq < t.end {
			return *t.at(seq)
		}
		return nil
	}
	for _, s := range t.stale {
		if s.seq == seq {
			return s
		}
	}
	return nil
}

// keep stores a sent segment in place of an older one with its number.
func (t *tahoe) keep(s *segment) {
	t.scan = min(t.scan, s.sent+segmentTimeout)
	if s.seq < t.NextAck {
		for i := range t.stale {
			if t.stale[i].seq == s.seq {
				t.stale[i] = s
				return
			}
		}
		t.stale = append(t.stale, s)
		return
	}
	if s.seq-t.NextAck == len(t.ring) {
		more := make([]*segment, 2*len(t.ring))
		for seq := t.NextAck; seq < t.end; seq++ {
			more[seq&(len(more)-1)] = *t.at(seq)
		}
		t.ring = more
	}
	*t.at(s.seq) = s
	t.end = max(t.end, s.seq+1)
}

func (t *tahoe) NextPacket(now float64) (Packet, bool) {
	if t.repeats && now-t.repeatAt > retransmitRetry {
		t.repeats = false
	}
	switch {
	case t.repeat != nil && !t.repeats:
		t.find(t.repeat.seq).sent = now
		t.repeats, t.repeatAt = true, now
		return t.repeat.packet(), true
	case t.WindowIsOpen():
		s := &segment{t.SeqNum, now}
		t.keep(s)
		t.SeqNum++
		return s.packet(), true
	case now > t.scan:
		return t.timedOut(now)
	}
	return Packet{}, false
}

func (s *segment) packet() Packet { return Packet{Seq: s.seq, SentAt: s.sent} }

// timedOut returns the first segment that has timed out, or computes when one can.
func (t *tahoe) timedOut(now float64) (Packet, bool) {
	oldest := math.Inf(1)
	look := func(s *segment) bool {
		oldest = min(oldest, s.sent)
		return now-s.sent > segmentTimeout
	}
	for seq := t.NextAck; seq < t.end; seq++ {
		if s := *t.at(seq); look(s) {
			s.sent = now
			return s.packet(), true
		}
	}
	for _, s := range t.stale {
		if look(s) {
			s.sent = now
			return s.packet(), true
		}
	}
	t.scan = oldest + segmentTimeout
	return Packet{}, false
}

func (t *tahoe) ProcessAck(now float64, a *Ack) {
	t.TotalAcks++
	t.LastRTT = 0
	switch {
	case t.find(a.Seq) == nil:
		t.duplicate(a.Seq)
	case a.Seq >= t.NextAck:
		t.acknowledge(now, a)
	}
}

// duplicate handles an acknowledgment of a segment that is already acknowledged.
func (t *tahoe) duplicate(seq int) {
	t.DuplicateAcks++
	if t.duplicated == seq {
		t.current++
	} else {
		t.duplicated, t.current = seq, 1
	}
	if t.current != 3 {
		return
	}
	if t.repeat = t.find(seq + 1); t.repeat == nil {
		t.Exception = "KeyError: " + strconv.Itoa(seq+1)
		return
	}
	t.Ssthresh = max(1, t.Cwnd/2)
	t.Cwnd, t.growth = 1, 0
}

// acknowledge handles an acknowledgment of a new segment.
func (t *tahoe) acknowledge(now float64, a *Ack) {
	if t.repeat != nil {
		t.repeat, t.repeats, t.current = nil, false, 0
		t.SeqNum = a.Seq + 1
	}
	for seq := t.NextAck; seq <= a.Seq; seq++ {
		*t.at(seq) = nil
	}
	t.stale = t.stale[:0]
	t.SentBytes = a.Bytes
	t.measure(now, a)
	t.growth++
	switch {
	case t.Cwnd < t.Ssthresh:
		t.Cwnd, t.growth = t.Cwnd+1, 0
	case t.even && t.growth >= t.Cwnd, !t.even && (a.Seq+1)%t.Cwnd == 0:
		t.Cwnd, t.growth = t.Cwnd+1, 0
	}
}

func (t *tahoe) Due() float64 {
	switch {
	case t.repeat != nil && !t.repeats, t.WindowIsOpen():
		return 0
	case t.repeats:
		return min(t.scan, t.repeatAt+retransmitRetry)
	}
	return t.scan
}
