package recovery

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
)

// Ack is one acknowledgment, or a train of acknowledgments that arrived together, and its effects.
// The host reuses it for the next one.
type Ack struct {
	Dups   int  // duplicate acknowledgments (RFC 5681 §2)
	Marked bool // the acknowledgment echoes a mark
	Exact  bool // the echo says whether the acknowledged data was marked (RFC 8257)
	Echo   Echo

	Delivered int    // bytes that newly arrived, by SND.UNA or by SACK
	DSACK     uint64 // end of the reported duplicate range (RFC 2883); zero: none
	// Results for the path MTU search (RFC 4821 §7):
	Largest    int  // largest payload of the arrived segments that were sent only once
	Probed     bool // a probe arrived
	LostProbes int  // probes that were lost

	v             *Recovery
	now           clock.Time
	flight, prior int    // nxt - una, and pipe, before the acknowledgment
	advance       int    // how far una advanced
	segments      int    // segments that newly arrived
	fack          uint64 // the highest end of these segments
	lost          int    // segments newly marked lost
	rtt           sampled
	earlier       int // delivered bytes of segments that were sent once, before the recovery
	rate          rateSample
	dupDelivered  int        // bytes that a duplicate ACK indicates, without SACK
	restarted     bool       // the losses restarted the algorithm
	recovering    bool       // fast recovery was in progress
	restarting    bool       // a slow start was in progress that does not count earlier data
	reorder       clock.Time // when to check again for losses
}

// Echo is the timestamp that an acknowledgment echoes (RFC 7323 §3.2).
type Echo struct {
	Tick    uint32 // in ticks of our clock
	Known   bool
	Transit uint32 // the acknowledgment's own timestamp minus its echo
}

// before reports whether the acknowledgment answers a segment sent before when. Then an earlier
// transmission of a retransmitted segment has arrived (RFC 8985 §6.2 step 2).
func (e Echo) before(when clock.Time) bool { return e.Known && later(Tick(when), e.Tick) }

// TickTime is the unit of timestamps; RFC 7323 §5.4 allows 1 ms to 1 s. That is too coarse for
// round trips of 150 µs. So the sent queue measures round trips, and timestamps only distinguish
// transmissions of the same bytes.
const TickTime = time.Millisecond

// Tick returns the timestamp clock, without a connection's offset.
func Tick(now clock.Time) uint32 { return uint32(uint64(now) / uint64(TickTime)) }

// later reports whether a tick comes after another, across the wrap (RFC 7323 §5.2).
func later(a, b uint32) bool { return int32(a-b) > 0 }

type sampled struct {
	first, last   clock.Time // the oldest and the newest of the segments sent once
	retransmitted bool       // one of the segments was sent more than once
	resentAt      clock.Time // the last transmission of the first segment, if it was retransmitted
}

// BeginAck returns the Ack for an acknowledgment that arrives at now.
func (v *Recovery) BeginAck(now clock.Time) *Ack {
	r := v.beginRound(now)
	v.rounds.batch.gather(now, r.flight, v.Record.transmissions)
	return r
}

// beginRound returns an empty Ack. Timers that find losses use it.
func (v *Recovery) beginRound(now clock.Time) *Ack {
	r := &v.shared.scratch
	*r = Ack{}
	r.v, r.now, r.flight, r.prior = v, now, int(v.snd.Nxt-v.snd.Una), v.Pipe()
	return r
}

// MarkDelivered marks the segments that have arrived: all below ack (RFC 9293 §3.10.7.4), and those
// in the SACK blocks (RFC 2018 §5). The caller moves SND.UNA afterwards.
func (r *Ack) MarkDelivered(ack uint64, blocks []buffer.Range) {
	v := r.v
	v.Kept.Counts.DupAcks += uint64(r.Dups)
	if v.strategy.sack && len(blocks) > 0 {
		r.handleSACK(blocks, ack)
	}
	if ack > v.snd.Una {
		r.advance = int(ack - v.snd.Una)
		r.acknowledge(ack)
	}
}

