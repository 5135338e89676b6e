package tcp

import (
	"cmp"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Keepalive configures probes that check whether a silent peer is still alive (RFC 9293 §3.8.4).
type Keepalive struct {
	// Idle is the silence before the first probe; zero: no probes.
	Idle time.Duration
	// Interval is the time between probes; zero: a tenth of Idle.
	Interval time.Duration
	// Count is the number of unanswered probes after which the connection ends; zero: 9.
	Count int
}

func (k Keepalive) withDefaults() Keepalive {
	k.Interval = cmp.Or(k.Interval, k.Idle/10)
	k.Count = cmp.Or(k.Count, 9)
	return k
}

// keepalive is the state of a connection's probes.
type keepalive struct {
	Keepalive
	at     clock.Time // when to check whether the peer is silent
	since  clock.Time // when the probes were enabled
	probes int        // probes sent since the last segment arrived
	due    bool       // a probe must be sent
	last   clock.Time // when the last probe was sent
}

// probeDue reports whether a probe must be sent.
func (k *keepalive) probeDue() bool { return k != nil && k.due }

// expired is called when the timer expires; lastSeen is when the peer's last segment arrived.
// expired restarts the timer, or returns the error with which the connection ends. While data is in
// flight, retransmissions check the peer, and no probes are needed. With a user timeout (limit) the
// connection ends after that time, not after a number of probes, but at least one probe must be
// unanswered.
func (k *keepalive) expired(
	now, lastSeen clock.Time, inFlight bool, limit time.Duration,
) error {
	if inFlight {
		k.probes, k.at = 0, now.Later(k.Idle)
		return nil
	}
	lastSeen = max(lastSeen, k.since)
	if next := lastSeen.Add(k.Idle); next > now {
		k.probes, k.at = 0, next
		return nil
	}
	if lastSeen >= k.last {
		k.probes = 0 // the peer has answered the last probe
	}
	switch {
	case limit > 0 && k.probes > 0 && now.Sub(lastSeen) >= limit:
		return ErrUserTimeout
	case limit == 0 && k.probes >= k.Count:
		return ErrTimeout
	}
	k.probes++
	k.due, k.last, k.at = true, now, now.Later(k.Interval)
	return nil
}
