package tcp

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// undo remembers what the last loss episode sent again, until the peer's
// duplicate reports show that none of it was needed, RFC 3708 §3 with the reports
// of RFC 2883, or its timestamps, RFC 3522. It outlives the episode, because the
// last report comes a round trip after the last retransmission.
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
	resent       resent
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

// spurious reports whether an episode is to be taken back: its retransmissions are disproved, or
// RFC 3522 §3.2 steps 3 and 4 hold. What was sent again first is acknowledged, and the echo is of a
// transmission before that. Another retransmission that is still out was needed, for all that is
// known. A stamp of the same tick decides nothing.
func (v *recovery) spurious(r *round) bool {
	u := &v.undo
	switch {
	case v.ep.kind == recovering && v.sent.count[lost] > 0:
		return false // some of it stands
	case u.open && u.to != 0 && u.owed == 0:
		return true // all that was retransmitted has arrived twice
	}
	return r.advance > 0 && u.open && u.to != 0 && v.snd.Una > u.from &&
		(v.sent.empty() || v.sent.at(v.sent.first).flags&recAgain == 0) &&
		u.resent.known && r.echo.known && after(u.resent.tick, r.echo.tick)
}

// resent is the tick of the first retransmission of an episode of losses, once there was one.
type resent struct {
	tick  uint32
	known bool
}

// noteResent remembers the tick of the first retransmission of an episode.
func (u *undo) noteResent(now clock.Time) {
	if !u.resent.known {
		u.resent = resent{stampClock(now), true}
	}
}

// beginUndo begins to remember what an episode retransmits.
func (v *recovery) beginUndo(timeout bool) {
	v.undo = undo{
		from: v.snd.Una, open: true, timeout: timeout, srtt: v.rtt.srtt, rttvar: v.rtt.rttvar,
		reduced: v.lasting.ecn.reduced, point: v.lasting.ecn.point,
	}
	if p := &v.lasting.tlp; p.end != 0 && p.again {
		v.undo.sent(p.start, p.end) // the probe's copy will be reported too
	}
}

// takeBack is the Eifel response, RFC 4015 §3.1: transmission goes on with what
// was never sent (step 8), the congestion window is restored (step 9)
// and after a time-out the estimator learns from the delay (step 11). The window
// stays reduced if an echo asked for that as well (RFC 3168 §6.1.2).
func (v *recovery) takeBack(now clock.Time) {
	u := v.undo
	v.undo = undo{}
	v.lasting.counts.Undone++
	if u.timeout {
		v.backoff = 0
		v.rtt.adapt(u.srtt, u.rttvar)
	} else {
		// What was sent again had been overtaken. RFC 8985 §6.2 step 3 sees that only where the
		// original arrives before it was sent again, and without it step 4 knows no window.
		v.rack.reordering = true
	}
	if v.ep.kind == restarting {
		v.sent.restore()
		// What was in flight was overtaken by its own retransmission; that is no reordering.
		v.rack.sentAt, v.rack.end = clock.Never, 0
		v.at.reorder = clock.Never
	}
	switch {
	case !u.marked:
		// RFC 3168 §6.1.2 has CWR say that the window was reduced, so it is not said of this one,
		// unless one before it is still to be told; and the next echo counts.
		e := &v.lasting.ecn
		e.reduced, e.point = e.reduced && u.reduced, u.point
		v.exit(now, true)
	case v.ep.kind != steady:
		v.exit(now, false)
	}
}
