// Package congestion decides how many bytes a connection may have in flight: one algorithm a file,
// behind one interface. A controller owns the congestion window alone, sees what was acknowledged
// and what was lost, and never sees the connection.
package congestion

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Ack is what one acknowledgment delivered.
type Ack struct {
	Now clock.Time
	// Delivered counts the bytes that are newly known to have arrived, by the cumulative
	// acknowledgment or by SACK, each byte once. In Tahoe's slow start, and without SACK in that
	// after a time-out, it leaves out what was sent before, but for a segment if snd.una moved.
	Delivered int
	// Prior and InFlight are the bytes in flight before and after it.
	Prior, InFlight int
	// MSS is the largest payload of a segment now.
	MSS int
	// Lost counts the bytes that became thought lost since the previous acknowledgment.
	Lost int
	// RTT is this acknowledgment's sample, zero when it has none; MinRTT and SRTT are the
	// connection's.
	RTT, MinRTT, SRTT time.Duration
	// TotalDelivered is the connection's count of delivered bytes, Rate the delivery rate in
	// bytes a second that this acknowledgment shows (zero: no sample), and AppLimited says
	// that the sender, not the path, bounded it.
	TotalDelivered uint64
	Rate           int64
	AppLimited     bool
	// The newest segment that it delivered remembers how things stood when it was sent:
	// PriorDelivered is TotalDelivered then, TxInFlight the bytes in flight with itself, and
	// LostSince what became thought lost between then and now.
	PriorDelivered        uint64
	TxInFlight, LostSince int
	// Round is true on the first acknowledgment of each round trip.
	Round bool
	// CwndLimited says that the window, not the application or the receiver, held the sender
	// back in this round or the last; a window that is not used must not grow (RFC 7661 §4.4).
	CwndLimited bool
	// Recovering says that fast recovery is in progress: PRR paces it, growth waits.
	Recovering bool
	// Echo says that it carries the ECN-Echo flag (RFC 3168 §6.1.3). Marked counts the Delivered
	// bytes that arrived marked, as a DCTCP receiver reports them (RFC 8257 §3.2); UnknownMarks
	// from any other receiver, which repeats the flag until it sees CWR.
	Echo   bool
	Marked int
	// Transit is the receiver's timestamp less the one that it echoes (RFC 7323 §3), modulo 2³²,
	// in ticks of a millisecond: the one-way delay of the oldest segment that it acknowledges, how
	// long its acknowledgment was delayed, and the unknown difference of the two hosts' clocks.
	// Without Stamped it has no timestamps.
	Transit uint32
	Stamped bool
	// SentAt is when the newest segment that it delivered was last sent; clock.Never: unknown.
	SentAt clock.Time
}

// UnknownMarks is Ack.Marked if the receiver does not report how many bytes arrived marked.
const UnknownMarks = -1

// Kind says how a loss was noticed.
type Kind uint8

// The kinds of Loss. All but Echo open an episode, which OnExit closes; a time-out may follow
// Detected within one episode.
const (
	// Detected is a loss found by duplicate or selective acknowledgments.
	Detected Kind = iota
	// Timeout is a retransmission time-out, the first for its data.
	Timeout
	// TimeoutAgain is a further time-out of the same data: RFC 5681 §3.1 holds ssthresh.
	TimeoutAgain
	// Echo is an explicit congestion notification, once a window of data (RFC 3168 §6.1.2).
	// Nothing was lost, so no episode follows and nothing can be spurious.
	Echo
)

// Loss opens a loss episode: once a window, not once a segment.
type Loss struct {
	Now  clock.Time
	Kind Kind
	// FlightSize is what was sent and not cumulatively acknowledged (RFC 5681 §2); InFlight
	// is the part of it that is still thought to be in the network.
	FlightSize, InFlight int
	MSS                  int
}

// Exit closes a loss episode.
type Exit struct {
	Now clock.Time
	// InFlight is what is in flight as it ends.
	InFlight, MSS int
	// Spurious says that nothing had been lost after all, so the reduction may be undone. It
	// may also come after the episode was closed, and then undoes the last one.
	Spurious bool
	// Ceiling bounds the window from now on, unless it is zero: the sender had not used what it
	// was allowed when the loss came, so nothing shows that the path takes more (RFC 7661 §4.4.1).
	Ceiling int
}

// Restart tells that new data is about to leave while nothing is in flight, or that
// the window is worth less than it says.
type Restart struct {
	Now clock.Time
	// Idle is how long ago data was last sent, RTO the retransmission time-out.
	Idle, RTO time.Duration
	// Unvalidated says that data is in flight, but for five minutes not half of the window was
	// used (RFC 7661 §4.4.3).
	Unvalidated bool
	MSS         int
}

// LostSegment is one segment that has just become thought lost.
type LostSegment struct {
	Now clock.Time
	// Seq is where it begins, Size its length in bytes.
	Seq  uint64
	Size int
	// TxInFlight is what was in flight when it was last sent, itself included; LostSince what
	// became thought lost since then, itself included; AppLimited that the application limited
	// the sender then.
	TxInFlight, LostSince int
	AppLimited            bool
	// TotalDelivered is the connection's count of delivered bytes now.
	TotalDelivered uint64
	// SentAt is when it was last sent.
	SentAt clock.Time
}

