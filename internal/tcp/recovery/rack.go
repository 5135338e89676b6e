package recovery

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// rackTLP implements RFC 8985. It is the default.
var rackTLP = strategy{
	name: "rack", sack: true, probes: true, forward: true,
	detector: timing{},
}

type timing struct{ simple }

// rack is the state of RACK (RFC 8985 §5.3), which detects losses by time, not by counting.
type rack struct {
	sentAt     clock.Time // time of the latest transmission that was delivered
	end        uint64     // end of the segment of that transmission
	fack       uint64     // the highest end that was delivered
	dsackRound uint64     // SND.NXT at the last DSACK; the next counts once SND.UNA has passed it
	reorderState
}

// reorderState is the state of RACK that idle connections keep: what it knows about reordering.
type reorderState struct {
	rtt        time.Duration
	mult       int32 // quarters of the minimum round trip to wait
	persist    int8  // recoveries until mult is reset
	reordering bool  // this path has been seen to reorder
}

// order detects reordering (§6.2 step 3): the delivery of a segment, sent once, after a later one.
// Segments that one acknowledgment reports have no order among them, because earlier
// acknowledgments may be lost.
func (k *rack) order(end uint64, again bool) (reordered bool) {
	reordered = end < k.fack && !again
	k.reordering = k.reordering || reordered
	return reordered
}

// update records a delivered segment (step 2). The most recently sent one counts. If a
// retransmission seems to arrive faster than the path allows, the original has arrived, so the
// retransmission does not count.
func (k *rack) update(rec *record, now clock.Time, minRTT time.Duration) {
	d := now.Sub(rec.sentAt)
	if rec.flags&recRetransmitted != 0 && d < minRTT {
		return
	}
	if rec.sentAt > k.sentAt || rec.sentAt == k.sentAt && rec.end() > k.end {
		k.sentAt, k.end, k.rtt = rec.sentAt, rec.end(), d
	}
}

// adaptReordering makes RACK wait longer if a DSACK shows that a retransmission was spurious (step
// 4). The longer wait ends after sixteen recoveries without DSACK.
func (k *rack) adaptReordering(r *Ack, snd *Space, probeEnd uint64) {
	if r.DSACK == 0 || r.DSACK == probeEnd {
		return // the duplicate of a tail probe says nothing about order
	}
	if k.dsackRound != 0 && snd.Una < k.dsackRound {
		return
	}
	k.dsackRound = snd.Nxt
	k.mult = min(k.mult+1, maxReorderSteps)
	k.persist = 16
}

// maxReorderSteps bounds reo_wnd_mult of RFC 8985 §6.2, which SRTT bounds as well. If some packets
// arrive long before the others, a quarter of the minimum round trip is tiny, and RACK needs
// hundreds of steps.
const maxReorderSteps = 1 << 10

// forget counts the end of a recovery, and resets mult when persist reaches zero.
func (k *reorderState) forget() {
	if k.persist--; k.persist <= 0 {
		k.persist, k.mult = 0, 1
	}
}

// wait returns how long after its transmission a segment counts as lost: a round trip, plus the
// reordering window of step 4.
func (timing) wait(v *Recovery) time.Duration {
	k := &v.rack
	if !k.reordering && (v.Episode.kind != steady || v.Record.count[sacked] >= DupThresh) {
		return k.rtt
	}
	return k.rtt + min(time.Duration(k.mult)*v.RTT.lowest()/4, v.RTT.SRTT)
}

// detect marks segments as lost (step 5), on an acknowledgment and when the reordering timer
// expires. The flight list is ordered by transmission, so the walk ends at the first segment that
// may still arrive.
func (t timing) detect(v *Recovery, r *Ack) {
	k, q := &v.rack, &v.Record
	wait := t.wait(v)
	for l := &q.lists[inFlight]; l.n > 0; {
		id := l.head
		rec := q.at(id)
		if rec.sentAt > k.sentAt || rec.sentAt == k.sentAt && rec.end() >= k.end {
			return
		}
		if due := rec.sentAt.Add(wait); due > r.now {
			// Set the timer for the next segment. RFC 8985 sets it for the last one, which needs
			// the whole walk and detects the first loss later.
			r.reorder = due
			return
		}
		if rec.flags&recRetransmitted != 0 {
			v.Kept.Counts.LostRetransmits++
		}
		if r.lose(id, rec) {
			r.lost++
		}
	}
}

// overdue reports whether a segment is lost at a timeout (§6.3): it was sent longer ago than a
// round trip plus the reordering window.
func (t timing) overdue(v *Recovery, r *Ack, rec *record) bool {
	return rec.sentAt.Add(t.wait(v)) <= r.now
}
