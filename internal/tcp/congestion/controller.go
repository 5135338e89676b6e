// Package congestion decides how many bytes a connection may have in flight:
// one algorithm a file, behind one interface. A controller owns the congestion
// window alone, sees what was acknowledged and what was lost, and never sees
// the connection.
package congestion

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Ack is what one acknowledgment delivered.
type Ack struct {
	Now clock.Time
	// Delivered counts the bytes that are newly known to have arrived, by the cumulative
	// acknowledgment or by SACK, each byte once.
	Delivered int
	// Prior and InFlight are the bytes in flight before and after it.
	Prior, InFlight int
	// MSS is the largest payload of a segment now.
	MSS int
	// RTT is this acknowledgment's sample, zero when it has none; MinRTT and SRTT are the
	// connection's.
	RTT, MinRTT, SRTT time.Duration
	// TotalDelivered is the connection's count of delivered bytes, Rate the delivery rate in
	// bytes a second that this acknowledgment shows (zero: no sample), and AppLimited says
	// that the sender, not the path, bounded it.
	TotalDelivered uint64
	Rate           int64
	AppLimited     bool
	// Round is true on the first acknowledgment of each round trip.
	Round bool
	// CwndLimited says that the window, not the application or the receiver, held the sender
	// back in this round or the last; a window that is not used must not grow (RFC 7661 §4.1).
	CwndLimited bool
	// Recovering says that fast recovery is in progress: PRR paces it, growth waits.
	Recovering bool
}

// Kind says how a loss was noticed.
type Kind uint8

// The kinds of Loss.
const (
	// Detected is a loss found by duplicate or selective acknowledgments.
	Detected Kind = iota
	// Timeout is a retransmission time-out, the first for its data.
	Timeout
	// TimeoutAgain is a further time-out of the same data: RFC 5681 §3.1 holds ssthresh.
	TimeoutAgain
	// Echo is an explicit congestion notification (RFC 3168).
	Echo
)

// Loss opens a loss episode: once a window, not once a segment.
type Loss struct {
	Now  clock.Time
	Kind Kind
	// FlightSize is what was sent and not cumulatively acknowledged (RFC 5681 §2).
	FlightSize int
	MSS        int
}

// Exit closes a loss episode.
type Exit struct {
	Now clock.Time
	// InFlight is what is in flight as it ends.
	InFlight, MSS int
	// Spurious says that nothing had been lost after all, so the reduction may be undone.
	Spurious bool
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
	// none and recovery must not reduce towards one (so PRR stays out of it).
	Ssthresh() int
	// PacingRate returns bytes a second, zero for an algorithm that does not pace.
	PacingRate() int64
}

// Config is what every controller starts from.
type Config struct {
	// MSS is the largest payload of a segment, in bytes.
	MSS int
	// InitialWindow is the first window in bytes (RFC 6928: ten segments).
	InitialWindow int
	// MaxWindow bounds the window; no more than the send buffer can ever be in flight, and a
	// window above it would only overflow one day. Zero: no bound.
	MaxWindow int
	// FixedWindow is the window of "fixed", in bytes; zero means InitialWindow.
	FixedWindow int
}

// ErrUnknown is returned for a name that is no algorithm.
var ErrUnknown = errors.New("unknown congestion control")

var algorithms = map[string]func(Config) Controller{
	"fixed": newFixed,
	"none":  newNone,
	"reno":  newReno,
}

// New returns a controller by name.
func New(name string, cfg Config) (Controller, error) {
	create, ok := algorithms[name]
	if !ok {
		return nil, fmt.Errorf("%w %q (have %v)", ErrUnknown, name, Names())
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