// Sent is data that leaves the sender: a segment, or several of neighbouring data that leave as
// one train.
type Sent struct {
	Now clock.Time
	// Seq is where the data begins, Size its length in bytes, Segments how many carry it.
	Seq            uint64
	Size, Segments int
	MSS            int
	// InFlight are the bytes in flight, these included.
	InFlight int
	// Again says that the data was sent before.
	Again bool
}

// Timer is what a Timed controller is told when its timer expires.
type Timer struct {
	Now clock.Time
	// InFlight are the bytes in flight, MSS is the largest payload of a segment.
	InFlight, MSS int
	// TotalDelivered and TotalLost are the connection's counts of bytes that were delivered and of
	// bytes that became thought lost.
	TotalDelivered, TotalLost uint64
	// MinRTT and SRTT are the connection's, zero without a sample.
	MinRTT, SRTT time.Duration
}

// Controller is a congestion control algorithm for one connection. The structs
// it is given are lent for the call.
type Controller interface {
	// OnAck grows the window.
	OnAck(a *Ack)
	// OnLoss reduces it.
	OnLoss(l *Loss)
	// OnExit ends the episode that OnLoss began.
	OnExit(e *Exit)
	// Cwnd returns the congestion window in bytes.
	Cwnd() int
	// Ssthresh returns the slow start threshold in bytes; zero means that the algorithm has
	// none and recovery must not reduce towards one (so PRR stays out of it). A window that is
	// below it after OnLoss(Detected) means that the algorithm starts over in slow start, as
	// after a time-out.
	Ssthresh() int
	// PacingRate returns bytes a second, zero for an algorithm that does not pace.
	PacingRate() int64
}

// Restarter is a Controller that cares about idle times.
type Restarter interface {
	// OnRestart comes before the first data that is sent after nothing was in flight.
	OnRestart(r *Restart)
}

// LossWatcher is a Controller that judges segment by segment.
type LossWatcher interface {
	// OnSegmentLost comes for each segment that becomes thought lost, before OnLoss and OnAck
	// of the same event.
	OnSegmentLost(l *LostSegment)
}

// SendWatcher is a Controller that is told what leaves.
type SendWatcher interface {
	// OnSend comes after data was sent, new data and retransmissions alike, and before the next
	// event. Nothing waits for what it changes: it counts from the next segment on.
	OnSend(s Sent)
}

// Timed is a Controller with a timer.
type Timed interface {
	// Deadline returns when OnTimer is due, clock.Never while the timer is off. It changes only
	// in a call of the controller's other methods.
	Deadline() clock.Time
	// OnTimer comes at the deadline, or as soon after it as the host runs. Deadline must return
	// a later instant after it, or clock.Never.
	OnTimer(t Timer)
}

// Make makes an algorithm's controller for one connection.
type Make func(Config) Controller

// Config is what every controller starts from.
type Config struct {
	// Now is when it is made.
	Now clock.Time
	// MSS is the largest payload of a segment, in bytes.
	MSS int
	// InitialWindow is the first window in bytes (RFC 6928: ten segments).
	InitialWindow int
	// MaxWindow bounds the window; no more than the send buffer can ever be in flight, and a
	// window above it would only overflow one day. Zero: no bound.
	MaxWindow int
	// FixedWindow is the window of "fixed", in bytes; zero means InitialWindow.
	FixedWindow int
	// Cwnd and Ssthresh are where a controller goes on that replaces another, in bytes; zero:
	// from InitialWindow, and arbitrarily high (RFC 5681 §3.1).
	Cwnd, Ssthresh int
	// SRTT and MinRTT are what the connection has measured so far, zero without a sample.
	SRTT, MinRTT time.Duration
	// SACK says that more than one loss a round trip can be told.
	SACK bool
	// Paced says that the connection spreads what the window admits over the round trip, and
	// Burst how many segments it sends at once otherwise; zero: 1.
	Paced bool
	Burst int
	// Seed is for what an algorithm chooses at random.
	Seed uint64
}

// FirstCwnd returns where a window starts, in bytes.
func (c *Config) FirstCwnd() int {
	if c.Cwnd != 0 {
		return min(c.Cwnd, c.MaxWindow)
	}
	return min(c.InitialWindow, c.MaxWindow)
}

// FirstSsthresh returns where its threshold starts, in bytes.
func (c *Config) FirstSsthresh() int {
	if c.Ssthresh != 0 {
		return c.Ssthresh
	}
	return c.MaxWindow // RFC 5681 §3.1: arbitrarily high
}

// ErrUnknown is returned for a name that is no algorithm.
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

// Find returns what makes the controllers of the algorithm that is called name: one of the
// caller's own, which may be nil, or else of this package's.
func Find(own map[string]Make, name string) (Make, error) {
	if create := own[name]; create != nil {
		return create, nil
	}
	if create := algorithms[name]; create != nil {
		return create, nil
	}
	have := strings.Join(append(Names(), slices.Sorted(maps.Keys(own))...), ", ")
	return nil, fmt.Errorf("%w %q: want one of %s", ErrUnknown, name, have)
}

// New returns a controller by name.
func New(name string, cfg Config) (Controller, error) {
	create, err := Find(nil, name)
	if err != nil {
		return nil, err
	}
	if cfg.MaxWindow == 0 {
		cfg.MaxWindow = 1 << 40
	}
	return create(cfg), nil
}

// Names lists the algorithms.
func Names() []string {
	var names []string
	for n := range algorithms {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}
