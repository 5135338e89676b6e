package tcp

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Limit is the reason why a connection does not send more now.
type Limit uint8

// The limits.
const (
	LimitNone      Limit = iota // no limit: the connection is sending
	LimitHandshake              // not established yet
	LimitApp                    // the application has written no more
	LimitIdle                   // like LimitApp, and no data is in flight
	LimitBuffer                 // the send buffer is full of data in flight
	LimitReceiver               // the peer's window
	LimitCwnd                   // the congestion window
	LimitRecovery               // loss recovery
	LimitNagle                  // a short segment waits for an acknowledgment
	LimitPacing                 // the pacing rate
	LimitCork                   // Cork holds back a short segment
	LimitPersist                // the sender probes the peer's zero window
	numLimits
)

var limitNames = [numLimits]string{
	"none", "handshake", "app", "idle", "sndbuf", "rwnd", "cwnd", "recovery", "nagle", "pacing",
	"cork", "persist",
}

// String returns the limit's short name.
func (l Limit) String() string { return nameOf(limitNames[:], l) }

// limited is the current limit and its start.
type limited struct {
	by    Limit
	since clock.Time
	spent // totals of the limits before this one
}

// spent is how long the connection was busy, and how much of that time it waited for the peer's
// window and for the send buffer. Linux calls these times chrono.
type spent struct{ busy, rwnd, sndbuf time.Duration }

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

func (l *limited) times(now clock.Time) (busy, rwnd, sndbuf time.Duration) {
	s := l.spent
	if l.since != clock.Never && now > l.since {
		s.add(l.by, now.Sub(l.since))
	}
	return s.busy, s.rwnd, s.sndbuf
}
