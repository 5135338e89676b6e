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

// disproved reports whether all that was sent again has arrived twice.
func (u *undo) disproved() bool { return u.open && u.to != 0 && u.owed == 0 }

// spurious reports whether an episode is to be taken back, because its retransmissions are
// disproved.
func (v *recovery) spurious(r *round) bool {
	if v.kind == recovering && v.sent.count[lost] > 0 {
		return false // some of it stands
	}
	return v.undo.disproved() || v.eifel(r)
}

// eifel is RFC 3522 §3.2 steps 3 and 4: what was sent again first is acknowledged, and
// the echo is of a transmission before that. Another retransmission that is
// still out was needed, for all that is known. A stamp of the same tick decides nothing.
func (v *recovery) eifel(r *round) bool {
	return r.advance > 0 && v.undo.open && v.undo.to != 0 && r.snd.una > v.undo.from &&
		(v.sent.empty() || v.sent.at(v.sent.first).flags&recAgain == 0) &&
		v.resent.known && r.echo.known && after(v.resent.tick, r.echo.tick)
}

// resent is the tick of the first retransmission of an episode of losses, once there was one.
type resent struct {
	tick  uint32
	known bool
}

// noteResent remembers the tick of the first retransmission of an episode.
func (v *recovery) noteResent(now clock.Time) {
	if !v.resent.known {
		v.resent = resent{stampClock(now), true}
	}
}
