package tcp

import (
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
)

// beginRound returns the round of what happens now: the host's, until it begins another.
func (c *Conn) beginRound(now clock.Time) *round {
	r := &c.host.round
	*r = round{}
	r.now, r.flight, r.prior = now, int(c.snd.nxt-c.snd.una), c.rec.pipe()
	r.snd.una, r.snd.nxt, r.snd.mss = c.snd.una, c.snd.nxt, c.snd.mss
	r.snd.minRTT, r.snd.srtt = c.rtt.lowest(), c.rtt.srtt
	r.snd.how, r.snd.cc, r.snd.counts = c.how, c.cc.Controller, &c.trouble.counts
	return r
}

// recover enters, continues and leaves recovery after an acknowledgment.
func (c *Conn) recover(now clock.Time, r *round) {
	v := &c.rec
	r.recovering = v.kind == recovering
	r.restarting = v.kind == restarting && (v.over || !c.how.sack)
	if v.kind == restarting && c.snd.una < v.point &&
		v.lookForward(r, c.snd.unsent() > 0 && c.snd.usable() > 0) {
		c.takeBack(now)
	}
	if v.kind != steady && c.snd.una >= v.point {
		c.exitRecovery(now, false)
		v.leapt = r.restarting && r.advance > 4*c.snd.mss
		r.lost += v.sent.count[lost] // what was lost since belongs to a new episode
	}
	if v.spurious(r) {
		c.takeBack(now)
	}
	if v.kind == steady && r.lost > 0 {
		c.enterRecovery(now, r)
	}
	if v.kind == recovering {
		v.reduceProportionally(r)
	}
}

func (c *Conn) enterRecovery(now clock.Time, r *round) {
	v := &c.rec
	c.trouble.counts.FastRecoveries++
	c.disturbed(now)
	v.kind = recovering
	v.point = c.snd.nxt
	v.board.rescued = false
	c.beginUndo(false)
	c.trouble.tlp = tlp{}
	c.flags &^= flagOverslept
	c.timers[timerProbe] = clock.Never
	c.cc.OnLoss(c.lossEvent(now, congestion.Detected, r.flight))
	if c.cc.Cwnd() < c.cc.Ssthresh() {
		v.startOver(r)
	} else {
		// RFC 9937 §6.1: what was delivered before recovery is not delivered in it.
		v.delivered, v.out = 0, 0
		before := v.sent.bytes[sacked] + v.dupBytes - (r.delivered - r.advance)
		v.flight = max(r.flight-max(before, 0), c.snd.mss)
	}
	c.sample(now)
}

// goBack begins the recovery of a sender that goes back.
func (c *Conn) goBack(now clock.Time, r *round) {
	c.beginUndo(true)
	c.rec.episode = episode{
		kind: restarting, point: c.snd.nxt, timedOut: c.snd.una, force: true,
	}
	c.cc.OnLoss(c.lossEvent(now, congestion.Detected, r.flight))
	c.sample(now)
}

// exitRecovery closes an episode, or takes the last one back.
func (c *Conn) exitRecovery(now clock.Time, spurious bool) {
	e := &c.host.exit
	*e = congestion.Exit{
		Now: now, InFlight: c.rec.pipe(), MSS: c.snd.mss, Spurious: spurious, Ceiling: c.endUse(),
	}
	c.cc.OnExit(e)
	if c.rec.kind != steady && !spurious {
		c.disturbed(now)
		c.rec.rack.forget()
	}
	c.rec.episode = episode{point: c.rec.point}
	c.sample(now)
}

func (c *Conn) lossEvent(now clock.Time, k congestion.Kind, flight int) *congestion.Loss {
	c.trouble.ecn.note(c.has(flagECN), c.snd.nxt)
	if k == congestion.Detected || k == congestion.Echo {
		flight = c.limit.batch.flightSize(now, flight, c.stats.dataSegsOut)
	}
	l := &c.host.loss
	*l = congestion.Loss{
		Now: now, Kind: k, MSS: c.snd.mss,
		FlightSize: c.lossFlight(now, k, flight), InFlight: c.rec.pipe(),
	}
	return l
}

// allowance returns how many bytes congestion control lets out now.
func (c *Conn) allowance() int {
	pipe := c.rec.pipe()
	if c.rec.kind == recovering && c.cc.Ssthresh() != 0 {
		left := c.rec.cwnd - pipe
		if left <= 0 {
			return 0
		}
		// In whole segments: the excess is in out, and the next acknowledgment allows less.
		return max(left, c.snd.mss)
	}
	return c.cc.Cwnd() - pipe
}

// beginUndo begins to remember what an episode retransmits.
func (c *Conn) beginUndo(timeout bool) {
	c.rec.resent = resent{}
	u := &c.rec.undo
	*u = undo{
		from: c.snd.una, open: true, timeout: timeout, srtt: c.rtt.srtt, rttvar: c.rtt.rttvar,
		reduced: c.trouble.ecn.reduced, point: c.trouble.ecn.point,
	}
	if p := &c.trouble.tlp; p.end != 0 && p.again {
		u.sent(p.start, p.end) // the probe's copy will be reported too
	}
}

// takeBack is the Eifel response, RFC 4015 §3.1: transmission goes on with what
// was never sent (step 8), the congestion window is restored (step 9)
// and after a time-out the estimator learns from the delay (step 11). The window
// stays reduced if an echo asked for that as well (RFC 3168 §6.1.2).
func (c *Conn) takeBack(now clock.Time) {
	v := &c.rec
	u := v.undo
	v.undo = undo{}
	c.trouble.counts.Undone++
	if u.timeout {
		c.stats.backoff = 0
		c.rtt.adapt(u.srtt, u.rttvar)
	} else {
		// What was sent again had been overtaken. RFC 8985 §6.2 step 3 sees that only where the
		// original arrives before it was sent again, and without it step 4 knows no window.
		v.rack.reordering = true
	}
	if v.kind == restarting {
		v.sent.restore()
		// What was in flight was overtaken by its own retransmission; that is no reordering.
		v.rack.sentAt, v.rack.end = clock.Never, 0
		c.timers[timerReorder] = clock.Never
	}
	switch {
	case !u.marked:
		c.trouble.ecn.withdraw(&u)
		c.exitRecovery(now, true)
	case v.kind != steady:
		c.exitRecovery(now, false)
	}
}
