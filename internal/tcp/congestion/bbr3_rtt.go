package congestion

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// bbr3Probed is the minimum round-trip time since ProbeRTT was last due (draft-ietf-ccwg-bbr
// §5.3.4). ProbeRTT is due after five seconds without a lower one.
type bbr3Probed struct {
	least time.Duration
	at    clock.Time
}

// updateMinRTT updates the minimum round-trip times (UpdateMinRTT).
func (b *bbr3) updateMinRTT(a *Ack) {
	r, p := &b.rtt, &b.probed
	if p.at == clock.Never {
		p.at, r.minAt = a.Now, a.Now
	}
	r.expired = elapsed(a.Now, p.at, bbr3ProbeRTTEvery)
	if a.RTT > 0 && (p.least == 0 || a.RTT < p.least || r.expired) {
		p.least, p.at = a.RTT, a.Now
	}
	if p.least > 0 &&
		(r.min == 0 || p.least < r.min || elapsed(a.Now, r.minAt, bbrMinRTTWindow)) {
		r.min, r.minAt = p.least, p.at
	}
}

// checkProbeRTT enters ProbeRTT when it is due (CheckProbeRTT).
func (b *bbr3) checkProbeRTT(a *Ack) {
	r := &b.rtt
	if b.state != bbr3ProbeRTT && r.expired && !r.idle {
		b.saveCwnd(b.cut())
		b.enter(bbr3ProbeRTT)
		r.done = clock.Never
		b.probe.phase = bbr3Stopping
		b.startRound(a.TotalDelivered)
	}
	if b.state == bbr3ProbeRTT && b.drained(a, b.probeRTTCwnd()) {
		b.checkProbeRTTDone(a.Now, a.TotalDelivered)
	}
	r.idle = false
}

// checkProbeRTTDone leaves ProbeRTT when its time is over (CheckProbeRTTDone, ExitProbeRTT,
// §5.3.4.4).
func (b *bbr3) checkProbeRTTDone(now clock.Time, delivered uint64) {
	if !b.rtt.over(now) {
		return
	}
	b.probed.at = now
	b.restoreCwnd()
	b.model.resetShortTerm()
	if !b.full.reached {
		b.enter(bbr3Startup)
		return
	}
	b.startDown(&Ack{Now: now, TotalDelivered: delivered})
	b.enter(bbr3Cruise)
}

// probeRTTCwnd returns the window during ProbeRTT (ProbeRTTCwnd, §5.6.4.5).
func (b *bbr3) probeRTTCwnd() float64 {
	return max(b.bdp(b.model.bw, bbr3ProbeRTTGain), b.minPipe())
}
