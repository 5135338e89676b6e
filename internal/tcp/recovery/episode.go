package recovery

import (
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
)

// episode is the state of one loss recovery.
type episode struct {
	kind     phase
	point    uint64 // SND.NXT when it began: an ACK up to here ends it (RFC 6582's recover)
	dupAcks  int    // consecutive duplicate ACKs, without SACK
	dupBytes int    // bytes that have left the network, according to these ACKs
	timedOut uint64 // SND.UNA at the last timeout
	// prr_delivered, prr_out and RecoverFS of RFC 9937 §6.1.
	delivered, out, flight int
	cwnd                   int // maximum data in flight until the next acknowledgment
	force                  bool
	forward                forward
	fresh                  int // bytes of new data that F-RTO may still send
	// largeAdvance says that the acknowledgment that ended a slow start after a timeout advanced by
	// more than four segments. So some of the retransmitted segments had arrived before.
	largeAdvance bool
	over         bool // the algorithm (Tahoe) restarted with data in flight
}

type phase uint8

const (
	steady     phase = iota // no losses are known
	recovering              // fast recovery
	restarting              // slow start after a timeout
)

// reduce sets how much each acknowledgment in recovery allows the sender to send (proportional rate
// reduction, RFC 9937 §6.2). The data in flight shrinks evenly to target, the new ssthresh.
func (e *episode) reduce(r *Ack, target, pipe, mss int) {
	delivered := r.Delivered + r.dupDelivered
	if target == 0 || delivered == 0 && e.out > 0 {
		return // a timer found losses, which has made room below cwnd
	}
	e.delivered += delivered
	var n int
	if pipe > target {
		n = ceilDiv(e.delivered*target, e.flight) - e.out
	} else {
		n = max(e.delivered-e.out, delivered)
		if r.advance > 0 && r.lost == 0 {
			n += mss // a safe acknowledgment: recovery makes progress
		}
		n = min(target-pipe, n)
	}
	if e.out == 0 && n <= 0 {
		n = mss // the fast retransmit itself
	}
	e.cwnd = pipe + max(n, 0)
}

// String returns Linux's name of the phase.
func (e *episode) String() string { return [...]string{"open", "recovery", "loss"}[e.kind] }

// Open reports whether no recovery is in progress.
func (e *episode) Open() bool { return e.kind == steady }

// mayEcho reports whether duplicate acknowledgments may be caused by retransmissions of the last
// recovery. Below the recovery point this is always possible (RFC 6582 §3.2 step 2). At the
// recovery point it is possible if segments after a filled hole had been retransmitted (RFC 6582
// §4.1).
func (e *episode) mayEcho(una uint64) bool {
	return una < e.point || una == e.point && e.largeAdvance
}

// spend subtracts sent bytes from the allowance.
func (e *episode) spend(n int) {
	if e.kind == recovering {
		e.out += n
	}
	e.force = false
}

// recover enters, continues and leaves recovery after an acknowledgment. more says that new data
// waits to be sent.
func (r *Ack) recover(more bool) {
	v := r.v
	e := &v.Episode
	r.recovering = e.kind == recovering
	r.restarting = e.kind == restarting && (e.over || !v.strategy.sack)
	if e.kind == restarting && v.snd.Una < e.point {
		spurious, resend := e.lookForward(r, v.snd, v.strategy.sack, more)
		if resend {
			v.Record.resendLonger(-1)
		}
		if spurious {
			r.undoEpisode()
		}
	}
	if e.kind != steady && v.snd.Una >= e.point {
		v.exit(r.now, false)
		e.largeAdvance = r.restarting && r.advance > 4*v.snd.MSS
		r.lost += v.Record.count[lost] // later losses belong to a new episode
	}
	if r.spurious() {
		r.undoEpisode()
	}
	if e.kind == steady && r.lost > 0 {
		r.enter()
	}
	if e.kind == recovering {
		e.reduce(r, v.CC.Ssthresh(), v.Pipe(), v.snd.MSS)
	}
}

