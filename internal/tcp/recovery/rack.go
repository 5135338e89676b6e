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

// rack is RACK's state, RFC 8985 §5.3: loss is told by time, not by counting.
type rack struct {
	sentAt     clock.Time // when the most recently sent delivered segment was sent,
	end        uint64     // and where it ends
	fack       uint64     // the highest end that was delivered
	dsackRound uint64     // duplicates within one round count once
	patience
}

// patience is what RACK has learnt of the path.
type patience struct {
	rtt        time.Duration
	mult       int32 // quarters of the minimum round trip to wait
	persist    int8  // Host until mult is forgotten
	reordering bool  // this path has been seen to reorder
}

// order is §6.2 step 3: a segment sent once that is delivered after a later one
// was shows reordering. What one acknowledgment reports has no order: those that
// reported its parts one by one may be lost.
func (k *rack) order(end uint64, again bool) (reordered bool) {
	reordered = end < k.fack && !again
	k.reordering = k.reordering || reordered
	return reordered
}

// update is step 2, for one delivered segment: the most recently sent one counts. A retransmission
// that comes back sooner than the path allows says nothing: it was the original that arrived.
func (k *rack) update(rec *record, now clock.Time, minRTT time.Duration) {
	d := now.Sub(rec.sentAt)
	if rec.flags&recAgain != 0 && d < minRTT {
		return
	}
	if rec.sentAt > k.sentAt || rec.sentAt == k.sentAt && rec.end() > k.end {
		k.sentAt, k.end, k.rtt = rec.sentAt, rec.end(), d
	}
}

// adaptReordering is step 4's DSACK part: the path delivered what we thought
// lost, so wait longer; sixteen Host without that, and no more.
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

// maxReorderSteps bounds RFC 8985 §6.2's reo_wnd_mult, beside SRTT. Where a few packets come
// without the path's delay, a quarter of the least round trip is next to nothing, and hundreds are
// needed.
const maxReorderSteps = 1 << 10

// forget is called as a recovery ends.
func (k *patience) forget() {
	if k.persist--; k.persist <= 0 {
		k.persist, k.mult = 0, 1
	}
}

// wait is how long a segment may be on its way, with step 4's window for one that later ones
// overtook.
func (timing) wait(v *Recovery) time.Duration {
	k := &v.rack
	if !k.reordering && (v.Episode.kind != steady || v.Record.count[sacked] >= DupThresh) {
		return k.rtt
	}
	return k.rtt + min(time.Duration(k.mult)*v.RTT.lowest()/4, v.RTT.SRTT)
}

// detect is step 5, on an acknowledgment and when the reordering timer goes off. The flight list is
// in order of transmission, so the walk ends at the first segment that may still arrive.
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
			// The next to be overdue sets the timer; RFC 8985 waits for the last, which needs
			// the whole walk and finds the first later.
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

// overdue is §6.3: a time-out takes for lost what has had its round trip and
// the reordering window, and leaves alone what was sent a moment ago.
func (t timing) overdue(v *Recovery, r *Ack, rec *record) bool {
	return rec.sentAt.Add(t.wait(v)) <= r.now
}
