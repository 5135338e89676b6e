package recovery

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// rackTLP is RFC 8985, the default.
var rackTLP = strategy{
	name: "rack", sack: true, probes: true, forward: true,
	detector: timing{},
}

type timing struct{ simple }

// rack is RACK's state, RFC 8985 §5.3: it detects losses by time, not by counting.
type rack struct {
	sentAt     clock.Time // when the most recently sent delivered segment was sent,
	end        uint64     // and where it ends
	fack       uint64     // the highest end that was delivered
	dsackRound uint64     // duplicates within one round count once
	patience
}

// patience is what RACK has learned about reordering on the path.
type patience struct {
	rtt        time.Duration
	mult       int32 // quarters of the minimum round trip to wait
	persist    int8  // recoveries until mult is reset
	reordering bool  // this path has been seen to reorder
}

// order is §6.2 step 3: reordering is the delivery of a segment, sent once, after a later one.
// Segments that one acknowledgment reports have no order among them, because earlier
// acknowledgments may be lost.
func (k *rack) order(end uint64, again bool) (reordered bool) {
	reordered = end < k.fack && !again
	k.reordering = k.reordering || reordered
	return reordered
}

// update is step 2, for a delivered segment: the most recently sent one counts. If a retransmission
// seems to arrive faster than the path allows, the original has arrived, and it does not count.
func (k *rack) update(rec *record, now clock.Time, minRTT time.Duration) {
	d := now.Sub(rec.sentAt)
	if rec.flags&recAgain != 0 && d < minRTT {
		return
	}
	if rec.sentAt > k.sentAt || rec.sentAt == k.sentAt && rec.end() > k.end {
		k.sentAt, k.end, k.rtt = rec.sentAt, rec.end(), d
	}
}

// adaptReordering is the DSACK part of step 4: a retransmission was spurious, so wait longer. The
// wait ends after sixteen recoveries without DSACK.
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

// maxReorderSteps bounds RFC 8985 §6.2's reo_wnd_mult, which SRTT bounds as well. If some packets
// arrive far below the usual delay, a quarter of the minimum round trip is tiny, and hundreds of
// steps are needed.
const maxReorderSteps = 1 << 10

// forget is called at the end of a recovery.
func (k *patience) forget() {
	if k.persist--; k.persist <= 0 {
		k.persist, k.mult = 0, 1
	}
}

// wait returns how long a segment may take before it counts as lost: a round trip, plus step 4's
// reordering window.
func (timing) wait(v *Recovery) time.Duration {
	k := &v.rack
	if !k.reordering && (v.Episode.kind != steady || v.Record.count[sacked] >= DupThresh) {
		return k.rtt
	}
	return k.rtt + min(time.Duration(k.mult)*v.RTT.lowest()/4, v.RTT.SRTT)
}

// detect is step 5, on an acknowledgment and when the reordering timer expires. The flight list is
// ordered by transmission, so the walk ends at the first segment that may still arrive.
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
			// Set the timer for the next segment. RFC 8985 sets it for the last, which takes the
			// whole walk and detects the first loss later.
			r.reorder = due
			return
		}
		if rec.flags&recAgain != 0 {
			v.Kept.Counts.LostRetransmits++
		}
		if r.lose(id, rec) {
			r.lost++
		}
	}
}

// overdue is §6.3: at a timeout, segments sent longer ago than a round trip plus the reordering
// window are lost; later ones are not.
func (t timing) overdue(v *Recovery, r *Ack, rec *record) bool {
	return rec.sentAt.Add(t.wait(v)) <= r.now
}
