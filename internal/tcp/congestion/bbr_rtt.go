package congestion

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// bbrRTT estimates the round trip of an empty path, draft-ietf-ccwg-bbr §5.3.4:
// every five seconds, unless the flow was that short of itself, it makes room
// for a sample.
type bbrRTT struct {
	min       time.Duration // of ten seconds; zero: no sample
	minAt     clock.Time
	probed    time.Duration // the least since ProbeRTT was last due
	probedAt  clock.Time
	expired   bool
	done      clock.Time // when ProbeRTT may end; never: it has not drained yet
	roundDone bool
	idle      bool // the flow restarts after a silence, which drained the path
}

// updateMinRTT is UpdateMinRTT.
func (b *bbr) updateMinRTT(a *Ack) {
	r := &b.rtt
	if r.probedAt == clock.Never {
		r.probedAt, r.minAt = a.Now, a.Now
	}
	r.expired = elapsed(a.Now, r.probedAt, bbrProbeRTTEvery)
	if a.RTT > 0 && (r.probed == 0 || a.RTT < r.probed || r.expired) {
		r.probed, r.probedAt = a.RTT, a.Now
	}
	if r.probed > 0 &&
		(r.min == 0 || r.probed < r.min || elapsed(a.Now, r.minAt, bbrMinRTTWindow)) {
		r.min, r.minAt = r.probed, r.probedAt
	}
}

// checkProbeRTT is CheckProbeRTT.
func (b *bbr) checkProbeRTT(a *Ack) {
	r := &b.rtt
	if b.state != bbrProbeRTT && r.expired && !r.idle {
		b.saveCwnd()
		b.enter(bbrProbeRTT)
		r.done = clock.Never
		b.probe.phase = bbrStopping
		b.startRound(a.TotalDelivered)
	}
	if b.state == bbrProbeRTT {
		b.handleProbeRTT(a)
	}
	r.idle = false
}

// handleProbeRTT is HandleProbeRTT: the low rates of this state say nothing of
// the path.
func (b *bbr) handleProbeRTT(a *Ack) {
	r := &b.rtt
	b.bubble = a.TotalDelivered + uint64(a.InFlight) + 1
	if r.done == clock.Never {
		if float64(a.InFlight) <= b.probeRTTCwnd() {
			r.done, r.roundDone = a.Now.Add(bbrProbeRTTTime), false
			b.startRound(a.TotalDelivered)
		}
		return
	}
	r.roundDone = r.roundDone || b.round.start
	if r.roundDone {
		b.checkProbeRTTDone(a.Now, a.TotalDelivered)
	}
}

// checkProbeRTTDone is CheckProbeRTTDone and ExitProbeRTT, §5.3.4.4.
func (b *bbr) checkProbeRTTDone(now clock.Time, delivered uint64) {
	r := &b.rtt
	if r.done == clock.Never || now <= r.done {
		return
	}
	r.probedAt = now
	b.restoreCwnd()
	b.model.resetShortTerm()
	if !b.full.reached {
		b.enter(bbrStartup)
		return
	}
	b.startDown(&Ack{Now: now, TotalDelivered: delivered})
	b.enter(bbrCruise)
}

// probeRTTCwnd is ProbeRTTCwnd, §5.6.4.5.
func (b *bbr) probeRTTCwnd() float64 {
	return max(b.bdp(b.model.bw, bbrProbeRTTGain), b.minPipe())
}
