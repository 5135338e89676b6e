package recovery

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// undo remembers what the last loss episode retransmitted, until duplicate reports (RFC 3708 §3,
// RFC 2883) or timestamps (RFC 3522) show that none of it was needed. It outlives the episode,
// because the last report comes a round trip after the last retransmission.
type undo struct {
	from, to uint64 // what was sent again lies between; to is zero before anything was
	owed     int    // bytes sent again and not reported as duplicates yet
	open     bool   // there is something to take back
	timeout  bool   // a time-out began it
	marked   bool   // a router's mark was echoed since: there is congestion
	reduced  bool   // the peer was to be told of a reduction before it, and
	point    uint64 // how far that one reached
	// What RFC 4015 §3.1 step 0 saves of the estimator as a time-out comes.
	srtt, rttvar time.Duration
	resent       Echo // the tick of the first retransmission, once there was one
}

// sent notes that [start, end) was sent again.
func (u *undo) sent(start, end uint64) {
	if u.open {
		u.to = max(u.to, end)
		u.owed += int(end - start)
	}
}

// reported takes a duplicate report of [start, end). One of what this episode
// did not send again, or of more than that, was made by the network: RFC 3708
// §3 then takes the reports for no evidence.
func (u *undo) reported(start, end uint64) {
	if !u.open || end <= u.from {
		return
	}
	if u.owed -= int(end - max(start, u.from)); end > u.to || u.owed < 0 {
		u.open = false
	}
}

// spurious reports whether an episode is to be undone: the retransmissions are all reported as
// duplicates, or RFC 3522 §3.2 steps 3 and 4 hold. The first retransmission is acknowledged, and
// the echo is of an earlier transmission. The episode stands if another retransmission is still
// out, or both have the same tick.
func (r *Ack) spurious() bool {
	v := r.v
	u := &v.undo
	switch {
	case v.Episode.kind == recovering && v.Record.count[lost] > 0:
		return false // some of it stands
	case u.open && u.to != 0 && u.owed == 0:
		return true // all that was retransmitted has arrived twice
	}
	return r.advance > 0 && u.open && u.to != 0 && v.snd.Una > u.from &&
		(v.Record.Empty() || v.Record.at(v.Record.first).flags&recAgain == 0) &&
		u.resent.Known && r.Echo.Known && later(u.resent.Tick, r.Echo.Tick)
}

// noteResent remembers when an episode first retransmitted.
func (u *undo) noteResent(now clock.Time) {
	if !u.resent.Known {
		u.resent = Echo{Tick: Tick(now), Known: true}
	}
}

// begin begins to remember what an episode retransmits.
func (u *undo) begin(v *Recovery, timeout bool) {
	*u = undo{
		from: v.snd.Una, open: true, timeout: timeout, srtt: v.RTT.SRTT, rttvar: v.RTT.rttvar,
		reduced: v.Kept.ECN.reduced, point: v.Kept.ECN.point,
	}
	if p := &v.Kept.TLP; p.end != 0 && p.again {
		u.sent(p.start, p.end) // the probe's copy will be reported too
	}
}

// takeBack is the Eifel response, RFC 4015 §3.1: transmission goes on with what
// was never sent (step 8), the congestion window is restored (step 9)
// and after a time-out the estimator learns from the delay (step 11). The window
// stays reduced if an echo asked for that as well (RFC 3168 §6.1.2).
func (r *Ack) takeBack() {
	v := r.v
	u := v.undo
	v.undo = undo{}
	v.Kept.Counts.Undone++
	if u.timeout {
		v.Backoff = 0
		v.RTT.keepSRTT, v.RTT.keepVar = u.srtt, u.rttvar
	} else {
		// What was sent again had been overtaken. RFC 8985 §6.2 step 3 sees that only where the
		// original arrives before it was sent again, and without it step 4 knows no window.
		v.rack.reordering = true
	}
	if v.Episode.kind == restarting {
		v.Record.restore()
		// What was in flight was overtaken by its own retransmission; that is no reordering.
		v.rack.sentAt, v.rack.end = clock.Never, 0
		v.At.Reorder = clock.Never
	}
	switch {
	case !u.marked:
		// RFC 3168 §6.1.2 has CWR say that the window was reduced, so it is not said of this one,
		// unless one before it is still to be told; and the next echo counts.
		e := &v.Kept.ECN
		e.reduced, e.point = e.reduced && u.reduced, u.point
		v.exit(r.now, true)
	case v.Episode.kind != steady:
		v.exit(r.now, false)
	}
}
