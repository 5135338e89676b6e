package congestion

import (
	"math/rand/v2"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// The constants that both versions of BBR have.
const (
	bbrCwndGain     = 2.0
	bbrPacingMargin = 0.99 // a percent below the path
	bbrMinPipe      = 4    // segments
	bbrMaxQuantum   = 64 << 10
	bbrFullRounds   = 3 // without growth, and the pipe is full
	bbrFullGrowth   = 1.25
	bbrMinRTTWindow = 10 * time.Second
	bbrProbeRTTTime = 200 * time.Millisecond
)

// bbrSender is what version 1 of BBR and version 3 do alike: it holds the window and the pacing
// rate, counts round trips, tells when the pipe is full, and keeps the least round trip. What the
// path delivers, and what to think of losses, is each version's own. Where their documents look at
// the connection, it looks at the acknowledgment.
type bbrSender struct {
	cfg     Config
	rng     *rand.Rand
	mss     int
	cwnd    float64
	rate    float64 // the pacing rate, bytes a second
	startup float64 // the pacing gain of Startup
	pacing  float64 // gains, of the bandwidth
	gain    float64 // and of the window
	paced   bool    // rate comes from a measured round trip
	// bubble is what must have been delivered before samples count again that ProbeRTT
	// made the application's.
	bubble uint64
	saved  float64 // the last window that neither loss recovery nor ProbeRTT had cut

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

// initRate is InitPacingRate: the first window in a round trip, which before any measurement is a
// millisecond.
func (b *bbrSender) initRate(srtt time.Duration) {
	b.paced = srtt > 0
	if !b.paced {
		srtt = time.Millisecond
	}
	b.rate = b.startup * b.cwnd / srtt.Seconds()
}

func (b *bbrSender) Cwnd() int { return int(b.cwnd) }

// Ssthresh is zero: there is no threshold, and recovery is the controller's own.
func (b *bbrSender) Ssthresh() int { return 0 }

func (b *bbrSender) PacingRate() int64 { return max(1, int64(b.rate)) }

// begin takes what an acknowledgment says of the connection. It reports whether the application
// limited its rate sample, or ProbeRTT.
func (b *bbrSender) begin(a *Ack) (limited bool) {
	b.mss = a.MSS
	if !b.paced && a.SRTT > 0 {
		b.initRate(a.SRTT)
	}
	return a.AppLimited || a.PriorDelivered < b.bubble
}

// setRate is SetPacingRateWithGain, whose product rate is: until the pipe is full the rate only
// grows, for samples may have been the application's.
func (b *bbrSender) setRate(rate float64) {
	rate *= bbrPacingMargin
	if rate > 0 && (b.full.reached || rate > b.rate) {
		b.rate = rate
	}
}

// quantum is SetSendQuantum, which the pacer of the connection applies too: a millisecond's worth.
func (b *bbrSender) quantum() float64 {
	return max(min(b.rate/1000, bbrMaxQuantum), float64(2*b.mss))
}

// minPipe is MinPipeCwnd: what a path of any length needs.
func (b *bbrSender) minPipe() float64 { return float64(bbrMinPipe * b.mss) }

// bdp is what the path holds, times a gain.
func (b *bbrSender) bdp(bw, gain float64) float64 {
	if b.rtt.min == 0 {
		return float64(b.cfg.FirstCwnd())
	}
	return float64(gain * bw * b.rtt.min.Seconds())
}

// grow is the middle of SetCwnd: towards target, and before the pipe is full only upwards.
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

// saveCwnd is SaveCwnd; cut says that recovery or ProbeRTT has cut the window.
func (b *bbrSender) saveCwnd(cut bool) {
	if cut {
		b.saved = max(b.saved, b.cwnd)
		return
	}
	b.saved = b.cwnd
}

func (b *bbrSender) restoreCwnd() { b.cwnd = max(b.cwnd, b.saved) }

// bbrRound counts round trips by what is delivered: one ends when data sent after it began arrives.
type bbrRound struct {
	count, next uint64
	start       bool
}

// update is UpdateRound.
func (r *bbrRound) update(a *Ack) {
	if r.start = a.PriorDelivered >= r.next; r.start {
		r.next = a.TotalDelivered
		r.count++
	}
}

// bbrFull tells when the pipe is full: when three rounds of sending faster have delivered little
// more.
type bbrFull struct {
	reached bool // it was, once
	now     bool // it is, since the search last began
	bw      float64
	count   int
}

// reset begins a search, from a bandwidth.
func (f *bbrFull) reset(bw float64) { f.bw, f.count, f.now = bw, 0, false }

// look takes a round's bandwidth.
func (f *bbrFull) look(bw float64) {
	if bw >= f.bw*bbrFullGrowth {
		f.reset(bw)
		return
	}
	f.count++
	f.now = f.count >= bbrFullRounds
	f.reached = f.reached || f.now
}

// bbrRTT estimates the round trip of an empty path. Now and then, unless the flow was that short of
// itself, it makes room for a sample.
type bbrRTT struct {
	min       time.Duration // of ten seconds; zero: no sample
	minAt     clock.Time
	expired   bool
	done      clock.Time // when ProbeRTT may end; never: it has not drained yet
	roundDone bool
	idle      bool // the flow restarts after a silence, which drained the path
}

// drained is HandleProbeRTT, where most may be in flight: the low rates of this state say nothing
// of the path. It reports whether a round trip has passed in it.
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

// over reports whether ProbeRTT has lasted long enough.
func (r *bbrRTT) over(now clock.Time) bool { return r.done != clock.Never && now > r.done }

// bbrBurst measures how much more arrives at once than the bandwidth explains: aggregation on the
// way.
type bbrBurst struct {
	start     clock.Time
	delivered float64
}

// surplus is UpdateACKAggregation, without the filter over rounds.
func (b *bbrSender) surplus(a *Ack, bw float64) float64 {
	e := &b.burst
	expected := bw * a.Now.Sub(e.start).Seconds()
	if e.start == clock.Never || e.delivered <= expected {
		e.start, e.delivered, expected = a.Now, 0, 0
	}
	e.delivered += float64(a.Delivered)
	return min(e.delivered-expected, b.cwnd)
}

// elapsed reports whether more than d has passed since an instant.
func elapsed(now, since clock.Time, d time.Duration) bool { return now.Sub(since) > d }
