// Package congestion implements the congestion control algorithms, one per file, behind one
// interface. A controller determines the congestion window of a connection. The connection passes
// it acknowledgments and losses, and the controller never accesses the connection.
package congestion

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Ack describes one acknowledgment.
type Ack struct {
	Now clock.Time
	// Delivered is the number of bytes that this acknowledgment newly reports as received,
	// cumulatively or by SACK. Each byte counts once. In Tahoe's slow start, and in the slow start
	// after a timeout without SACK, data that was sent before the loss does not count, except for
	// one segment if SND.UNA moved.
	Delivered int
	// Prior and InFlight are the bytes in flight before and after the acknowledgment.
	Prior, InFlight int
	// MSS is the current maximum payload of a segment.
	MSS int
	// Lost is the number of bytes that were marked lost since the previous acknowledgment.
	Lost int
	// RTT is this acknowledgment's sample, or zero. MinRTT and SRTT are the connection's estimates.
	RTT, MinRTT, SRTT time.Duration
	// TotalDelivered is the connection's count of delivered bytes. Rate is the delivery rate in
	// bytes per second that this acknowledgment shows (zero: no sample). AppLimited says that the
	// sender, not the path, limited that rate.
	TotalDelivered uint64
	Rate           int64
	AppLimited     bool
	// State at the time when the newest delivered segment was sent: PriorDelivered is
	// TotalDelivered, TxInFlight the bytes in flight with this segment, and LostSince the bytes
	// marked lost since then.
	PriorDelivered        uint64
	TxInFlight, LostSince int
	// Round is true on the first acknowledgment of each round trip.
	Round bool
	// CwndLimited says that in this round or the last the window limited the sender, not the
	// application or the receiver. A window that is not used must not grow (RFC 7661 §4.4).
	CwndLimited bool
	// Recovering says that the window must not grow: in fast recovery, where PRR controls sending,
	// at an ECN mark, and usually while only SACK reports data.
	Recovering bool
	// Echo says that the ECE flag is set (RFC 3168 §6.1.3). Marked is the number of Delivered bytes
	// that arrived marked, as a DCTCP receiver reports them (RFC 8257 §3.2). For any other
	// receiver, which repeats the flag until it sees CWR, it is UnknownMarks.
	Echo   bool
	Marked int
	// Transit is the receiver's timestamp minus the timestamp that it echoes (RFC 7323 §3), modulo
	// 2³², in milliseconds. It is the sum of the one-way delay of the oldest acknowledged segment,
	// the delay of its acknowledgment, and the unknown difference of the two hosts' clocks. Without
	// Stamped there are no timestamps.
	Transit uint32
	Stamped bool
	// SentAt is when the newest delivered segment was last sent; clock.Never: unknown.
	SentAt clock.Time
}

// UnknownMarks is the value of Ack.Marked if the receiver does not report marked bytes.
const UnknownMarks = -1

// Kind says how a loss was detected.
type Kind uint8

// The kinds of Loss. All except Echo start an episode, which OnExit ends. A timeout can follow
// Detected in one episode.
const (
	// Detected is a loss detected by duplicate or selective acknowledgments.
	Detected Kind = iota
	// Timeout is the first retransmission timeout of the data.
	Timeout
	// TimeoutAgain is a further timeout of the same data: RFC 5681 §3.1 keeps ssthresh.
	TimeoutAgain
	// Echo is an explicit congestion notification, once per window of data (RFC 3168 §6.1.2). No
	// data was lost, so it starts no episode.
	Echo
)

// Loss starts a loss episode, once per window and not per segment.
type Loss struct {
	Now  clock.Time
	Kind Kind
	// FlightSize is the data that was sent and not cumulatively acknowledged (RFC 5681 §2).
	// InFlight is the part of it that is considered to be in the network.
	FlightSize, InFlight int
	MSS                  int
}

// Exit ends a loss episode.
type Exit struct {
	Now clock.Time
	// InFlight is the data in flight at the end.
	InFlight, MSS int
	// Spurious says that nothing was lost, so the controller may undo its reduction. OnExit can
	// also report this after the end of the episode, and then means the last one.
	Spurious bool
	// Ceiling, unless it is zero, limits the window: the sender was not using its window when the
	// loss occurred, so nothing shows that the path can carry more (RFC 7661 §4.4.1).
	Ceiling int
}

// Restart reports that new data is sent while nothing is in flight, or that the window was not used
// for a long time.
type Restart struct {
	Now clock.Time
	// Idle is the time since data was last sent, RTO the retransmission timeout.
	Idle, RTO time.Duration
	// Unvalidated says that data is in flight, but less than half of the window was used for five
	// minutes (RFC 7661 §4.4.3).
	Unvalidated bool
	MSS         int
}

// LostSegment is a segment that has just been marked lost.
type LostSegment struct {
	Now clock.Time
	// Seq is the segment's first byte, Size its length in bytes.
	Seq  uint64
	Size int
	// TxInFlight is the data in flight when the segment was last sent, and LostSince the data
	// marked lost since then. Both include this segment. AppLimited says that the application
	// limited the sender then.
	TxInFlight, LostSince int
	AppLimited            bool
	// TotalDelivered is the connection's current count of delivered bytes.
	TotalDelivered uint64
	// SentAt is when the segment was last sent.
	SentAt clock.Time
}

// Sent is data that was sent: a segment, or adjacent segments sent as one train.
type Sent struct {
	Now clock.Time
	// Seq is the first byte, Size the length in bytes, Segments the number of segments.
	Seq            uint64
	Size, Segments int
	MSS            int
	// InFlight is the number of bytes in flight, including this data.
	InFlight int
	// Again says that the data is retransmitted.
	Again bool
}

