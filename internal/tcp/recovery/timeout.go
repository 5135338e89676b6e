package recovery

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

// losses is what a connection knows of the losses on its path.
type losses struct {
	segments uint64 // delivered
	// freeAt is how many segments must have been delivered until the path is taken for one that
	// loses nothing once more; zero: it never has lost any.
	freeAt uint64
}

// free reports whether the path has lost nothing for so long that silence is rather a pause.
func (l *losses) free() bool { return l.segments >= l.freeAt }

// noteLoss notes that the path has lost something.
func (v *Recovery) noteLoss(now clock.Time) {
	v.losses.freeAt = v.losses.segments + lossFreeAfter
	v.shared.lossAt = now
}

// timeout returns the retransmission time-out as it is now. RFC 6298 §2.4 has a lower bound
// of a second, of which RTOMin is what remains where losses are known.
func (v *Recovery) timeout() time.Duration {
	d := v.RTO(v.Backoff)
	if v.losses.free() {
		d = min(max(d, pauseFloor<<min(v.Backoff, 16)), v.shared.RTOMax)
	}
	return d
}

// RTO returns the retransmission timeout after so many doublings, whatever the path loses.
func (v *Recovery) RTO(doublings uint8) time.Duration {
	return v.RTT.Timeout(doublings, &v.shared.Options)
}

// awaken puts off, once in a silence, timers that are late by about as much as they were to wait:
// this process slept, and if the whole machine stood still, the peer has slept as well.
func (v *Recovery) awaken(now clock.Time) {
	if v.Late || !v.losses.free() {
		return
	}
	for _, at := range [...]*clock.Time{&v.At.Probe, &v.At.RTO} {
		if at.Due(now) && now.Sub(*at) >= pauseFloor/2 {
			*at = now.Later(pauseFloor)
			v.Late = true
		}
	}
}

// OnTimeout is the retransmission timeout, RFC 6298 §5.4-5.6: it thinks everything lost that has
// had time to arrive, and starts over from one segment. It returns how many probes of the path's
// MTU it takes for lost.
func (v *Recovery) OnTimeout(now clock.Time) (probes int) {
	v.Kept.Counts.Timeouts++
	if s := &v.Kept.spells; s.since == clock.Never {
		s.since = now
		s.count++
	}
	v.Backoff = min(v.Backoff+1, MaxBackoff)
	if v.Record.Empty() {
		v.ArmRTO(now)
		return 0
	}
	r := v.beginRound(now)
	r.loseOverdue()
	kind := congestion.Timeout
	if v.Episode.kind == restarting && v.Episode.timedOut == v.snd.Una {
		kind = congestion.TimeoutAgain
	}
	next := episode{kind: restarting, point: v.snd.Nxt, timedOut: v.snd.Una, force: true}
	if v.how.forward && v.Episode.mayForward(v.snd.Una) {
		next.forward = forwardFirst
	}
	switch v.Episode.kind {
	case steady:
		v.undo.begin(v, true)
	case recovering:
		v.undo.open = false // what fast recovery did must not be credited to the time-out
	case restarting:
	}
	v.Episode = next
	v.Kept.TLP = tlp{}
	v.Late = false
	v.At.Probe, v.At.Reorder = clock.Never, clock.Never
	v.CC.OnLoss(v.lossEvent(now, kind, r.flight))
	v.ArmRTO(now)
	return r.LostProbes
}

// ArmRTO starts the retransmission time-out.
func (v *Recovery) ArmRTO(now clock.Time) {
	d := v.timeout()
	if v.shared.FinTimeout != 0 && v.outstanding != nil && v.Record.onlyFIN() {
		d = v.shared.FinTimeout
	}
	v.At.RTO = now.Later(d)
}

// MaxBackoff bounds the doublings of the RTO that are counted: long before, it is RTOMax.
const MaxBackoff = 32

// Advance does what is due, but for the retransmission timeout, which is the caller's to take from
// At. It returns how many probes of the path's MTU were lost.
func (v *Recovery) Advance(now clock.Time) (probes int) {
	v.awaken(now)
	if v.At.Reorder.Due(now) { // RFC 8985 §6.2 step 5
		r := v.beginRound(now)
		v.how.detect(v, r)
		v.At.Reorder = r.reorder
		if r.lost > 0 {
			r.recover(false)
		}
		probes = r.LostProbes
	}
	if v.At.Probe.Due(now) { // RFC 8985 §7.3
		v.At.Probe = clock.Never
		if !v.Record.Empty() {
			v.Kept.TLP.Due, v.RTT.fresh = true, false
			v.Kept.Counts.TailProbes++
			v.ArmRTO(now)
		}
	}
	return probes
}