func (r *Ack) enter() {
	v := r.v
	e := &v.Episode
	v.Kept.Counts.FastRecoveries++
	v.noteLoss(r.now)
	e.kind = recovering
	e.point = v.snd.Nxt
	v.board.rescued = false
	v.undo.begin(v, false)
	v.Kept.TLP = tlp{}
	v.Late = false
	v.At.Probe = clock.Never
	v.CC.OnLoss(v.lossEvent(r.now, congestion.Detected, r.flight))
	if v.CC.Cwnd() < v.CC.Ssthresh() {
		// Tahoe has no fast recovery and continues as after a timeout. Without SACK it retransmits
		// all data in flight, because nothing would report other losses.
		r.restarted = true
		e.kind, e.force, e.dupBytes, e.over = restarting, true, 0, true
		if !v.strategy.sack {
			v.Record.resendLonger(-1)
		}
	} else {
		// RFC 9937 §6.1: count only what recovery delivers.
		e.delivered, e.out = 0, 0
		before := v.Record.bytes[sacked] + e.dupBytes - (r.Delivered - r.advance)
		e.flight = max(r.flight-max(before, 0), v.snd.MSS)
	}
	v.notify(r.now)
}

// exit ends an episode. If the episode was spurious, the controller undoes it.
func (v *Recovery) exit(now clock.Time, spurious bool) {
	e := &v.shared.exit
	*e = congestion.Exit{
		Now: now, InFlight: v.Pipe(), MSS: v.snd.MSS, Spurious: spurious,
		Ceiling: v.rounds.endEpisode(v.snd.MSS),
	}
	v.CC.OnExit(e)
	if v.Episode.kind != steady && !spurious {
		v.noteLoss(now)
		v.rack.forget()
	}
	v.Episode = episode{point: v.Episode.point}
	v.notify(now)
}

func (v *Recovery) lossEvent(now clock.Time, k congestion.Kind, flight int) *congestion.Loss {
	v.Kept.ECN.reduced, v.Kept.ECN.point = true, v.snd.Nxt
	if k == congestion.Detected || k == congestion.Echo {
		flight = v.rounds.batch.flightSize(now, flight, v.Record.transmissions)
	}
	l := &v.shared.loss
	*l = congestion.Loss{
		Now: now, Kind: k, MSS: v.snd.MSS,
		FlightSize: v.rounds.lossFlight(now, k, flight, v.RTT.SRTT, v.CC.Cwnd()),
		InFlight:   v.Pipe(),
	}
	return l
}

// Allowance returns how many bytes congestion control allows to be sent now.
func (v *Recovery) Allowance() int {
	pipe := v.Pipe()
	if v.Episode.kind == recovering && v.CC.Ssthresh() != 0 {
		left := v.Episode.cwnd - pipe
		if left <= 0 {
			return 0
		}
		// Round up to a segment. out counts the excess, so the next acknowledgment allows less.
		return max(left, v.snd.MSS)
	}
	return v.CC.Cwnd() - pipe
}

// ECNEcho responds to an ECN echo as the sender of RFC 3168 §6.1.2 does. It reduces the window as
// for a loss, at most once in a window of data, and not in a window with a loss. The reduction for
// such a loss must then not be undone. persisting says that the persist timer is running.
func (v *Recovery) ECNEcho(now clock.Time, persisting bool) {
	if v.CC.Controller == nil {
		return
	}
	v.undo.marked = true
	if v.Episode.kind != steady || v.snd.Una <= v.Kept.ECN.point {
		return
	}
	v.Kept.Counts.ECNEchoes++
	v.CC.OnLoss(v.lossEvent(now, congestion.Echo, v.shared.scratch.flight))
	if v.CC.Cwnd() <= v.snd.MSS {
		// RFC 3168 §6.1.2: the sender cannot halve a window of one segment. So it restarts the
		// retransmission timer, and sends the next segment when that expires.
		v.Kept.ECN.until = now.Later(v.timeout())
		if !v.Record.Empty() && !persisting {
			v.ArmRTO(now)
		}
	}
	v.notify(now)
}