// Timer is the connection's state when the timer of a Timed controller expires.
type Timer struct {
	Now clock.Time
	// InFlight is the number of bytes in flight, MSS the largest payload of a segment.
	InFlight, MSS int
	// TotalDelivered and TotalLost are the connection's counts of bytes delivered and marked lost.
	TotalDelivered, TotalLost uint64
	// MinRTT and SRTT are the connection's estimates, zero without a sample.
	MinRTT, SRTT time.Duration
}

// Controller is a congestion control algorithm for one connection. The structs that its methods
// receive are valid only during the call.
type Controller interface {
	// OnAck handles an acknowledgment; it can increase the window.
	OnAck(a *Ack)
	// OnLoss reduces the window.
	OnLoss(l *Loss)
	// OnExit ends the episode that OnLoss started.
	OnExit(e *Exit)
	// Cwnd returns the congestion window in bytes.
	Cwnd() int
	// Ssthresh returns the slow start threshold in bytes. Zero: the algorithm has none, and
	// recovery must not reduce the window towards one (PRR is off). If the window is below the
	// threshold after OnLoss(Detected), the algorithm restarts slow start, as after a timeout.
	Ssthresh() int
	// PacingRate returns the rate in bytes per second, or zero if the algorithm does not pace.
	PacingRate() int64
}

// Restarter is a Controller that handles idle times.
type Restarter interface {
	// OnRestart is called in the two cases that Restart describes.
	OnRestart(r *Restart)
}

// LossWatcher is a Controller that handles each lost segment.
type LossWatcher interface {
	// OnSegmentLost is called for each segment that is marked lost, before OnLoss and OnAck of the
	// same event.
	OnSegmentLost(l *LostSegment)
}

// SendWatcher is a Controller that handles sent data.
type SendWatcher interface {
	// OnSend is called after new data or a retransmission was sent, before the next event. Changes
	// take effect with the next segment.
	OnSend(s Sent)
}

// Timed is a Controller with a timer.
type Timed interface {
	// Deadline returns when OnTimer is due, or clock.Never. It changes only in calls of the
	// controller's other methods.
	Deadline() clock.Time
	// OnTimer is called at the deadline, or as soon afterwards as the host runs. Deadline must then
	// return a later time or clock.Never.
	OnTimer(t Timer)
}

// Make creates an algorithm's controller for one connection.
type Make func(Config) Controller

// Config is the initial state of every controller.
type Config struct {
	// Now is the time of creation.
	Now clock.Time
	// MSS is the largest payload of a segment, in bytes.
	MSS int
	// InitialWindow is the initial window in bytes (RFC 6928: ten segments).
	InitialWindow int
	// MaxWindow limits the window in bytes. More than the send buffer can never be in flight, and
	// an unlimited window would overflow. Zero: no limit.
	MaxWindow int
	// FixedWindow is the window of "fixed" in bytes. Zero: InitialWindow.
	FixedWindow int
	// Cwnd and Ssthresh are the initial state of a controller that replaces another, in bytes. Cwnd
	// is also set after lost SYNs. Zero means InitialWindow for Cwnd, and MaxWindow for Ssthresh.
	Cwnd, Ssthresh int
	// SRTT and MinRTT are the connection's measurements so far, zero without a sample.
	SRTT, MinRTT time.Duration
	// SACK says that recovery can detect several losses in a round trip.
	SACK bool
	// Paced says that the connection spreads the window over the round trip. If it does not, Burst
	// is the number of segments that it sends at once; zero: 1.
	Paced bool
	Burst int
	// Seed is for the algorithm's random choices.
	Seed uint64
}

// FirstCwnd returns the initial window in bytes.
func (c *Config) FirstCwnd() int {
	if c.Cwnd != 0 {
		return min(c.Cwnd, c.MaxWindow)
	}
	return min(c.InitialWindow, c.MaxWindow)
}

// FirstSsthresh returns the initial slow start threshold in bytes.
func (c *Config) FirstSsthresh() int {
	if c.Ssthresh != 0 {
		return c.Ssthresh
	}
	return c.MaxWindow // RFC 5681 §3.1: arbitrarily high
}

// ErrUnknown means that no algorithm has the name.
var ErrUnknown = errors.New("unknown congestion control")

var algorithms = map[string]Make{
	"bbr":     newBBR,
	"bbr3":    newBBR3,
	"cubic":   newCubic,
	"fixed":   newFixed,
	"newreno": newNewReno,
	"none":    newNone,
	"reno":    newReno,
	"tahoe":   newTahoe,
}

// Find returns the Make of the algorithm with that name. It searches own, which may be nil, and
// then this package.
func Find(own map[string]Make, name string) (Make, error) {
	if create := own[name]; create != nil {
		return create, nil
	}
	if create := algorithms[name]; create != nil {
		return create, nil
	}
	have := strings.Join(append(Names(), slices.Sorted(maps.Keys(own))...), ", ")
	if strings.HasSuffix(name, ".star") {
		have += "; scripts run in `node lab run` and in the playground (docs/PLAYGROUND.md)"
	}
	return nil, fmt.Errorf("%w %q: must be one of %s", ErrUnknown, name, have)
}

// New returns a controller by name.
func New(name string, cfg Config) (Controller, error) {
	create, err := Find(nil, name)
	if err != nil {
		return nil, err
	}
	cfg.MaxWindow = cmp.Or(cfg.MaxWindow, 1<<40)
	return create(cfg), nil
}

// Names lists the algorithms.
func Names() []string { return slices.Sorted(maps.Keys(algorithms)) }
