package congestion

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// The constants of BBR version 3, draft-ietf-ccwg-bbr §2.
const (
	bbrStartupPacing  = 2.77 // 4 ln 2: the rate doubles in a round
	bbrDrainPacing    = 0.5
	bbrPacingMargin   = 0.99 // a percent below the path
	bbrCwndGain       = 2.0
	bbrLossThresh     = 0.02 // of a round trip, that probing tolerates
	bbrBeta           = 0.7
	bbrHeadroom       = 0.15 // of the path, left to others
	bbrMinPipe        = 4    // segments
	bbrStartupLosses  = 6    // gaps in a round that end Startup
	bbrFullRounds     = 3    // without growth, and the pipe is full
	bbrFullGrowth     = 1.25
	bbrExtraRounds    = 10
	bbrProbeRTTGain   = 0.5
	bbrProbeRTTTime   = 200 * time.Millisecond
	bbrProbeRTTEvery  = 5 * time.Second
	bbrMinRTTWindow   = 10 * time.Second
	bbrMaxQuantum     = 64 << 10
	bbrRenoRounds     = 63 // a Reno flow of this window gets its turn
	bbrProbeWait      = 2 * time.Second
	bbrProbeWaitExtra = time.Second
)

// bbrState is a state of BBR's machine, draft-ietf-ccwg-bbr §3.3.
type bbrState uint8

const (
	bbrStartup  bbrState = iota // doubles the rate until the path is full
	bbrDrain                    // lets go the queue that this made
	bbrDown                     // ProbeBW: sends slower than the path delivers
	bbrCruise                   // ProbeBW: as fast as it delivers
	bbrRefill                   // ProbeBW: the same, for a round, without short-term bounds
	bbrUp                       // ProbeBW: faster
	bbrProbeRTT                 // sends so little that no queue of its own is left
	bbrNoState                  // nothing to return to
)

// bbr is BBR version 3 as draft-ietf-ccwg-bbr describes it: a model of the
// path, of what it delivers and how long it takes at least, decides how fast to
// send and how much may be in flight. Loss bounds the model; it does not drive
// it. Where the draft looks at its connection, bbr looks at the acknowledgment.
type bbr struct {
	cfg    Config
	rng    *rand.Rand
	mss    int
	state  bbrState
	cwnd   float64
	rate   float64 // the pacing rate, bytes a second
	pacing float64 // gains, of the bandwidth
	gain   float64 // and of the window
	paced  bool    // rate comes from a measured round trip
	// bubble is what must have been delivered before samples count again that ProbeRTT
	// made the application's.
	bubble uint64

	round   bbrRound
	model   bbrModel
	full    bbrFull
	probe   bbrProbe
	rtt     bbrRTT
	extra   bbrExtra
	episode bbrEpisode

	drainRound uint64 // the round in which Drain began
}

// bbrRound counts round trips by what is delivered: one ends when data sent
// after it began arrives.
type bbrRound struct {
	count, next uint64
	start       bool
}

func newBBR(cfg Config) Controller {
	inf := math.Inf(1)
	b := &bbr{
		cfg: cfg, rng: rand.New(rand.NewPCG(cfg.Seed, 0xbb)), mss: cfg.MSS,
		cwnd: float64(cfg.FirstCwnd()),
	}
	b.model = bbrModel{bwShort: inf, inflightShort: inf, inflightLong: inf}
	b.probe.perIncrease = inf
	b.rtt.min, b.rtt.probed = cfg.MinRTT, cfg.MinRTT
	b.episode.undo.state = bbrNoState
	b.enter(bbrStartup)
	b.initRate(cfg.SRTT)
	return b
}

// initRate is InitPacingRate, §5.6.2: the first window in a round trip, which
// before any measurement is a millisecond.
func (b *bbr) initRate(srtt time.Duration) {
	b.paced = srtt > 0
	if !b.paced {
		srtt = time.Millisecond
	}
	b.rate = bbrStartupPacing * b.cwnd / srtt.Seconds()
}

// enter moves to a state, with the gains of §5.6.1's table.
func (b *bbr) enter(s bbrState) {
	b.state, b.pacing, b.gain = s, 1, bbrCwndGain
	switch s {
	case bbrStartup:
		b.pacing = bbrStartupPacing
	case bbrDrain:
		b.pacing = bbrDrainPacing
	case bbrDown:
		b.pacing = 0.9
	case bbrUp:
		b.pacing, b.gain = 1.25, 2.25
	case bbrProbeRTT:
		b.gain = bbrProbeRTTGain
	case bbrCruise, bbrRefill, bbrNoState:
	}
}

// inProbeBW reports whether the state is one of the four of ProbeBW.
func (b *bbr) inProbeBW() bool { return b.state >= bbrDown && b.state <= bbrUp }

