package recovery

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
)

// While a path has lost nothing, silence most likely means that the peer or a router waits for CPU
// time. A retransmission would then be spurious. On a busy machine such pauses often exceed an RTO
// of a few milliseconds.
const (
	// pauseFloor is the minimum wait for a probe or timeout on a path without losses. It is longer
	// than a process waits for CPU time while a few others run. A first loss is repaired only after
	// this time, unless later data reveals it sooner.
	pauseFloor = 10 * time.Millisecond
	// lossFreeAfter is the number of segments without a loss after which a path counts as
	// loss-free.
	lossFreeAfter = 1 << 14
	// lossMemory is how long a loss affects new connections.
	lossMemory = time.Minute
)

// losses is the history of losses on a connection's path.
type losses struct {
	segments uint64 // delivered segments
	// freeAt is the count of delivered segments at which the path counts as loss-free again; zero:
	// no loss yet.
	freeAt uint64
	ofSYNs bool // too many SYNs timed out: the initial window is one segment
}

// free reports whether the path counts as loss-free.
func (l *losses) free() bool { return l.segments >= l.freeAt }

func (v *Recovery) noteLoss(now clock.Time) {
	v.losses.freeAt = v.losses.segments + lossFreeAfter
	v.shared.lossAt = now
}

// timeout returns the current retransmission timeout. On a path without losses it is at least
// pauseFloor.
func (v *Recovery) timeout() time.Duration {
	d := v.RTO(v.Backoff)
	if v.losses.free() {
		d = min(max(d, pauseFloor<<min(v.Backoff, 16)), v.shared.RTOMax)
	}
	return d
}

// RTO returns the retransmission timeout after a number of doublings, without regard to losses.
func (v *Recovery) RTO(doublings uint8) time.Duration {
	return v.RTT.Timeout(doublings, &v.shared.Options)
}

// postponeLate postpones timers that are late by pauseFloor/2 or more, once until the next
// acknowledgment. They are late because this process was suspended. If the whole machine was
// suspended, the peer may have been suspended too.
func (v *Recovery) postponeLate(now clock.Time) {
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

// OnTimeout handles a retransmission timeout (RFC 6298 §5.4-5.6). It marks all segments as lost
// that should have arrived, and restarts from one segment. It returns how many MTU probes were
// lost.
func (v *Recovery) OnTimeout(now clock.Time) (probes int) {
	v.Kept.Counts.TotalRTO++
	if s := &v.Kept.timeouts; s.since == clock.Never {
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
	if v.strategy.forward && v.Episode.mayForward(v.snd.Una) {
		next.forward = forwardFirst
	}
	switch v.Episode.kind {
	case steady:
		v.undo.begin(v, true)
	case recovering:
		v.undo.open = false // an undo must not restore the window that fast recovery had reduced
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

// ArmRTO starts the retransmission timer.
func (v *Recovery) ArmRTO(now clock.Time) {
	d := v.timeout()
	if v.shared.FinTimeout != 0 && v.outstanding != nil && v.Record.onlyFIN() {
		d = v.shared.FinTimeout
	}
	v.At.RTO = now.Later(d)
}

// MaxBackoff bounds the counted doublings of the RTO, which reaches RTOMax with far fewer.
const MaxBackoff = 32

// Advance runs the timers that are due, except the retransmission timeout, which the caller takes
// from At. It returns how many MTU probes were lost.
func (v *Recovery) Advance(now clock.Time) (probes int) {
	v.postponeLate(now)
	if v.At.Reorder.Due(now) { // RFC 8985 §6.2 step 5
		r := v.beginRound(now)
		v.strategy.detect(v, r)
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
