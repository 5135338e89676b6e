package congestion

import "github.com/tidepool-net/tidepool/internal/clock"

// The constants of BBR's first version.
const (
	bbrHighGain    = 2.885 // 2/ln 2: the rate doubles in a round
	bbrBWRounds    = 10
	bbrPhases      = 8
	bbrExtraRounds = 5 // and as many before
	bbrExtraMost   = 0.1
)

// bbrState is a state of its machine.
type bbrState uint8

const (
	bbrStartup bbrState = iota
	bbrDrain
	bbrProbeBW
	bbrProbeRTT
)

// bbr is the first version of BBR, which is what Linux calls bbr:
// draft-cardwell-iccrg-bbr-congestion-control-00, whose names comments have, with what Linux has
// added to it, a percent of margin and room for aggregated acknowledgments; but not its guess at
// the rate of a policer, which nothing describes. It paces at the most that the path delivered in
// ten rounds, and no loss makes that less: where the third version, bbr3, backs off from more than
// 2 % lost, this one keeps its rate at 10 %, and so it does where others' packets are what is lost.
type bbr struct {
	bbrSender
	state bbrState
	bw    bbrMax
	cycle bbrCycle
	extra bbrExtra
	loss  bbrLoss
}

// bbrCycle is where ProbeBW's gains are.
type bbrCycle struct {
	phase int
	since clock.Time
}

// bbrLoss is what recovery leaves behind.
type bbrLoss struct {
	open     bool // recovery is in progress,
	entered  bool // since this very acknowledgment,
	conserve bool // and in its first round: a packet for each that is delivered
}

func newBBR(cfg Config) Controller {
	b := &bbr{bbrSender: newBBRSender(cfg, bbrHighGain, 0xbb1)}
	b.enter(bbrStartup)
	return b
}

// enter moves to a state, with its gains.
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

// OnAck is BBRUpdateOnACK.
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

// inflight is BBRInflight: what the path holds, times a gain, and three of the trains that
// hosts send and receive at once.
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

// quantum is BBRSetSendQuantum, which is one segment below 1.2 Mbit/s.
func (b *bbr) quantum() float64 {
	const slow = 1.2e6 / 8
	if b.rate < slow {
		return float64(b.mss)
	}
	return b.bbrSender.quantum()
}

// setCwnd is BBRSetCwnd.
func (b *bbr) setCwnd(a *Ack) {
	if !b.recover(a) {
		b.grow(a, b.inflight(b.gain, b.aggregated()))
	}
	if b.state == bbrProbeRTT {
		b.cwnd = min(b.cwnd, b.minPipe())
	}
	b.cwnd = max(min(b.cwnd, float64(b.cfg.MaxWindow)), float64(b.mss))
}

// recover is BBRModulateCwndForRecovery: what is lost leaves the window, and in the first
// round of fast recovery, which says whether the path still delivers, nothing else moves it
// but what is delivered. It reports whether that is so.
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

// OnLoss is BBROnEnterFastRecovery, or BBROnEnterRTO.
func (b *bbr) OnLoss(l *Loss) {
	if l.Kind == Echo {
		return // it has no answer to marks
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

// OnExit is BBRRestoreCwnd.
func (b *bbr) OnExit(e *Exit) {
	b.restoreCwnd()
	b.loss.open, b.loss.entered, b.loss.conserve = false, false, false
	if e.Spurious {
		b.full.reset(0) // a slow round may have been the recovery's
	}
}

// OnRestart is BBRHandleRestartFromIdle: pacing alone keeps the first flight from being a burst.
func (b *bbr) OnRestart(r *Restart) {
	if r.Unvalidated {
		return // the model is made of what was used
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

// cut reports whether the window is less than the model has it.
func (b *bbr) cut() bool { return b.loss.open || b.state == bbrProbeRTT }
