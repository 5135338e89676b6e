package tcp

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
)

// round is what one acknowledgment changed.
type round struct {
	now           clock.Time
	flight, prior int    // nxt - una, and pipe, before it
	advance       int    // how far una moved
	delivered     int    // bytes that newly arrived, by una or by SACK
	segments      int    // segments that newly arrived
	fack          uint64 // the highest end among them
	lost          int    // segments newly thought lost
	dups          int    // duplicate acknowledgments: one, or those of a train
	dsack         bool
	dsackEnd      uint64
	rtt           sampled
	earlier       int // bytes delivered that were sent once, before the recovery
	rate          rateSample
	dupDelivered  int  // bytes that a duplicate ACK stands for, without SACK
	moved         bool // the window moved too
	restarted     bool // its losses made the algorithm start over
	recovering    bool // fast recovery was in progress,
	restarting    bool // or a slow start in which what was sent before does not count (credit)
	marked        bool // it echoes a mark
	exact         bool // and would not, if what it acknowledges had not been marked (RFC 8257)
	echo          echo
	mtu           mtuNews
	reorder       clock.Time // when to look again for losses
}

// sampled is when what was delivered had been sent.
type sampled struct {
	first, last clock.Time // of what was sent only once: the oldest and the newest
	again       bool       // something was sent more than once
	againSent   clock.Time // the last transmission of the first segment, if it is one of those
}

// mtuNews is what was learned of the sizes that the path carries.
type mtuNews struct {
	largest int  // the most data of a segment that arrived and was sent only once
	arrived bool // a probe arrived
	lost    int  // probes that were lost
}

// beginRound returns the round of what happens now: the host's, until it begins another.
func (v *recovery) beginRound(now clock.Time) *round {
	r := &v.shared.round
	*r = round{}
	r.now, r.flight, r.prior = now, int(v.snd.Nxt-v.snd.Una), v.pipe()
	return r
}

// digest draws the conclusions from an acknowledgment: what is the round trip, what is lost, what
// may be sent, when to try again. More says that there is something new to send. Persisting says
// that the persist timer is in charge.
func (v *recovery) digest(r *round, more, persisting bool) {
	if r.delivered > 0 {
		v.sent.delivered += uint64(r.delivered)
		v.sent.deliveredAt = r.now
		v.rack.fack = max(v.rack.fack, r.fack)
		v.segments += uint64(r.segments)
		v.retries = 0
		v.lasting.spells.end(r.now)
		v.measure(r)
	}
	v.rack.adaptReordering(r, v.snd, v.lasting.tlp.end)
	v.detect(r)
	v.probeAnswered(r.now, r)
	v.recover(r, more)
	v.control(r)
	v.rearm(r, persisting)
}

// measure takes the round trip sample. Its oldest segment counts for the
// time-out, because a delayed acknowledgment is part of what the time-out must
// survive; its newest for the minimum.
//
// RFC 6298 §3: never from a segment that was sent twice, nor from one that may have waited for such
// a segment: the acknowledgment that said so when it came may be lost. Unless the echo tells which
// transmission arrived (RFC 7323 §4.1): then the time is the record's. One that shares its tick
// with an earlier transmission would make the sample too short, by less than a tick.
func (v *recovery) measure(r *round) {
	if r.rtt.first != clock.Never && !r.rtt.again {
		share := (r.flight + r.delivered - 1) / r.delivered
		v.rtt.sample(r.now, r.now.Sub(r.rtt.first), share, &v.shared.lossOptions)
		v.rtt.minimum(r.now, max(r.now.Sub(r.rtt.last), time.Nanosecond))
		v.backoff = 0 // RFC 6298 §5.7: a new measurement ends the backing off
		return
	}
	sent := r.rtt.againSent
	rtt := r.now.Sub(sent)
	if sent != clock.Never && r.echo.known && r.echo.tick == stampClock(sent) && rtt >= stampTick {
		v.rtt.sample(r.now, rtt, 1, &v.shared.lossOptions)
		v.backoff = 0
	}
}

// rearm sets the time-outs that wait for the next acknowledgment.
func (v *recovery) rearm(r *round, persisting bool) {
	switch {
	case v.sent.empty():
		v.at = lossTimers{} // RFC 6298 §5.2: all is acknowledged
	case persisting || r.delivered == 0:
	default:
		// RFC 6298 §5.3, where a selective acknowledgment counts as new data too: the time-out is
		// for silence, and RACK finds a hole sooner.
		v.lasting.tlp.due, v.lasting.tlp.inside = false, false
		v.is.late = false
		v.armRTO(r.now)
		v.armProbe(r.now)
	}
}

