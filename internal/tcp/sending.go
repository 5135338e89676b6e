package tcp

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
	"github.com/tidepool-net/tidepool/internal/tcp/recovery"
)

// sending is the data that a sender sends next, perhaps with the FIN.
type sending struct {
	recovery.Span
	fresh bool  // ordinary data that was never sent
	why   Limit // why the span is not longer
}

// next fills s with the next data to send, at most room segments, and reports whether any may leave
// now. The order is: probes, retransmissions, new data, and finally segments that may be lost.
func (d *sender) next(now clock.Time, room int, s *sending) bool {
	if d.rec.CC.Controller == nil && !d.begins(now) {
		return false
	}
	room = d.rec.Pace(min(room, d.trainLimit()))
	if d.persist.due && d.windowProbe(now, s) || d.rec.Kept.TLP.Due && d.tailProbe(now, s) {
		return true
	}
	if n, only := d.rec.Episode.Fresh(); only {
		if d.newData(now, room, min(d.rec.Allowance(), n), s) {
			return true
		}
		if !d.rec.Episode.EndForward(d.MSS) {
			return false
		}
	}
	if d.rec.Record.Lost() {
		return d.lost(now, room, s)
	}
	if d.path.due(now) {
		if sent, hold := d.mtuProbe(now, s); sent || hold {
			return sent
		}
	}
	return d.newData(now, room, d.rec.Allowance(), s) ||
		d.rec.Spare(now) && d.lost(now, room, s)
}

// begins creates the congestion controller when the first data or FIN is ready. Until then it
// reports false.
func (d *sender) begins(now clock.Time) bool {
	if !d.waits() {
		d.limitBy(now, LimitIdle)
		d.rec.AppLimited()
		return false
	}
	d.rec.Begin(d.congestion(now))
	return true
}

// congestion returns the part of the controller's configuration that recovery does not know.
func (d *sender) congestion(now clock.Time) congestion.Config {
	return congestion.Config{
		Now: now, Burst: d.trainLimit(), Seed: d.iss ^ uint64(d.port)<<48,
	}
}

// trainLimit returns the maximum segments of a train.
func (d *sender) trainLimit() int {
	return max(1, min(d.cfg.TrainSegments, maxTrainBytes/(d.MSS+60)))
}

// lost retransmits lost segments. Adjacent segments of equal size form one train.
func (d *sender) lost(now clock.Time, room int, s *sending) bool {
	if !d.rec.MayResend() {
		why := LimitRecovery
		if d.rec.Episode.Open() {
			why = LimitCwnd
		}
		d.limitBy(now, why)
		return false
	}
	if d.holds(now, d.rec.Pacer.Holds(now), LimitPacing) {
		return false
	}
	s.Span = d.rec.Resend(now, room)
	return true
}

// holds reports whether data must wait until an instant, and starts the timer for it.
func (d *sender) holds(now, until clock.Time, why Limit) bool {
	if until == clock.Never {
		return false
	}
	d.limitBy(now, why)
	d.pace = until
	return true
}

// newData sends new data within the peer's window and the congestion window, subject to silly
// window avoidance and Nagle's algorithm.
func (d *sender) newData(now clock.Time, room, allowed int, s *sending) bool {
	waiting := d.unsent()
	finish := d.finishes(now, waiting)
	if waiting == 0 && !finish {
		d.allSent(now)
		return false
	}
	// A train holds at least one segment, even if that is longer than maxTrainBytes.
	most := min(room*d.MSS, max(maxTrainBytes, d.MSS))
	n, why := d.admitted(now, waiting, most, allowed)
	finish = finish && n == waiting && d.usable() > n
	if n == 0 && !finish {
		if why == LimitNone && waiting == 0 {
			why = LimitReceiver // a FIN that the window does not admit
		}
		switch {
		case why == LimitReceiver && d.rec.Record.Empty():
			d.startProbing(now)
			why = LimitPersist
		case why != LimitReceiver && waiting < d.MSS:
			d.rec.AppLimited() // the application has written less than a segment
		}
		d.limitBy(now, why)
		return false
	}
	if n > 0 && (d.holds(now, d.rec.Kept.ECN.Holds(now), LimitCwnd) ||
		d.holds(now, d.rec.Pacer.Holds(now), LimitPacing)) {
		return false
	}
	if n > 0 && d.rec.Record.Empty() {
		// RFC 5681 §4.1: after an idle period, before the window is used.
		d.rec.Restart(now)
		n, why = d.admitted(now, waiting, most, min(allowed, d.rec.Allowance()))
		finish = finish && n == waiting
	}
	s.fresh, s.why = true, why
	d.record(now, n, finish, s)
	return true
}

