package tcp

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
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

// limited remembers the limit, and since when it holds.
type limited struct {
	by    Limit
	since clock.Time
	spent // before since
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

func (l *limited) set(now clock.Time, by Limit) {
	if by != l.by {
		if l.since != clock.Never {
			l.spent.add(l.by, now.Sub(l.since))
		}
		l.by, l.since = by, now
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

// limitBy notes what limits the sender now. Whoever listens hears of a change.
func (c *Conn) limitBy(now clock.Time, by Limit) {
	changed := by != c.limit.by
	c.limit.set(now, by)
	if by == LimitCwnd || by == LimitRecovery {
		c.rec.rounds.used = true
	}
	if changed {
		c.sample(now)
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
func (c *Conn) SetProbe(f func(*Sample)) {
	c.probe, c.rec.changed = f, nil
	if f != nil {
		c.rec.changed = c.sample
	}
}

func (c *Conn) sample(now clock.Time) {
	if c.probe == nil {
		return
	}
	c.busy()
	if c.rec.cc.Controller == nil && c.state.synchronized() {
		c.rec.begin(c.congestionConfig()) // who looks on sees its window before it is used
	}
	s := &c.host.shot
	*s = Sample{
		Time: now, State: c.state, Congestion: c.rec.cc.name,
		Pipe: c.rec.pipe(), SendWindow: c.snd.wnd, RecvWindow: c.rcv.window(),
		SendMSS: c.snd.mss,
		Una:     streamed(c.snd.una, c.snd.iss), Nxt: streamed(c.snd.nxt, c.snd.iss),
		RcvNxt: streamed(c.rcv.nxt, c.rcv.irs), Delivered: c.rec.sent.delivered,
		Strategy: c.rec.how.name, Recovery: recoveryNames[c.rec.ep.kind],
		Timing: Timing{
			SRTT: c.rec.rtt.srtt, RTTVar: c.rec.rtt.rttvar, MinRTT: c.rec.rtt.lowest(),
			LatestRTT: c.rec.rtt.latest,
			RTO:       c.rec.timeout(),
		},
		Rates: Rates{DeliveryRate: c.rec.rate, AppLimited: c.rec.is.rateLimited},
		Flight: Flight{
			Unacked: c.rec.sent.len(), Sacked: c.rec.sent.count[sacked],
			Lost: c.rec.sent.count[lost], Retrans: c.rec.sent.again,
		},
		Traffic: c.traffic(), Counts: c.rec.lasting.counts,
		Limited: c.limit.by, LimitedSince: c.limit.since, RxUnread: c.rcv.rx.Len(),
	}
	s.RTTSamples = c.rec.rtt.samples
	if c.rec.cc.Controller != nil {
		s.Cwnd, s.Ssthresh, s.PacingRate = c.rec.cc.Cwnd(), c.rec.cc.Ssthresh(), c.rec.pacingRate()
		s.UnsentBytes = c.snd.unsent()
	}
	c.probe(s)
}

func (c *Conn) traffic() Traffic {
	s := &c.stats
	return Traffic{
		BytesSent: s.bytesSent, BytesAcked: s.bytesAcked, BytesRetrans: c.rec.lasting.bytesRetrans,
		BytesReceived: c.rcv.bytes, SegsOut: s.segsOut, SegsIn: s.segsIn,
		DataSegsOut: s.dataSegsOut, DataSegsIn: s.dataSegsIn, DeliveredSegs: c.rec.segments,
	}
}
