package congestion

import (
	"math"
	"time"
)

// The constants of BBR version 3, draft-ietf-ccwg-bbr §2.
const (
	bbr3StartupPacing  = 2.77 // 4 ln 2: the rate doubles in a round
	bbr3DrainPacing    = 0.5
	bbr3LossThresh     = 0.02 // share of lost data per round trip that probing tolerates
	bbr3Beta           = 0.7
	bbr3Headroom       = 0.15 // share of the path left to other flows
	bbr3StartupLosses  = 6    // number of gaps in a round that ends Startup
	bbr3ExtraRounds    = 10
	bbr3ProbeRTTGain   = 0.5
	bbr3ProbeRTTEvery  = 5 * time.Second
	bbr3RenoRounds     = 63 // probes at least as often as a Reno flow of this window
	bbr3ProbeWait      = 2 * time.Second
	bbr3ProbeWaitExtra = time.Second
)

// bbr3State is a state of BBR's state machine, draft-ietf-ccwg-bbr §3.3.
type bbr3State uint8

const (
	bbr3Startup  bbr3State = iota // doubles the rate until the path is full
	bbr3Drain                     // drains the queue of Startup
	bbr3Down                      // ProbeBW: below the bandwidth
	bbr3Cruise                    // ProbeBW: at the bandwidth
	bbr3Refill                    // ProbeBW: one round at the bandwidth, without short-term limits
	bbr3Up                        // ProbeBW: above the bandwidth
	bbr3ProbeRTT                  // half the usual data in flight, so that the queue drains
	bbr3NoState                   // no state to return to
)

// bbr3 implements BBR version 3 (draft-ietf-ccwg-bbr). A model of the path, its bandwidth and its
// minimum round-trip time, determines the pacing rate and the data in flight. Losses only limit the
// model. The comments give the draft's function names in parentheses. Where the draft reads the
// connection's state, bbr3 reads the acknowledgment.
type bbr3 struct {
	bbrSender
	state   bbr3State
	model   bbr3Model
	probe   bbr3Probe
	probed  bbr3Probed
	extra   bbr3Extra
	episode bbr3Episode

	drainRound uint64 // the round in which Drain began
}

func newBBR3(cfg Config) Controller {
	inf := math.Inf(1)
	b := &bbr3{bbrSender: newBBRSender(cfg, bbr3StartupPacing, 0xbb)}
	b.model = bbr3Model{bwShort: inf, inflightShort: inf, inflightLong: inf}
	b.probe.perIncrease = inf
	b.probed.least = cfg.MinRTT
	b.episode.undo.state = bbr3NoState
	b.enter(bbr3Startup)
	return b
}

// enter changes to a state and sets the gains of §5.6.1's table.
func (b *bbr3) enter(s bbr3State) {
	b.state, b.pacing, b.gain = s, 1, bbrCwndGain
	switch s {
	case bbr3Startup:
		b.pacing = bbr3StartupPacing
	case bbr3Drain:
		b.pacing = bbr3DrainPacing
	case bbr3Down:
		b.pacing = 0.9
	case bbr3Up:
		b.pacing, b.gain = 1.25, 2.25
	case bbr3ProbeRTT:
		b.gain = bbr3ProbeRTTGain
	case bbr3Cruise, bbr3Refill, bbr3NoState:
	}
}

// inProbeBW reports whether the state is one of the four ProbeBW states.
func (b *bbr3) inProbeBW() bool { return b.state >= bbr3Down && b.state <= bbr3Up }

// probing reports whether the state probes for bandwidth.
func (b *bbr3) probing() bool {
	return b.state == bbr3Startup || b.state == bbr3Refill || b.state == bbr3Up
}

// OnAck updates the model, the pacing rate and the window (UpdateOnACK, §5.2.3).
func (b *bbr3) OnAck(a *Ack) {
	limited := b.begin(a)
	b.latest(a)
	b.congestion(a, limited)
	b.aggregation(a)
	b.checkFull(a, limited)
	b.checkStartup(a)
	b.checkDrain(a)
	b.cycle(a, limited)
	b.updateMinRTT(a)
	b.checkProbeRTT(a)
	b.advanceLatest(a)
	b.model.bw = min(b.model.maxBW, b.model.bwShort)
	b.setRate(b.pacing * b.model.bw)
	b.setCwnd(a)
}

// startRound starts a round trip (StartRound, §5.5.1).
func (b *bbr3) startRound(delivered uint64) { b.round.next = delivered }

// budget adds room for the bursts in which hosts send, receive and acknowledge
// (QuantizationBudget).
func (b *bbr3) budget(inflight float64) float64 {
	inflight = max(inflight, 3*b.quantum(), b.minPipe())
	if b.state == bbr3Up {
		inflight += float64(2 * b.mss)
	}
	return inflight
}

// setCwnd updates the window (SetCwnd, §5.6.4.6).
func (b *bbr3) setCwnd(a *Ack) {
	b.grow(a, b.budget(b.bdp(b.model.bw, b.gain)+b.extra.most()))
	if b.state == bbr3ProbeRTT {
		b.cwnd = min(b.cwnd, b.probeRTTCwnd())
	}
	b.cwnd = min(b.cwnd, b.volumeCap(), float64(b.cfg.MaxWindow))
}

// volumeCap returns the model's limit for the window (BoundCwndForModel, §5.6.4.7).
func (b *bbr3) volumeCap() float64 {
	most := math.Inf(1)
	switch b.state {
	case bbr3Down, bbr3Refill, bbr3Up:
		most = b.model.inflightLong
	case bbr3Cruise, bbr3ProbeRTT:
		most = b.withHeadroom()
	case bbr3Startup, bbr3Drain, bbr3NoState:
	}
	return max(min(most, b.model.inflightShort), b.minPipe())
}

// OnRestart sets the pacing rate after an idle time (HandleRestartFromIdle, §5.4). The model is
// still valid, so the window stays, and pacing alone prevents a burst.
func (b *bbr3) OnRestart(r *Restart) {
	if r.Unvalidated {
		return // the model reflects only bandwidth that was used
	}
	b.rtt.idle = true
	b.burst.start = r.Now
	switch {
	case b.inProbeBW():
		b.setRate(b.model.bw)
	case b.state == bbr3ProbeRTT:
		b.checkProbeRTTDone(r.Now, b.bubble)
	}
}

// cut reports whether recovery or ProbeRTT holds the window below the model's window.
func (b *bbr3) cut() bool { return b.episode.open || b.state == bbr3ProbeRTT }
