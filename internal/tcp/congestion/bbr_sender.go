package congestion

import (
	"math/rand/v2"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Constants of both versions of BBR.
const (
	bbrCwndGain     = 2.0
	bbrPacingMargin = 0.99 // one percent below the bandwidth
	bbrMinPipe      = 4    // segments
	bbrMaxQuantum   = 64 << 10
	bbrFullRounds   = 3 // rounds without growth mean a full pipe
	bbrFullGrowth   = 1.25
	bbrMinRTTWindow = 10 * time.Second
	bbrProbeRTTTime = 200 * time.Millisecond
)

// bbrSender is the common part of versions 1 and 3 of BBR: the window, the pacing rate, the count
// of round trips, the detection of a full pipe, and the minimum round-trip time. Each version has
// its own bandwidth model and response to losses. Where the documents read the connection's state,
// bbrSender reads the acknowledgment.
type bbrSender struct {
	cfg     Config
	rng     *rand.Rand
	mss     int
	cwnd    float64
	rate    float64 // the pacing rate in bytes per second
	startup float64 // the pacing gain of Startup
	pacing  float64 // the pacing rate divided by the bandwidth
	gain    float64 // the window divided by the bandwidth-delay product
	paced   bool    // rate comes from a measured round trip
	// bubble is the delivered count up to which ProbeRTT limits the samples.
	bubble uint64
	saved  float64 // the last window before loss recovery or ProbeRTT reduced it

	round bbrRound
	full  bbrFull
	rtt   bbrRTT
	burst bbrBurst
}

func newBBRSender(cfg Config, startup float64, stream uint64) bbrSender {
	b := bbrSender{
		cfg: cfg, rng: rand.New(rand.NewPCG(cfg.Seed, stream)), mss: cfg.MSS,
		cwnd: float64(cfg.FirstCwnd()), startup: startup,
	}
	b.rtt.min = cfg.MinRTT
	b.initRate(cfg.SRTT)
	return b
}

// initRate sets the pacing rate to the initial window per round trip (InitPacingRate). Before the
// first measurement it assumes a round trip of a millisecond.
func (b *bbrSender) initRate(srtt time.Duration) {
	b.paced = srtt > 0
	if !b.paced {
		srtt = time.Millisecond
	}
	b.rate = b.startup * b.cwnd / srtt.Seconds()
}

func (b *bbrSender) Cwnd() int { return int(b.cwnd) }

// Ssthresh is zero: BBR has no threshold, and controls the window during recovery itself.
func (b *bbrSender) Ssthresh() int { return 0 }

func (b *bbrSender) PacingRate() int64 { return max(1, int64(b.rate)) }

// begin updates the state from an acknowledgment. It reports whether the application, or ProbeRTT,
// limited the rate sample.
func (b *bbrSender) begin(a *Ack) (limited bool) {
	b.mss = a.MSS
	if !b.paced && a.SRTT > 0 {
		b.initRate(a.SRTT)
	}
	return a.AppLimited || a.PriorDelivered < b.bubble
}

// setRate sets the pacing rate (SetPacingRateWithGain). Until the pipe is full the rate only grows,
// because samples can be application-limited.
func (b *bbrSender) setRate(rate float64) {
	rate *= bbrPacingMargin
	if rate > 0 && (b.full.reached || rate > b.rate) {
		b.rate = rate
	}
}

// quantum returns the size of a burst: the data of a millisecond (SetSendQuantum). The connection's
// pacer uses the same amount.
func (b *bbrSender) quantum() float64 {
	return max(min(b.rate/1000, bbrMaxQuantum), float64(2*b.mss))
}

// minPipe returns the minimum window (MinPipeCwnd).
func (b *bbrSender) minPipe() float64 { return float64(bbrMinPipe * b.mss) }

// bdp returns the bandwidth-delay product times a gain.
func (b *bbrSender) bdp(bw, gain float64) float64 {
	if b.rtt.min == 0 {
		return float64(b.cfg.FirstCwnd())
	}
	return float64(gain * bw * b.rtt.min.Seconds())
}

// grow moves the window towards target, and before the pipe is full only upwards (the middle of
// SetCwnd).
func (b *bbrSender) grow(a *Ack, target float64) {
	grown := b.cwnd + float64(a.Delivered)
	switch {
	case b.full.reached:
		b.cwnd = min(grown, target)
	case b.cwnd < target || a.TotalDelivered < uint64(b.cfg.InitialWindow):
		b.cwnd = grown
	}
	b.cwnd = max(b.cwnd, b.minPipe())
}

// saveCwnd stores the window (SaveCwnd). cut says that recovery or ProbeRTT has reduced it.
func (b *bbrSender) saveCwnd(cut bool) {
	if cut {
		b.saved = max(b.saved, b.cwnd)
		return
	}
	b.saved = b.cwnd
}

func (b *bbrSender) restoreCwnd() { b.cwnd = max(b.cwnd, b.saved) }

// bbrRound counts round trips by delivered data: a round ends when data that was sent after its
// start is acknowledged.
type bbrRound struct {
	count, next uint64
	start       bool
}

// update starts the next round if the acknowledgment reports data that was sent after the start of
// this one (UpdateRound).
func (r *bbrRound) update(a *Ack) {
	if r.start = a.PriorDelivered >= r.next; r.start {
		r.next = a.TotalDelivered
		r.count++
	}
}

// bbrFull detects a full pipe: the bandwidth has hardly grown in three rounds of faster sending.
type bbrFull struct {
	reached bool // the pipe was full at least once
	now     bool // the pipe was found full since the last reset
	bw      float64
	count   int
}

// reset restarts the detection from a bandwidth.
func (f *bbrFull) reset(bw float64) { f.bw, f.count, f.now = bw, 0, false }

// observe adds the bandwidth of a round.
func (f *bbrFull) observe(bw float64) {
	if bw >= f.bw*bbrFullGrowth {
		f.reset(bw)
		return
	}
	f.count++
	f.now = f.count >= bbrFullRounds
	f.reached = f.reached || f.now
}

// bbrRTT estimates the round-trip time of the path without queues. ProbeRTT drains the queue from
// time to time to take a sample, unless the flow has paused anyway.
type bbrRTT struct {
	min       time.Duration // the minimum of ten seconds; zero: no sample
	minAt     clock.Time
	expired   bool
	done      clock.Time // when ProbeRTT may end; clock.Never: not drained yet
	roundDone bool
	idle      bool // the flow restarts after an idle time, which drained the path
}

// drained reports whether a round trip has passed since the data in flight fell to most
// (HandleProbeRTT). The low rates of this state do not count as samples of the path.
func (b *bbrSender) drained(a *Ack, most float64) bool {
	r := &b.rtt
	b.bubble = a.TotalDelivered + uint64(a.InFlight) + 1
	if r.done == clock.Never {
		if float64(a.InFlight) <= most {
			r.done, r.roundDone = a.Now.Add(bbrProbeRTTTime), false
			b.round.next = a.TotalDelivered
		}
		return false
	}
	r.roundDone = r.roundDone || b.round.start
	return r.roundDone
}

func (r *bbrRTT) over(now clock.Time) bool { return r.done != clock.Never && now > r.done }

// bbrBurst measures how much more is acknowledged at once than the bandwidth explains. The cause is
// aggregation on the path.
type bbrBurst struct {
	start     clock.Time
	delivered float64
}

// surplus adds an acknowledgment and returns the current surplus (UpdateACKAggregation, without the
// filter over rounds).
func (b *bbrSender) surplus(a *Ack, bw float64) float64 {
	e := &b.burst
	expected := bw * a.Now.Sub(e.start).Seconds()
	if e.start == clock.Never || e.delivered <= expected {
		e.start, e.delivered, expected = a.Now, 0, 0
	}
	e.delivered += float64(a.Delivered)
	return min(e.delivered-expected, b.cwnd)
}

// elapsed reports whether more than d has passed since a time.
func elapsed(now, since clock.Time, d time.Duration) bool { return now.Sub(since) > d }
