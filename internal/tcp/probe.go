package tcp

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
)

// Limit is why a connection does not send more right now.
type Limit uint8

// The limits.
const (
	LimitNone      Limit = iota // nothing: it is sending
	LimitHandshake              // not established yet
	LimitApp                    // the application has written no more
	LimitIdle                   // nor is anything in flight
	LimitBuffer                 // the send buffer is full of what is in flight
	LimitReceiver               // the peer's window
	LimitCwnd                   // the congestion window
	LimitRecovery               // loss recovery
	LimitNagle                  // a short segment waits for an acknowledgment
	LimitPacing                 // the pacing rate
	LimitCork                   // or for company, because the user has asked for that
	LimitPersist                // the peer's window is shut, and is probed
	numLimits
)

var limitNames = [numLimits]string{
	"none", "handshake", "app", "idle", "sndbuf", "rwnd", "cwnd", "recovery", "nagle", "pacing",
	"cork", "persist",
}

// String returns the limit's short name.
func (l Limit) String() string {
	if l < numLimits {
		return limitNames[l]
	}
	return "?"
}

// limited remembers the limit, since when it holds, and whether the congestion
// window was in use.
type limited struct {
	by          Limit
	used        bool // the window was the limit in this round,
	usedLast    bool // or in the one before
	rateLimited bool // the rate was the application's rather than the path's
	since       clock.Time
	rate        int64 // the last delivery rate, bytes a second
	spent             // before since
	*rounds
}

// spent is how long there was something to do, and what of it was waited for: the clocks that
// Linux calls chrono.
type spent struct{ busy, rwnd, sndbuf time.Duration }

// add counts a time for which there was one limit.
func (s *spent) add(by Limit, d time.Duration) {
	switch by {
	case LimitIdle, LimitHandshake:
		return
	case LimitReceiver, LimitPersist:
		s.rwnd += d
	case LimitBuffer:
		s.sndbuf += d
	case LimitNone, LimitApp, LimitCwnd, LimitRecovery, LimitNagle, LimitPacing, LimitCork,
		numLimits:
	}
	s.busy += d
}

// rounds are what is known of the round trip in progress, and of those before it.
type rounds struct {
	roundEnd uint64 // snd.nxt as the round began
	// roundBegan is when, and roundSent the segments with text that had been sent.
	roundBegan clock.Time
	roundSent  uint64
	peak       int // the most in flight in this round,
	peakLast   int // and in the one before
	use        validation
	batch      batch
}

// batch is acknowledgments that come together: nothing can be sent between them.
type batch struct {
	at     clock.Time
	sent   uint64 // segments with text until then
	flight int    // as the first of them came
}

// gather takes note of an acknowledgment that finds so much outstanding.
func (b *batch) gather(now clock.Time, flight int, sent uint64) {
	if b.at != now || b.sent != sent {
		*b = batch{now, sent, flight}
	}
}

// flightSize is what is outstanding, and what the acknowledgments of a batch before this one
// made room for, which the sender had no time to fill: FlightSize is to say what the path
// carried, not how acknowledgments were gathered.
func (b *batch) flightSize(now clock.Time, flight int, sent uint64) int {
	if b.at == now && b.sent == sent {
		return max(flight, b.flight)
	}
	return flight
}

func (l *limited) set(now clock.Time, by Limit) {
	if by != l.by {
		if l.since != clock.Never {
			l.spent.add(l.by, now.Sub(l.since))
		}
		l.by, l.since = by, now
	}
	if by == LimitCwnd || by == LimitRecovery {
		l.used = true
	}
}

// times returns them until now.
func (l *limited) times(now clock.Time) (busy, rwnd, sndbuf time.Duration) {
	s := l.spent
	if l.since != clock.Never && now > l.since {
		s.add(l.by, now.Sub(l.since))
	}
	return s.busy, s.rwnd, s.sndbuf
}

// sent notes why a train was not longer.
func (l *limited) sent(why Limit) {
	if why == LimitCwnd {
		l.used = true
	}
}

// newRound reports whether una has passed what was in flight when the last
// round began, and begins another.
func (l *limited) newRound(una, nxt uint64, r *round, s *stats) bool {
	l.peak = max(l.peak, r.prior)
	if una < l.roundEnd {
		return false
	}
	if s.dataSegsOut != l.roundSent || r.now != l.roundBegan {
		// Of acknowledgments that come together the later ones find a round that has just begun,
		// in which nothing could be sent yet. It would say nothing of the window.
		l.usedLast, l.used = l.used, false
		l.peakLast, l.peak = l.peak, 0
	}
	l.roundEnd, l.roundBegan, l.roundSent = nxt, r.now, s.dataSegsOut
	return true
}

// byCwnd reports whether the congestion window bounded the sender lately. In
// slow start half of it in use is enough (RFC 7661 §4.3 validates so), because
// it doubles in a round.
func (l *limited) byCwnd(cc congestion.Controller) bool {
	return l.used || l.usedLast ||
		cc.Cwnd() < cc.Ssthresh() && cc.Cwnd() < 2*max(l.peak, l.peakLast)
}

// limitBy notes what limits the sender now. Whoever listens hears of a change.
func (c *Conn) limitBy(now clock.Time, by Limit) {
	changed := by != c.limit.by
	c.limit.set(now, by)
	if changed {
		c.sample(now)
	}
}

