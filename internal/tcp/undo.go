package tcp

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
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

// beginUndo starts the books of an episode.
func (c *Conn) beginUndo(timeout bool) {
	c.resent = resent{}
	u := &c.undo
	*u = undo{
		from: c.snd.una, open: true, timeout: timeout, srtt: c.rtt.srtt, rttvar: c.rtt.rttvar,
		reduced: c.trouble.ecn.reduced, point: c.trouble.ecn.point,
	}
	if p := &c.trouble.tlp; p.end != 0 && p.again {
		u.sent(p.start, p.end) // the probe's copy will be reported too
	}
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

// reconsider takes an episode back once its retransmissions are disproved.
func (c *Conn) reconsider(now clock.Time, r *round) {
	if c.rec.kind == recovering && c.sent.count[lost] > 0 {
		return // some of it stands
	}
	if c.undo.disproved() || c.eifel(r) {
		c.takeBack(now)
	}
}

// eifel is RFC 3522 §3.2 steps 3 and 4: what was sent again first is acknowledged, and
// the echo is of a transmission before that. Another retransmission that is
// still out was needed, for all that is known.
func (c *Conn) eifel(r *round) bool {
	return r.advance > 0 && c.undo.open && c.undo.to != 0 && c.snd.una > c.undo.from &&
		(c.sent.empty() || c.sent.at(c.sent.first).flags&recAgain == 0) && c.echoesOriginal(r)
}

// takeBack is the Eifel response, RFC 4015 §3.1: transmission goes on with what
// was never sent (step 8), the congestion window is restored (step 9)
// and after a time-out the estimator learns from the delay (step 11). The window
// stays reduced if an echo asked for that as well (RFC 3168 §6.1.2).
func (c *Conn) takeBack(now clock.Time) {
	u := c.undo
	c.undo = undo{}
	c.trouble.undone++
	if u.timeout {
		c.stats.backoff = 0
		c.rtt.adapt(u.srtt, u.rttvar)
	} else {
		// What was sent again had been overtaken. RFC 8985 §6.2 step 3 sees that only where the
		// original arrives before it was sent again, and without it step 4 knows no window.
		c.rack.reordering = true
	}
	if c.rec.kind == restarting {
		c.sent.restore()
		// What was in flight was overtaken by its own retransmission; that is no reordering.
		c.rack.sentAt, c.rack.end = clock.Never, 0
		c.timers[timerReorder] = clock.Never
	}
	switch {
	case !u.marked:
		c.withdrawReduction(&u)
		c.exitRecovery(now, true)
	case c.rec.kind != steady:
		c.exitRecovery(now, false)
	}
}

// exitRecovery closes an episode, or takes the last one back.
func (c *Conn) exitRecovery(now clock.Time, spurious bool) {
	e := &c.host.exit
	*e = congestion.Exit{
		Now: now, InFlight: c.pipe(), MSS: c.snd.mss, Spurious: spurious, Ceiling: c.endUse(),
	}
	c.cc.OnExit(e)
	if c.rec.kind != steady && !spurious {
		c.disturbed(now)
		c.rack.forget()
	}
	c.rec = recovery{point: c.rec.point}
	c.sample(now)
}