// allSent records that all written data has been sent.
func (d *sender) allSent(now clock.Time) {
	switch {
	case d.rec.Record.Empty():
		d.limitBy(now, LimitIdle)
	case d.tx.Free() < d.MSS:
		d.limitBy(now, LimitBuffer)
	default:
		d.limitBy(now, LimitApp)
	}
	d.rec.AppLimited()
}

// record adds new data to the sent queue and starts its timers.
func (d *sender) record(now clock.Time, n int, finish bool, s *sending) {
	seq, mss := d.Nxt, d.MSS
	s.Span = recovery.Span{Seq: seq, N: n, MSS: mss, FIN: finish}
	if n%mss != 0 {
		d.smallEnd = seq + uint64(n)
		d.nagle.corkExpired = false // hold the next short segment again
		d.corkEnds = clock.Never
	}
	d.Nxt = seq + uint64(n)
	if finish {
		d.fin = d.Nxt
		d.Nxt++
	}
	for {
		size, flags := min(n, mss), recovery.Flags(0)
		if n -= size; n == 0 && finish {
			size, flags = size+1, recovery.FIN
		}
		d.rec.Push(now, seq, size, flags)
		if n == 0 {
			break
		}
		seq += uint64(size)
	}
	d.armSent(now)
}

func (d *sender) armSent(now clock.Time) {
	if d.rec.Arm(now) {
		d.wait.since = now
		d.wait.watch(now)
	}
}

// tailProbe sends the tail loss probe: new data if the peer's window allows any, otherwise the last
// segment again (RFC 8985 §7.3).
func (d *sender) tailProbe(now clock.Time, s *sending) (ok bool) {
	segments, ok := d.rec.BeginProbe(now)
	if !ok {
		return false
	}
	if segments > 0 && d.newData(now, segments, segments*d.MSS, s) {
		d.rec.Probed(now)
		return true
	}
	s.Span, ok = d.rec.RepeatProbe(now)
	return ok
}

// finDelay is how long a FIN waits for a peer without TCP options to read the data before it.
const finDelay = 10 * time.Millisecond

// finishes reports whether our FIN may follow the next n bytes, which are all that wait to be sent.
//
// RFC 9293 §3.10.4 sends the FIN with the last data. But nodes of the course, which send no TCP
// options, handle that badly. Some ignore a segment with data and a FIN forever, some drop its
// data, some acknowledge only the data, and some discard unread data at the FIN. So peers without
// options get the FIN alone, after they have acknowledged all data and, as far as their window
// shows it, read it.
func (d *sender) finishes(now clock.Time, n int) bool {
	switch {
	case !d.closed || d.fin != 0:
		return false
	case !d.finAlone:
		return true
	case n > 0 || !d.rec.Record.Empty():
		return false
	case d.wnd >= d.maxWnd || d.Nxt == d.iss+1:
		return true
	}
	// Most of these nodes do not announce that their window has opened again, so wait only briefly.
	until := d.wait.since.Add(finDelay) // since the last acknowledgment
	if until.Due(now) {
		return true
	}
	d.pace = until
	return false
}
