package tcp

import (
	"cmp"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Keepalive asks a silent peer whether it is still there (RFC 9293 §3.8.4).
type Keepalive struct {
	// Idle is how long nothing has to arrive before the first question; zero: never.
	Idle time.Duration
	// Interval is the time between questions; zero: a tenth of Idle.
	Interval time.Duration
	// Count is how many go unanswered before the connection is given up; zero: 9.
	Count int
}

func (k Keepalive) withDefaults() Keepalive {
	k.Interval = cmp.Or(k.Interval, k.Idle/10)
	k.Count = cmp.Or(k.Count, 9)
	return k
}

// keepalive is a connection's side of it.
type keepalive struct {
	Keepalive
	at    clock.Time // when to look at the peer's silence
	since clock.Time // it is on
	asked int        // questions since something arrived
	due   bool       // one is to be sent
	last  clock.Time // when the last was asked
}

// asks reports whether a question is to be sent.
func (k *keepalive) asks() bool { return k != nil && k.due }

// expired is called when the timer expires. The last segment of the peer arrived at heard. It sets
// the timer again, or returns the error with which the connection ends. While data is in flight,
// its retransmissions do the keepalive's work. A user timeout (limit) ends the connection after a
// time, not after a number of probes, but at least one probe must be unanswered.
func (k *keepalive) expired(
	now, heard clock.Time, inFlight bool, limit time.Duration,
) error {
	if inFlight {
		k.asked, k.at = 0, now.Later(k.Idle)
		return nil
	}
	heard = max(heard, k.since)
	if next := heard.Add(k.Idle); next > now {
		k.asked, k.at = 0, next
		return nil
	}
	if heard >= k.last {
		k.asked = 0 // the answer came in no time, or just after the last look
	}
	switch {
	case limit > 0 && k.asked > 0 && now.Sub(heard) >= limit:
		return ErrUserTimeout
	case limit == 0 && k.asked >= k.Count:
		return ErrTimeout
	}
	k.asked++
	k.due, k.last, k.at = true, now, now.Later(k.Interval)
	return nil
}