// probing reports whether the state seeks more bandwidth.
func (b *bbr) probing() bool {
	return b.state == bbrStartup || b.state == bbrRefill || b.state == bbrUp
}

func (b *bbr) Cwnd() int { return int(b.cwnd) }

// Ssthresh is zero: BBR has no threshold, and reduces by its model in recovery.
func (b *bbr) Ssthresh() int { return 0 }

func (b *bbr) PacingRate() int64 { return max(1, int64(b.rate)) }

// OnAck is UpdateOnACK, §5.2.3.
func (b *bbr) OnAck(a *Ack) {
	b.mss = a.MSS
	if !b.paced && a.SRTT > 0 {
		b.initRate(a.SRTT)
	}
	limited := a.AppLimited || a.PriorDelivered < b.bubble
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
	b.setRate(b.pacing)
	b.setCwnd(a)
}

// startRound is StartRound, §5.5.1.
func (b *bbr) startRound(delivered uint64) { b.round.next = delivered }

// setRate is SetPacingRateWithGain, §5.6.2: until the pipe is full the rate only
// grows, for samples may have been the application's.
func (b *bbr) setRate(gain float64) {
	rate := gain * b.model.bw * bbrPacingMargin
	if rate > 0 && (b.full.reached || rate > b.rate) {
		b.rate = rate
	}
}

// quantum is SetSendQuantum, §5.6.3, which the pacer of the connection applies
// too: a millisecond's worth.
func (b *bbr) quantum() float64 {
	return max(min(b.rate/1000, bbrMaxQuantum), float64(2*b.mss))
}

// minPipe is MinPipeCwnd: what a path of any length needs.
func (b *bbr) minPipe() float64 { return float64(bbrMinPipe * b.mss) }

// bdp is BDPMultiple, §5.6.4.2: what the path holds, times a gain.
func (b *bbr) bdp(bw, gain float64) float64 {
	if b.rtt.min == 0 {
		return float64(b.cfg.FirstCwnd())
	}
	return gain * bw * b.rtt.min.Seconds()
}

// budget is QuantizationBudget: enough for the bursts in which hosts send,
// receive and acknowledge.
func (b *bbr) budget(inflight float64) float64 {
	inflight = max(inflight, 3*b.quantum(), b.minPipe())
	if b.state == bbrUp {
		inflight += float64(2 * b.mss)
	}
	return inflight
}

// setCwnd is SetCwnd, §5.6.4.6.
func (b *bbr) setCwnd(a *Ack) {
	most := b.budget(b.bdp(b.model.bw, b.gain) + b.extra.most())
	grown := b.cwnd + float64(a.Delivered)
	switch {
	case b.full.reached:
		b.cwnd = min(grown, most)
	case b.cwnd < most || a.TotalDelivered < uint64(b.cfg.InitialWindow):
		b.cwnd = grown
	}
	b.cwnd = max(b.cwnd, b.minPipe())
	if b.state == bbrProbeRTT {
		b.cwnd = min(b.cwnd, b.probeRTTCwnd())
	}
	b.cwnd = min(b.cwnd, b.volumeCap(), float64(b.cfg.MaxWindow))
}

// volumeCap is BoundCwndForModel, §5.6.4.7.
func (b *bbr) volumeCap() float64 {
	most := math.Inf(1)
	switch b.state {
	case bbrDown, bbrRefill, bbrUp:
		most = b.model.inflightLong
	case bbrCruise, bbrProbeRTT:
		most = b.withHeadroom()
	case bbrStartup, bbrDrain, bbrNoState:
	}
	return max(min(most, b.model.inflightShort), b.minPipe())
}

// OnRestart is HandleRestartFromIdle, §5.4: the model still holds, so the window
// stays, and pacing alone keeps the first flight from being a burst.
func (b *bbr) OnRestart(r *Restart) {
	if r.Unvalidated {
		return // the model is made of what was used
	}
	b.rtt.idle = true
	b.extra.start = r.Now
	switch {
	case b.inProbeBW():
		b.setRate(1)
	case b.state == bbrProbeRTT:
		b.checkProbeRTTDone(r.Now, b.bubble)
	}
}

// saveCwnd and restoreCwnd keep the last window that neither loss recovery nor
// ProbeRTT had cut, §5.6.4.4.
func (b *bbr) saveCwnd() {
	if b.episode.open || b.state == bbrProbeRTT {
		b.episode.cwnd = max(b.episode.cwnd, b.cwnd)
		return
	}
	b.episode.cwnd = b.cwnd
}

func (b *bbr) restoreCwnd() { b.cwnd = max(b.cwnd, b.episode.cwnd) }

// elapsed reports whether more than d has passed since an instant.
func elapsed(now, since clock.Time, d time.Duration) bool { return now.Sub(since) > d }
