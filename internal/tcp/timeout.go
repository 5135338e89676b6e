package tcp

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
)

// While a path has lost nothing, silence is most likely a pause: the peer, or a router, waits for a
// processor. Then what would end a loss of 150 µs only sends what has arrived, and where a time-out
// of a millisecond is allowed a pause of four is the rule on a busy machine.
const (
	// pauseFloor is the least that a probe or a time-out waits on a path that loses nothing:
	// longer than a process waits for its processor among a few others. It is what a first
	// loss costs at most, if nothing that arrives behind it tells of it sooner.
	pauseFloor = 10 * time.Millisecond
	// lossFreeAfter is how many segments without a loss make a path one that loses nothing.
	lossFreeAfter = 1 << 14
	// lossMemory is for how long a loss makes new connections expect some of their own.
	lossMemory = time.Minute
)

// lossFree reports whether the path has lost nothing for so long that silence is rather a pause.
func (v *recovery) lossFree() bool { return v.segments >= v.lossFreeAt }

// noteLoss notes that the path has lost something.
func (v *recovery) noteLoss(now clock.Time) {
	v.lossFreeAt = v.segments + lossFreeAfter
	v.shared.lossAt = now
}

// inherit has a new connection begin with what others have seen of losses lately (RFC 9040
// §3.1): of a short one nothing may arrive behind its only loss.
func (v *recovery) inherit(now clock.Time) {
	if at := v.shared.lossAt; at != clock.Never && now.Sub(at) < lossMemory {
		v.lossFreeAt = lossFreeAfter
	}
}

// timeout returns the retransmission time-out as it is now. RFC 6298 §2.4 has a lower bound
// of a second, of which RTOMin is what remains where losses are known.
func (v *recovery) timeout() time.Duration {
	d := v.rtt.timeout(v.backoff, &v.shared.lossOptions)
	if v.lossFree() {
		d = min(max(d, pauseFloor<<min(v.backoff, 16)), v.shared.RTOMax)
	}
	return d
}

// awaken puts off, once in a silence, what waits for an answer and is late by about as much
// as it was to wait: this process slept, the sockets were looked at as it woke up, and if
// the whole machine stood still, who answers has slept as well.
func (v *recovery) awaken(now clock.Time) {
	if v.is.late || !v.lossFree() {
		return
	}
	for _, at := range [...]*clock.Time{&v.at.probe, &v.at.rto} {
		if at.Due(now) && now.Sub(*at) >= pauseFloor/2 {
			*at = now.Later(pauseFloor)
			v.is.late = true
		}
	}
}

// onTimeout is the retransmission time-out, RFC 6298 §5.4-5.6: it thinks everything lost that has
// had time to arrive, and starts over from one segment. It returns how many probes of the path's
// MTU it takes for lost.
func (v *recovery) onTimeout(now clock.Time) (probes int) {
	v.backoff = min(v.backoff+1, maxBackoff)
	if v.sent.empty() {
		v.armRTO(now)
		return 0
	}
	r := v.beginRound(now)
	v.loseOverdue(r)
	kind := congestion.Timeout
	if v.ep.kind == restarting && v.ep.timedOut == v.snd.Una {
		kind = congestion.TimeoutAgain
	}
	next := episode{kind: restarting, point: v.snd.Nxt, timedOut: v.snd.Una, force: true}
	if v.how.forward && v.ep.mayForward(v.snd.Una) {
		next.forward = forwardFirst
	}
	switch v.ep.kind {
	case steady:
		v.beginUndo(true)
	case recovering:
		v.undo.open = false // what fast recovery did must not be credited to the time-out
	case restarting:
	}
	v.ep = next
	v.lasting.tlp = tlp{}
	v.is.late = false
	v.at.probe, v.at.reorder = clock.Never, clock.Never
	v.cc.OnLoss(v.lossEvent(now, kind, r.flight))
	v.armRTO(now)
	return r.mtu.lost
}

// armRTO starts the retransmission time-out.
func (v *recovery) armRTO(now clock.Time) {
	d := v.timeout()
	if v.shared.FinTimeout != 0 && v.outstanding != nil && v.sent.onlyFIN() {
		d = v.shared.FinTimeout
	}
	v.at.rto = now.Later(d)
}

// onReorderTimer looks again once the reordering window is over. It returns how many probes of the
// path's MTU were lost.
func (v *recovery) onReorderTimer(now clock.Time) (probes int) {
	r := v.beginRound(now)
	v.detect(r)
	if r.lost > 0 {
		v.recover(r, false)
	}
	return r.mtu.lost
}

// detect finds out what is lost by now.
func (v *recovery) detect(r *round) {
	v.how.detect(v, r)
	v.at.reorder = r.reorder
}
