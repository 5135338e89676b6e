package congestion

import "github.com/tidepool-net/tidepool/internal/clock"

// Constants of BBR version 1.
const (
	bbrHighGain    = 2.885 // 2/ln 2: the rate doubles in a round
	bbrBWRounds    = 10
	bbrPhases      = 8
	bbrExtraRounds = 5 // rounds in the current maximum, and in the previous one
	bbrExtraMost   = 0.1
)

type bbrState uint8

const (
	bbrStartup bbrState = iota
	bbrDrain
	bbrProbeBW
	bbrProbeRTT
)

// bbr implements BBR version 1, which Linux calls bbr:
// draft-cardwell-iccrg-bbr-congestion-control-00. The comments give the draft's function names in
// parentheses. There are two additions of Linux: a pacing margin of one percent, and room for
// aggregated acknowledgments. Linux's policer detection is not included, because no document
// describes it. The pacing rate is the largest delivery rate of the last ten rounds. Losses do not
// reduce it: version 3 (bbr3) backs off above a loss rate of 2 %, but version 1 does not slow down
// even at 10 %, and even if competing flows suffer the losses that it causes.
type bbr struct {
	bbrSender
	state bbrState
	bw    bbrMax
	cycle bbrCycle
	extra bbrExtra
	loss  bbrLoss
}

// bbrCycle is the position in ProbeBW's cycle of gains.
type bbrCycle struct {
	phase int
	since clock.Time
}

// bbrLoss is the state of loss recovery.
type bbrLoss struct {
	open     bool // recovery is in progress
	entered  bool // recovery started with this acknowledgment
	conserve bool // in the first round of recovery: packet conservation
}

func newBBR(cfg Config) Controller {
	b := &bbr{bbrSender: newBBRSender(cfg, bbrHighGain, 0xbb1)}
	b.enter(bbrStartup)
	return b
}

func (b *bbr) enter(s bbrState) {
	b.state, b.pacing, b.gain = s, 1, bbrCwndGain
	switch s {
	case bbrStartup:
		b.pacing, b.gain = bbrHighGain, bbrHighGain
	case bbrDrain:
		b.pacing, b.gain = 1/bbrHighGain, bbrHighGain
	case bbrProbeRTT:
		b.gain = 1
	case bbrProbeBW:
	}
}

// OnAck updates the model, the pacing rate and the window (BBRUpdateOnACK).
func (b *bbr) OnAck(a *Ack) {
	limited := b.begin(a)
	b.updateBW(a, limited)
	b.aggregation(a)
	b.checkCycle(a)
	b.checkFull(limited)
	b.checkDrain(a)
	b.updateRTT(a)
	b.setRate(b.pacing * b.bw.most)
	b.setCwnd(a)
}

// inflight returns the target for the data in flight (BBRInflight): the bandwidth-delay product
// times a gain, and three trains for the bursts that hosts send and receive.
func (b *bbr) inflight(gain, more float64) float64 {
	if b.rtt.min == 0 {
		return float64(b.cfg.FirstCwnd())
	}
	target := b.bdp(b.bw.most, gain) + more + float64(3*b.quantum())
	if b.state == bbrProbeBW && b.cycle.phase == 0 {
		target += float64(2 * b.mss)
	}
	return target
}

// quantum returns the size of a burst in bytes (BBRSetSendQuantum): one segment below 1.2 Mbit/s.
func (b *bbr) quantum() float64 {
	const slow = 1.2e6 / 8
	if b.rate < slow {
		return float64(b.mss)
	}
	return b.bbrSender.quantum()
}

// setCwnd updates the window (BBRSetCwnd).
func (b *bbr) setCwnd(a *Ack) {
	if !b.recover(a) {
		b.grow(a, b.inflight(b.gain, b.aggregated()))
	}
	if b.state == bbrProbeRTT {
		b.cwnd = min(b.cwnd, b.minPipe())
	}
	b.cwnd = max(min(b.cwnd, float64(b.cfg.MaxWindow)), float64(b.mss))
}

// recover reduces the window by the lost data (BBRModulateCwndForRecovery). In the first round of
// fast recovery the window then only grows by the data delivered, which shows whether the path
// still delivers. recover reports whether it is that round.
func (b *bbr) recover(a *Ack) bool {
	l := &b.loss
	b.cwnd = max(b.cwnd-float64(a.Lost), float64(b.mss))
	if l.entered {
		l.entered, l.conserve = false, true
		b.round.next = a.TotalDelivered
		b.cwnd = float64(a.InFlight + max(a.Delivered, b.mss))
	}
	if l.conserve {
		b.cwnd = max(b.cwnd, float64(a.InFlight+a.Delivered))
	}
	return l.conserve
}

// OnLoss starts fast recovery (BBROnEnterFastRecovery) or handles a timeout (BBROnEnterRTO).
func (b *bbr) OnLoss(l *Loss) {
	if l.Kind == Echo {
		return // version 1 does not respond to marks
	}
	b.saveCwnd(b.cut())
	b.loss.open = true
	if l.Kind == Detected {
		b.loss.entered = true
		return
	}
	b.loss.entered, b.loss.conserve = false, false
	b.full.reset(0)
	b.cwnd = min(float64(l.InFlight+l.MSS), float64(b.cfg.MaxWindow))
}

// OnExit restores the window after an episode (BBRRestoreCwnd).
func (b *bbr) OnExit(e *Exit) {
	b.restoreCwnd()
	b.loss.open, b.loss.entered, b.loss.conserve = false, false, false
	if e.Spurious {
		b.full.reset(0) // recovery may have caused a slow round
	}
}

// OnRestart sets the pacing rate after an idle time (BBRHandleRestartFromIdle): pacing alone
// prevents a burst.
func (b *bbr) OnRestart(r *Restart) {
	if r.Unvalidated {
		return // the model reflects only bandwidth that was used
	}
	b.rtt.idle = true
	b.burst.start = r.Now
	switch b.state {
	case bbrProbeBW:
		b.setRate(b.bw.most)
	case bbrProbeRTT:
		b.checkProbeRTTDone(r.Now)
	case bbrStartup, bbrDrain:
	}
}

// cut reports whether recovery or ProbeRTT holds the window below the model's window.
func (b *bbr) cut() bool { return b.loss.open || b.state == bbrProbeRTT }