// Process updates the round trip estimate, detects losses, updates the congestion window and sets
// the timers. more says that new data waits to be sent, and persisting says that the persist timer
// is running.
func (r *Ack) Process(more, persisting bool) {
	v := r.v
	if r.Delivered > 0 {
		v.Record.delivered += uint64(r.Delivered)
		v.Record.deliveredAt = r.now
		v.rack.fack = max(v.rack.fack, r.fack)
		v.losses.segments += uint64(r.segments)
		v.Retries = 0
		if s := &v.Kept.timeouts; s.since != clock.Never {
			s.total += r.now.Sub(s.since)
			s.since = clock.Never
		}
		r.measure()
	}
	v.rack.adaptReordering(r, v.snd, v.Kept.TLP.end)
	v.strategy.detect(v, r)
	v.At.Reorder = r.reorder
	r.probeAnswered()
	r.recover(more)
	r.control()
	r.rearm(persisting)
}

// measure takes a round trip sample from the acknowledgment. The oldest segment gives the sample
// for the RTO, which must allow for delayed acknowledgments. The newest segment gives the sample
// for the minimum.
//
// RFC 6298 §3: a retransmitted segment, or one that may have waited for such a segment, gives no
// sample, unless the timestamp shows which transmission arrived (RFC 7323 §4.1). If an earlier
// transmission was sent in the same tick, the sample could be too short, so measure ignores samples
// below a tick.
func (r *Ack) measure() {
	v := r.v
	if r.rtt.first != clock.Never && !r.rtt.retransmitted {
		share := (r.flight + r.Delivered - 1) / r.Delivered
		v.RTT.Sample(r.now, r.now.Sub(r.rtt.first), share, &v.shared.Options)
		v.RTT.minimum(r.now, max(r.now.Sub(r.rtt.last), time.Nanosecond))
		v.Backoff = 0 // RFC 6298 §5.7: a new measurement ends the backing off
		return
	}
	sent := r.rtt.resentAt
	rtt := r.now.Sub(sent)
	if sent != clock.Never && r.Echo.Known && r.Echo.Tick == Tick(sent) && rtt >= TickTime {
		v.RTT.Sample(r.now, rtt, 1, &v.shared.Options)
		v.Backoff = 0
	}
}

func (r *Ack) rearm(persisting bool) {
	v := r.v
	switch {
	case v.Record.Empty():
		v.At = Timers{} // RFC 6298 §5.2: all data is acknowledged
	case persisting || r.Delivered == 0:
	default:
		// RFC 6298 §5.3. A selective acknowledgment restarts the timer too, because RACK detects a
		// hole sooner.
		v.Kept.TLP.Due, v.Kept.TLP.inside = false, false
		v.Late = false
		v.ArmRTO(r.now)
		v.armProbe(r.now)
	}
}

// handleSACK marks the segments in the peer's SACK blocks (RFC 2018 §5).
func (r *Ack) handleSACK(blocks []buffer.Range, ack uint64) {
	v := r.v
	for i, b := range blocks {
		if b.Start >= b.End || b.End > v.snd.Nxt || b.Len() > 1<<31 {
			continue // the block is not of this connection
		}
		if i == 0 && (b.End <= ack || len(blocks) > 1 &&
			blocks[1].Start <= b.Start && b.End <= blocks[1].End) {
			// RFC 2883 §4: a first block below the acknowledgment, or within the second, reports
			// a duplicate.
			r.DSACK = b.End
			v.Kept.Counts.DSACKDups++
			v.undo.reported(b.Start, b.End)
			continue
		}
		if b.Start >= v.snd.Una && b.Start >= ack {
			r.markSacked(b.Start, b.End)
		}
	}
}

// markSacked marks the segments that lie in [start, end). It skips runs that are already marked,
// and stores the length of the run in its first segment. So a block that grows by one segment needs
// two steps, however long it is.
func (r *Ack) markSacked(start, end uint64) {
	v := r.v
	q := &v.Record
	from := q.find(start)
	id := from
	for q.has(id) {
		rec := q.at(id)
		if rec.end() > end {
			break
		}
		if rec.place == sacked {
			id += rec.skip
			continue
		}
		r.deliver(rec)
		q.move(id, rec, sacked)
		v.board.noteSacked(id)
		id++
	}
	if id != from {
		q.at(from).skip = id - from
	}
}

// loseOverdue marks segments as lost at a timeout: the first one, and all that should have arrived
// by now (RFC 8985 §6.3).
func (r *Ack) loseOverdue() {
	v := r.v
	q := &v.Record
	if q.at(q.first).place == sacked {
		// RFC 2018 §8: the peer may discard sacked data. If a sacked segment times out, the peer
		// has done so.
		for id := q.first; id != q.next; id++ {
			if rec := q.at(id); rec.place == sacked {
				q.move(id, rec, lost)
			}
		}
		v.board = scoreboard{judged: q.first, highest: q.first, tried: q.first}
	}
	for id := q.first; id != q.next; id++ {
		rec := q.at(id)
		if rec.place != inFlight || id != q.first && !v.strategy.overdue(v, r, rec) {
			continue
		}
		if rec.flags&recRetransmitted != 0 {
			v.Kept.Counts.LostRetransmits++
		}
		r.lose(id, rec)
	}
}

