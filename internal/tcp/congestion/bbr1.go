package congestion

import (
	"math/rand/v2"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// The constants of BBR's first version.
const (
	bbr1HighGain    = 2.885 // 2/ln 2: the rate doubles in a round
	bbr1CwndGain    = 2.0
	bbr1BWRounds    = 10
	bbr1Phases      = 8
	bbr1ExtraRounds = 5 // and as many before
	bbr1ExtraMost   = 0.1
	bbr1MinRTTEvery = 10 * time.Second
)

// bbr1State is a state of its machine.
type bbr1State uint8

const (
	bbr1Startup bbr1State = iota
	bbr1Drain
	bbr1ProbeBW
	bbr1ProbeRTT
)

// bbr1 is the first version of BBR: draft-cardwell-iccrg-bbr-congestion-control-00, whose
// names comments have, with what Linux has added to it, a percent of margin and room for
// aggregated acknowledgments; but not its guess at the rate of a policer, which nothing
// describes. It paces at the most that the path delivered in ten rounds, and no loss makes
// that less: where the third version, bbr, backs off from more than 2 % lost, this one keeps
// its rate at 10 %, and so it does where others' packets are what is lost.
type bbr1 struct {
	cfg    Config
	rng    *rand.Rand
	mss    int
	state  bbr1State
	cwnd   float64
	rate   float64 // the pacing rate, bytes a second
	pacing float64 // gains, of the bandwidth
	gain   float64 // and of the window
	paced  bool    // rate comes from a measured round trip
	bubble uint64  // what must be delivered before samples count again that ProbeRTT made low

	round bbrRound
	bw    bbr1Max
	full  bbrFull
	cycle bbr1Cycle
	rtt   bbrRTT
	extra bbr1Extra
	loss  bbr1Loss
}

// bbr1Cycle is where ProbeBW's gains are.
type bbr1Cycle struct {
	phase int
	since clock.Time
}

// bbr1Loss is what recovery leaves behind.
type bbr1Loss struct {
	cwnd     float64 // the last window that neither recovery nor ProbeRTT had cut
	open     bool    // recovery is in progress,
	entered  bool    // since this very acknowledgment,
	conserve bool    // and in its first round: a packet for each that is delivered
}

func newBBR1(cfg Config) Controller {
	b := &bbr1{
		cfg: cfg, rng: rand.New(rand.NewPCG(cfg.Seed, 0xbb1)), mss: cfg.MSS,
		cwnd: float64(cfg.FirstCwnd()),
	}
	b.rtt.min = cfg.MinRTT
	b.enter(bbr1Startup)
	b.initRate(cfg.SRTT)
	return b
}

// initRate is BBRInitPacingRate: the first window in a round trip, which before any
// measurement is a millisecond.
func (b *bbr1) initRate(srtt time.Duration) {
	b.paced = srtt > 0
	if !b.paced {
		srtt = time.Millisecond
	}
	b.rate = bbr1HighGain * b.cwnd / srtt.Seconds()
}

// enter moves to a state, with its gains.
func (b *bbr1) enter(s bbr1State) {
	b.state, b.pacing, b.gain = s, 1, bbr1CwndGain
	switch s {
	case bbr1Startup:
		b.pacing, b.gain = bbr1HighGain, bbr1HighGain
	case bbr1Drain:
		b.pacing, b.gain = 1/bbr1HighGain, bbr1HighGain
	case bbr1ProbeRTT:
		b.gain = 1
	case bbr1ProbeBW:
	}
}

func (b *bbr1) Cwnd() int { return int(b.cwnd) }

// Ssthresh is zero: there is no threshold, and recovery is the controller's own.
func (b *bbr1) Ssthresh() int { return 0 }

func (b *bbr1) PacingRate() int64 { return max(1, int64(b.rate)) }

// OnAck is BBRUpdateOnACK.
func (b *bbr1) OnAck(a *Ack) {
	b.mss = a.MSS
	if !b.paced && a.SRTT > 0 {
		b.initRate(a.SRTT)
	}
	limited := a.AppLimited || a.PriorDelivered < b.bubble
	b.updateBW(a, limited)
	b.aggregation(a)
	b.checkCycle(a)
	b.checkFull(limited)
	b.checkDrain(a)
	b.updateRTT(a)
	b.setRate(b.pacing)
	b.setCwnd(a)
}

// setRate is BBRSetPacingRateWithGain: until the pipe is full the rate only grows.
func (b *bbr1) setRate(gain float64) {
	rate := gain * b.bw.most * bbrPacingMargin
	if rate > 0 && (b.full.reached || rate > b.rate) {
		b.rate = rate
	}
}

func (b *bbr1) minPipe() float64 { return float64(bbrMinPipe * b.mss) }

// inflight is BBRInflight: what the path holds, times a gain, and three of the trains that
// hosts send and receive at once.
func (b *bbr1) inflight(gain, more float64) float64 {
	if b.rtt.min == 0 {
		return float64(b.cfg.FirstCwnd())
	}
	quantum := max(min(b.rate/1000, bbrMaxQuantum), float64(2*b.mss))
	target := float64(gain*b.bw.most*b.rtt.min.Seconds()) + more + float64(3*quantum)
	if b.state == bbr1ProbeBW && b.cycle.phase == 0 {
		target += float64(2 * b.mss)
	}
	return target
}

// setCwnd is BBRSetCwnd.
func (b *bbr1) setCwnd(a *Ack) {
	if !b.recover(a) {
		target := b.inflight(b.gain, b.aggregated())
		grown := b.cwnd + float64(a.Delivered)
		switch {
		case b.full.reached:
			b.cwnd = min(grown, target)
		case b.cwnd < target || a.TotalDelivered < uint64(b.cfg.InitialWindow):
			b.cwnd = grown
		}
		b.cwnd = max(b.cwnd, b.minPipe())
	}
	if b.state == bbr1ProbeRTT {
		b.cwnd = min(b.cwnd, b.minPipe())
	}
	b.cwnd = max(min(b.cwnd, float64(b.cfg.MaxWindow)), float64(b.mss))
}

// recover is BBRModulateCwndForRecovery: what is lost leaves the window, and in the first
// round of fast recovery, which says whether the path still delivers, nothing else moves it
// but what is delivered. It reports whether that is so.
func (b *bbr1) recover(a *Ack) bool {
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
func (b *bbr1) OnLoss(l *Loss) {
	if l.Kind == Echo {
		return // it has no answer to marks
	}
	b.saveCwnd()
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
func (b *bbr1) OnExit(e *Exit) {
	b.restoreCwnd()
	b.loss.open, b.loss.entered, b.loss.conserve = false, false, false
	if e.Spurious {
		b.full.reset(0) // a slow round may have been the recovery's
	}
}

// OnRestart is BBRHandleRestartFromIdle: pacing alone keeps the first flight from being a
// burst.
func (b *bbr1) OnRestart(r *Restart) {
	if r.Unvalidated {
		return // the model is made of what was used
	}
	b.rtt.idle = true
	b.extra.start = r.Now
	switch b.state {
	case bbr1ProbeBW:
		b.setRate(1)
	case bbr1ProbeRTT:
		b.checkProbeRTTDone(r.Now)
	case bbr1Startup, bbr1Drain:
	}
}

// saveCwnd is BBRSaveCwnd.
func (b *bbr1) saveCwnd() {
	if b.loss.open || b.state == bbr1ProbeRTT {
		b.loss.cwnd = max(b.loss.cwnd, b.cwnd)
		return
	}
	b.loss.cwnd = b.cwnd
}

func (b *bbr1) restoreCwnd() { b.cwnd = max(b.cwnd, b.loss.cwnd) }