// recover enters, continues and leaves recovery after an acknowledgment. More says that there is
// something new to send.
func (v *recovery) recover(r *round, more bool) {
	e := &v.ep
	r.recovering = e.kind == recovering
	r.restarting = e.kind == restarting && (e.over || !v.how.sack)
	if e.kind == restarting && v.snd.Una < e.point {
		spurious, resend := e.lookForward(r, v.snd, v.how.sack, more)
		if resend {
			v.sent.resendFlight()
		}
		if spurious {
			v.takeBack(r.now)
		}
	}
	if e.kind != steady && v.snd.Una >= e.point {
		v.exit(r.now, false)
		e.leapt = r.restarting && r.advance > 4*v.snd.MSS
		r.lost += v.sent.count[lost] // what was lost since belongs to a new episode
	}
	if v.spurious(r) {
		v.takeBack(r.now)
	}
	if e.kind == steady && r.lost > 0 {
		v.enter(r)
	}
	if e.kind == recovering {
		e.reduce(r, v.cc.Ssthresh(), v.pipe(), v.snd.MSS)
	}
}

// enter begins fast recovery.
func (v *recovery) enter(r *round) {
	e := &v.ep
	v.lasting.counts.FastRecoveries++
	v.noteLoss(r.now)
	e.kind = recovering
	e.point = v.snd.Nxt
	v.board.rescued = false
	v.beginUndo(false)
	v.lasting.tlp = tlp{}
	v.is.late = false
	v.at.probe = clock.Never
	v.cc.OnLoss(v.lossEvent(r.now, congestion.Detected, r.flight))
	if v.cc.Cwnd() < v.cc.Ssthresh() {
		// The algorithm has no fast recovery (Tahoe): it goes on as after a time-out. Without SACK
		// all that is in flight is sent again, because nothing would tell what else is missing.
		r.restarted = true
		e.kind, e.force, e.dupBytes, e.over = restarting, true, 0, true
		if !v.how.sack {
			v.sent.resendFlight()
		}
	} else {
		// RFC 9937 §6.1: what was delivered before recovery is not delivered in it.
		e.delivered, e.out = 0, 0
		before := v.sent.bytes[sacked] + e.dupBytes - (r.delivered - r.advance)
		e.flight = max(r.flight-max(before, 0), v.snd.MSS)
	}
	v.notify(r.now)
}

// exit closes an episode, or takes the last one back.
func (v *recovery) exit(now clock.Time, spurious bool) {
	e := &v.shared.exit
	*e = congestion.Exit{
		Now: now, InFlight: v.pipe(), MSS: v.snd.MSS, Spurious: spurious,
		Ceiling: v.rounds.endUse(v.snd.MSS),
	}
	v.cc.OnExit(e)
	if v.ep.kind != steady && !spurious {
		v.noteLoss(now)
		v.rack.forget()
	}
	v.ep = episode{point: v.ep.point}
	v.notify(now)
}

func (v *recovery) lossEvent(now clock.Time, k congestion.Kind, flight int) *congestion.Loss {
	v.lasting.ecn.reduced, v.lasting.ecn.point = true, v.snd.Nxt
	if k == congestion.Detected || k == congestion.Echo {
		flight = v.rounds.batch.flightSize(now, flight, v.sent.transmissions)
	}
	l := &v.shared.loss
	*l = congestion.Loss{
		Now: now, Kind: k, MSS: v.snd.MSS,
		FlightSize: v.rounds.lossFlight(now, k, flight, v.rtt.srtt, v.cc.Cwnd()),
		InFlight:   v.pipe(),
	}
	return l
}

// allowance returns how many bytes congestion control lets out now.
func (v *recovery) allowance() int {
	pipe := v.pipe()
	if v.ep.kind == recovering && v.cc.Ssthresh() != 0 {
		left := v.ep.cwnd - pipe
		if left <= 0 {
			return 0
		}
		// In whole segments: the excess is in out, and the next acknowledgment allows less.
		return max(left, v.snd.MSS)
	}
	return v.cc.Cwnd() - pipe
}

// onEcho is the sender's side of RFC 3168 §6.1.2: reduce as for a loss, once a
// window of data, and not in the window of a loss. That loss may not be taken back
// any more: of the congestion there is a witness. Persisting says that the persist timer is in
// charge.
func (v *recovery) onEcho(now clock.Time, persisting bool) {
	v.undo.marked = true
	if v.ep.kind != steady || v.snd.Una <= v.lasting.ecn.point {
		return
	}
	v.lasting.counts.ECNEchoes++
	v.cc.OnLoss(v.lossEvent(now, congestion.Echo, v.shared.round.flight))
	if v.cc.Cwnd() <= v.snd.MSS {
		// RFC 3168 §6.1.2: a window of one segment cannot be halved. What goes slower is time:
		// the retransmission timer starts anew, and only its end lets the next segment out.
		v.lasting.ecn.until = now.Later(v.timeout())
		if !v.sent.empty() && !persisting {
			v.armRTO(now)
		}
	}
	v.notify(now)
}
