package congestion

import (
	"math"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// bbr3Probe is the state of the ProbeBW cycle, draft-ietf-ccwg-bbr §5.3.3.
type bbr3Probe struct {
	phase         bbr3Phase
	sample        bool    // acknowledgments report data sent while probing
	upAcked       float64 // acknowledged bytes towards the next segment of inflightLong
	perIncrease   float64 // acknowledged bytes that raise inflightLong by a segment
	upRounds      uint
	roundsSince   uint64 // rounds since the last UP
	wait          time.Duration
	since         clock.Time // when the cycle began
	tooHigh       bool       // the last probe lost too much
	precautionary bool       // the last probe ended before it could lose too much
}

// bbr3Phase says what acknowledgments mean for the probe.
type bbr3Phase uint8

const (
	bbr3Init      bbr3Phase = iota // nothing
	bbr3Refilling                  // they report data sent to fill the pipe
	bbr3Starting                   // the probe has begun; they report older data
	bbr3Feedback                   // they report data sent while probing
	bbr3Stopping                   // the probe has ended; they still report its data
)

// startDown enters Down (StartProbeBW_DOWN).
func (b *bbr3) startDown(a *Ack) {
	b.resetSignals()
	p := &b.probe
	p.perIncrease = math.Inf(1)
	// A random wait keeps flows from probing at the same time (PickProbeWait, §5.3.3.5).
	p.roundsSince = b.rng.Uint64N(2)
	p.wait = bbr3ProbeWait + time.Duration(b.rng.Int64N(int64(bbr3ProbeWaitExtra)))
	p.since = a.Now
	p.phase = bbr3Stopping
	b.startRound(a.TotalDelivered)
	b.enter(bbr3Down)
}

// startRefill enters Refill (StartProbeBW_REFILL).
func (b *bbr3) startRefill(delivered uint64) {
	b.model.resetShortTerm()
	p := &b.probe
	p.upRounds, p.upAcked, p.precautionary = 0, 0, false
	p.phase = bbr3Refilling
	b.startRound(delivered)
	b.enter(bbr3Refill)
}

// startUp enters Up (StartProbeBW_UP).
func (b *bbr3) startUp(a *Ack) {
	b.probe.phase = bbr3Starting
	b.startRound(a.TotalDelivered)
	b.full.reset(float64(a.Rate))
	b.enter(bbr3Up)
	b.raiseSlope()
}

// cycle moves through the states of ProbeBW (UpdateProbeBWCyclePhase, §5.3.3.6).
func (b *bbr3) cycle(a *Ack, limited bool) {
	if !b.full.reached || b.adaptLongTerm(a, limited) {
		return
	}
	switch b.state {
	case bbr3Down:
		if !b.timeToProbe(a) && b.timeToCruise(a) {
			b.enter(bbr3Cruise)
		}
	case bbr3Cruise:
		b.timeToProbe(a)
	case bbr3Refill:
		if b.round.start {
			b.probe.sample = true
			b.startUp(a)
		}
	case bbr3Up:
		if b.timeToGoDown(a) {
			b.probe.tooHigh = false
			b.startDown(a)
		}
	case bbr3Startup, bbr3Drain, bbr3ProbeRTT, bbr3NoState:
	}
}

// timeToProbe enters Refill if it is time to probe, and reports whether it did (IsTimeToProbeBW,
// §5.3.3.5). A probe is due after two to three seconds, or earlier after as many rounds as the
// target has segments, at most bbr3RenoRounds: Reno probes about as often.
func (b *bbr3) timeToProbe(a *Ack) bool {
	p := &b.probe
	reno := min(b.target()/float64(b.mss), bbr3RenoRounds)
	if !elapsed(a.Now, p.since, p.wait) && float64(p.roundsSince) < reno {
		return false
	}
	b.startRefill(a.TotalDelivered)
	return true
}

// target returns the bandwidth-delay product, at most the window (TargetInflight).
func (b *bbr3) target() float64 { return min(b.bdp(b.model.bw, 1), b.cwnd) }

// timeToCruise reports whether the queue is drained, with headroom left (IsTimeToCruise).
func (b *bbr3) timeToCruise(a *Ack) bool {
	inflight := float64(a.InFlight)
	return inflight <= b.withHeadroom() && inflight <= b.budget(b.bdp(b.model.maxBW, 1))
}

// timeToGoDown reports whether to end the probe (IsTimeToGoDown).
func (b *bbr3) timeToGoDown(a *Ack) bool {
	p, long := &b.probe, b.model.inflightLong
	if p.tooHigh && float64(a.InFlight) >= long {
		p.precautionary = true
		return true
	}
	if a.CwndLimited && b.cwnd >= long {
		b.full.reset(float64(a.Rate)) // the bound, not the path, limits the bandwidth
		return false
	}
	return b.full.now
}

// withHeadroom returns the long-term limit minus headroom for others (InflightWithHeadroom).
func (b *bbr3) withHeadroom() float64 {
	long := b.model.inflightLong
	if math.IsInf(long, 1) {
		return long
	}
	return max(long-max(float64(b.mss), bbr3Headroom*long), b.minPipe())
}

// raiseSlope doubles the growth of inflightLong per round (RaiseInflightLongtermSlope).
func (b *bbr3) raiseSlope() {
	p := &b.probe
	p.perIncrease = max(b.cwnd/float64(uint64(1)<<p.upRounds), float64(b.mss))
	p.upRounds = min(p.upRounds+1, 30)
}

// probeUpward raises inflightLong while the window uses all of it (ProbeInflightLongtermUpward).
func (b *bbr3) probeUpward(a *Ack) {
	if !a.CwndLimited || b.cwnd < b.model.inflightLong {
		return
	}
	p := &b.probe
	p.upAcked += float64(a.Delivered)
	if n := math.Floor(p.upAcked / p.perIncrease); n > 0 {
		p.upAcked -= float64(n * p.perIncrease)
		b.model.inflightLong += float64(n * float64(b.mss))
	}
	if b.round.start {
		b.raiseSlope()
	}
}

// adaptLongTerm updates the long-term limit from the feedback of probes (AdaptLongTermModel). It
// reports whether it changed the state.
func (b *bbr3) adaptLongTerm(a *Ack, limited bool) bool {
	p := &b.probe
	if b.round.start {
		switch p.phase {
		case bbr3Starting:
			p.phase = bbr3Feedback
		case bbr3Stopping:
			p.sample, p.phase = false, bbr3Init
			if b.inProbeBW() && !limited {
				b.model.advanceFilter()
			}
			if b.inProbeBW() && p.precautionary && !p.tooHigh {
				b.startRefill(a.TotalDelivered)
				return true
			}
		case bbr3Init, bbr3Refilling, bbr3Feedback:
		}
	}
	sent := float64(a.TxInFlight)
	if b.tooHigh(sent, float64(a.LostSince)) || math.IsInf(b.model.inflightLong, 1) {
		return false
	}
	b.model.inflightLong = max(b.model.inflightLong, sent)
	if b.state == bbr3Up {
		b.probeUpward(a)
	}
	return false
}