// deliver records that a segment has arrived. It is called once for each segment.
func (r *Ack) deliver(rec *record) {
	v := r.v
	r.Delivered += int(rec.size)
	r.segments++
	again := rec.flags&recRetransmitted != 0
	r.rtt.retransmitted = r.rtt.retransmitted || again
	if !again && rec.end() <= v.Episode.point {
		r.earlier += int(rec.size)
	}
	if !again {
		r.Largest = max(r.Largest, rec.payload())
		if r.rtt.first == clock.Never || rec.sentAt < r.rtt.first {
			r.rtt.first = rec.sentAt
		}
		r.rtt.last = max(r.rtt.last, rec.sentAt)
	}
	r.fack = max(r.fack, rec.end())
	if v.rack.order(rec.end(), again) {
		v.Kept.Counts.ReordSeen++
	}
	if !again || rec.place != inFlight || !r.Echo.before(rec.sentAt) {
		v.rack.update(rec, r.now, v.RTT.lowest())
	}
	r.Probed = r.Probed || rec.flags&MTUProbe != 0
	r.rate.note(&v.Record, rec)
}

// acknowledge removes the segments below a cumulative acknowledgment.
func (r *Ack) acknowledge(ack uint64) {
	v := r.v
	q := &v.Record
	if !q.Empty() {
		if rec := q.at(q.first); rec.flags&recRetransmitted != 0 {
			r.rtt.resentAt = rec.sentAt
		}
	}
	for !q.Empty() {
		rec := q.at(q.first)
		if rec.end() > ack {
			break
		}
		if rec.place != sacked {
			r.deliver(rec)
		}
		q.pop()
	}
	if q.Empty() {
		return
	}
	if rec := q.at(q.first); rec.seq < ack {
		n := int(ack - rec.seq)
		if rec.place != sacked {
			r.Delivered += n
		}
		q.cut(n)
	}
}

// lose marks a segment as lost, and reports whether the loss is a sign of congestion. The loss of
// an MTU probe is not (RFC 4821 §7.6.2).
func (r *Ack) lose(id uint32, rec *record) bool {
	v := r.v
	q := &v.Record
	q.move(id, rec, lost)
	if rec.flags&MTUProbe != 0 {
		rec.flags &^= MTUProbe
		r.LostProbes++
		return false
	}
	q.lost += uint64(rec.size)
	watcher, ok := v.CC.Controller.(congestion.LossWatcher)
	if !ok {
		return true
	}
	l := &v.shared.lostSegment
	*l = congestion.LostSegment{
		Now: r.now, Seq: rec.seq, Size: int(rec.size), TxInFlight: int(rec.pipe),
		LostSince: int(uint32(q.lost) - rec.lost), AppLimited: rec.flags&recAppLimited != 0,
		TotalDelivered: q.delivered, SentAt: rec.sentAt,
	}
	watcher.OnSegmentLost(l)
	return true
}

// holdsGrowth reports whether an acknowledgment must not grow the window. The window does not grow
// in fast recovery, or at an ECN mark (RFC 3168 §6.1.2). Before fast recovery it does not grow
// while only SACK reports data (RFC 3042 §2), unless the path reorders. Without SACK it does not
// grow at the end of fast recovery, because duplicates have grown it (RFC 5681 §3.2 step 6).
func (r *Ack) holdsGrowth() bool {
	v := r.v
	e := v.Episode.kind
	return e == recovering || r.Marked || r.restarted || r.recovering && !v.strategy.sack ||
		e == steady && r.advance == 0 && !v.rack.reordering
}

// credit returns the bytes for which the window may grow. In Tahoe's slow start, and after a
// timeout without SACK, data sent before the loss does not count, or the window would return to
// ssthresh at once. RFC 5681 §3.1 (2) counts at most one segment of that data when SND.UNA moves.
func (r *Ack) credit(mss int) int {
	switch {
	case !r.restarting:
		return r.Delivered
	case r.advance == 0:
		return r.Delivered - r.earlier
	}
	return max(r.Delivered-r.earlier, min(r.Delivered, mss))
}