// spells are the times without an answer: from a first time-out to the next
// delivery.
type spells struct {
	since clock.Time // never: it answers
	count uint64
	total time.Duration
}

func (s *spells) begin(now clock.Time) {
	if s.since == clock.Never {
		s.since = now
		s.count++
	}
}

func (s *spells) end(now clock.Time) {
	if s.since != clock.Never {
		s.total += now.Sub(s.since)
		s.since = clock.Never
	}
}

// Sample is a connection's state at one instant, for graphs: what ss -ti prints, and
// more.
type Sample struct {
	Time                   clock.Time
	State                  State
	Congestion             string // the algorithm's name
	Cwnd, Ssthresh         int    // bytes; a zero Ssthresh means none
	Pipe                   int    // bytes in flight
	SendWindow, RecvWindow int
	SendMSS                int
	Una, Nxt               uint64 // stream offsets: acknowledged, sent
	RcvNxt                 uint64 // stream offset received in order
	Delivered              uint64 // bytes
	Recovery               string // open, recovery, loss
	Strategy               string // of loss recovery: gbn, newreno, sack, rack
	Timing
	Rates
	Flight
	Traffic
	Counts
	Limited               Limit
	LimitedSince          clock.Time
	UnsentBytes, RxUnread int
}

// Timing is what a Sample says of round trips.
type Timing struct {
	SRTT, RTTVar, MinRTT time.Duration
	LatestRTT, RTO       time.Duration
}

// Rates are a Sample's, in bytes a second.
type Rates struct {
	DeliveryRate, PacingRate int64 // a zero PacingRate: not paced
	AppLimited               bool  // DeliveryRate was the application's, not the path's
}

// Flight is what is outstanding at a Sample, in segments. Retrans are those in flight that
// were sent again.
type Flight struct{ Unacked, Sacked, Lost, Retrans int }

// Traffic is what a connection had sent and received by a Sample.
type Traffic struct {
	BytesSent, BytesAcked, BytesRetrans, BytesReceived uint64
	SegsOut, SegsIn, DataSegsOut, DataSegsIn           uint64
	DeliveredSegs                                      uint64
}

// Counts are a connection's events up to a Sample.
type Counts struct {
	Retransmits, Timeouts    uint64
	TailProbes, WindowProbes uint64
	LostRetransmits          uint64
	FastRecoveries           uint64
	Undone                   uint64 // spurious recoveries
	DupAcks, DSACKs          uint64
	ReorderSeen              uint64
	ECNEchoes                uint64 // reductions for marks that the peer told of
	RTTSamples               uint64 // measurements of the round trip
}

// SetProbe streams a sample to f at every acknowledgment that changes anything,
// whenever text was sent, at every change of the state and of what limits the sender,
// at time-outs, at probes of the tail and of the window as they are sent, and as the
// sender begins, ends or takes back a recovery or answers a mark. The sample is lent for
// the call, in which f calls nothing of the connection. Nil stops it.
func (c *Conn) SetProbe(f func(*Sample)) { c.probe = f }

func (c *Conn) sample(now clock.Time) {
	if c.probe == nil {
		return
	}
	c.busy()
	if c.cc.Controller == nil && c.state.synchronized() {
		c.newController() // who looks on sees its window before it is used
	}
	s := &c.host.shot
	*s = Sample{
		Time: now, State: c.state, Congestion: c.cc.name,
		Pipe: c.rec.pipe(), SendWindow: c.snd.wnd, RecvWindow: c.rcv.window(),
		SendMSS: c.snd.mss,
		Una:     streamed(c.snd.una, c.snd.iss), Nxt: streamed(c.snd.nxt, c.snd.iss),
		RcvNxt: streamed(c.rcv.nxt, c.rcv.irs), Delivered: c.rec.sent.delivered,
		Strategy: c.how.name, Recovery: recoveryNames[c.rec.kind],
		Timing: Timing{
			SRTT: c.rtt.srtt, RTTVar: c.rtt.rttvar, MinRTT: c.rtt.lowest(), LatestRTT: c.rtt.latest,
			RTO: c.timeout(),
		},
		Rates: Rates{DeliveryRate: c.limit.rate, AppLimited: c.limit.rateLimited},
		Flight: Flight{
			Unacked: c.rec.sent.len(), Sacked: c.rec.sent.count[sacked],
			Lost: c.rec.sent.count[lost], Retrans: c.rec.sent.again,
		},
		Traffic: c.traffic(), Counts: c.trouble.counts,
		Limited: c.limit.by, LimitedSince: c.limit.since, RxUnread: c.rcv.rx.Len(),
	}
	s.RTTSamples = c.rtt.samples
	if c.cc.Controller != nil {
		s.Cwnd, s.Ssthresh, s.PacingRate = c.cc.Cwnd(), c.cc.Ssthresh(), c.pacingRate()
		s.UnsentBytes = c.snd.unsent()
	}
	c.probe(s)
}

func (c *Conn) traffic() Traffic {
	s := &c.stats
	return Traffic{
		BytesSent: s.bytesSent, BytesAcked: s.bytesAcked, BytesRetrans: c.trouble.bytesRetrans,
		BytesReceived: c.rcv.bytes, SegsOut: s.segsOut, SegsIn: s.segsIn,
		DataSegsOut: s.dataSegsOut, DataSegsIn: s.dataSegsIn, DeliveredSegs: s.delivered,
	}
}
