package recovery

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// undo records the retransmissions of the last loss episode, until D-SACKs (RFC 3708 §3, RFC 2883)
// or timestamps (RFC 3522) show that all of them were spurious. It outlives the episode, because
// the last D-SACK comes a round trip after the last retransmission.
type undo struct {
	from, to uint64 // the range of retransmissions; to is zero before the first
	owed     int    // retransmitted bytes that are not reported as duplicates yet
	open     bool   // the reduction can still be undone
	timeout  bool   // a timeout started the episode
	marked   bool   // an ECN mark was echoed since, so there is congestion
	reduced  bool   // CWR for an earlier reduction was still due
	point    uint64 // ecn.point of the earlier reduction
	// The estimator's state that RFC 4015 §3.1 step 0 saves at a timeout.
	srtt, rttvar time.Duration
	resent       Echo // the tick of the first retransmission, if any
}

// sent records that [start, end) was retransmitted.
func (u *undo) sent(start, end uint64) {
	if u.open {
		u.to = max(u.to, end)
		u.owed += int(end - start)
	}
}

// reported processes a D-SACK of [start, end). If the episode has not retransmitted that range, the
// network has duplicated it, and all D-SACKs are then ignored (RFC 3708 §3).
func (u *undo) reported(start, end uint64) {
	if !u.open || end <= u.from {
		return
	}
	if u.owed -= int(end - max(start, u.from)); end > u.to || u.owed < 0 {
		u.open = false
	}
}

// spurious reports whether to undo an episode. Either D-SACKs report all of its retransmissions, or
// RFC 3522 §3.2 steps 3 and 4 hold: the acknowledgment of the first retransmission echoes the
// timestamp of an earlier transmission. It reports false if another retransmission is still in
// flight, or both transmissions have the same tick.
func (r *Ack) spurious() bool {
	v := r.v
	u := &v.undo
	switch {
	case v.Episode.kind == recovering && v.Record.count[lost] > 0:
		return false // some losses are not repaired yet
	case u.open && u.to != 0 && u.owed == 0:
		return true // all retransmitted data has arrived twice
	}
	return r.advance > 0 && u.open && u.to != 0 && v.snd.Una > u.from &&
		(v.Record.Empty() || v.Record.at(v.Record.first).flags&recRetransmitted == 0) &&
		u.resent.Known && r.Echo.Known && later(u.resent.Tick, r.Echo.Tick)
}

// noteResent records when an episode first retransmitted.
func (u *undo) noteResent(now clock.Time) {
	if !u.resent.Known {
		u.resent = Echo{Tick: Tick(now), Known: true}
	}
}

// begin starts recording an episode's retransmissions.
func (u *undo) begin(v *Recovery, timeout bool) {
	*u = undo{
		from: v.snd.Una, open: true, timeout: timeout, srtt: v.RTT.SRTT, rttvar: v.RTT.rttvar,
		reduced: v.Kept.ECN.reduced, point: v.Kept.ECN.point,
	}
	if p := &v.Kept.TLP; p.end != 0 && p.repeated {
		u.sent(p.start, p.end) // the probe's copy will be reported too
	}
}

// undoEpisode undoes an episode by the Eifel response (RFC 4015 §3.1). It continues with new data
// (step 8), restores the congestion window (step 9), and after a timeout adapts the estimator to
// the delay (step 11). The window stays reduced if an ECN echo also required that (RFC 3168
// §6.1.2).
func (r *Ack) undoEpisode() {
	v := r.v
	u := v.undo
	v.undo = undo{}
	v.Kept.Counts.Undone++
	if u.timeout {
		v.Backoff = 0
		v.RTT.keepSRTT, v.RTT.keepVar = u.srtt, u.rttvar
	} else {
		// The retransmitted segments were only reordered. RFC 8985 §6.2 step 3 detects that only
		// for a segment that was never retransmitted, so set the flag for step 4 here.
		v.rack.reordering = true
	}
	if v.Episode.kind == restarting {
		v.Record.restore()
		// A segment that its own retransmission overtook is not reordered.
		v.rack.sentAt, v.rack.end = clock.Never, 0
		v.At.Reorder = clock.Never
	}
	switch {
	case !u.marked:
		// RFC 3168 §6.1.2: CWR announces a reduction. A reduction that is undone needs no CWR, but
		// an earlier one that was not announced yet still does. The next echo counts again.
		e := &v.Kept.ECN
		e.reduced, e.point = e.reduced && u.reduced, u.point
		v.exit(r.now, true)
	case v.Episode.kind != steady:
		v.exit(r.now, false)
	}
}
