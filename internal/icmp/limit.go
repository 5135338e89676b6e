package icmp

import (
	"cmp"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Limit limits the rate of a node's error messages (RFC 1812 §4.3.2.8).
type Limit struct {
	// Rate is the average number of messages per second; 0: 1000. Negative: no limit.
	Rate int
	// Burst is the maximum number sent at once; 0: 50.
	Burst int
}

// The defaults are Linux's former limit for all messages of a host.
const (
	defaultRate  = 1000
	defaultBurst = 50
)

// WithDefaults returns the limit with defaults for zeros.
func (l Limit) WithDefaults() Limit {
	l.Rate = cmp.Or(l.Rate, defaultRate)
	l.Burst = cmp.Or(l.Burst, defaultBurst)
	return l
}

// Bucket is a token bucket. The zero Bucket is full and has the default limit.
type Bucket struct {
	limit Limit
	// empty is the time at which the bucket was, or would have been, empty. Tokens have accumulated
	// since then. It is at most the time of a burst before now.
	empty clock.Time
	used  bool
}

// SetLimit changes the limit.
func (b *Bucket) SetLimit(l Limit) { b.limit = l }

// Take takes a token. It returns false if no token is left, so the message must not be sent.
func (b *Bucket) Take(now clock.Time) bool {
	l := b.limit.WithDefaults()
	if l.Rate < 0 {
		return true
	}
	token := time.Second / time.Duration(l.Rate)
	if oldest := now.Add(-token * time.Duration(l.Burst)); !b.used || b.empty < oldest {
		b.empty, b.used = oldest, true
	}
	if next := b.empty.Add(token); next <= now {
		b.empty = next
		return true
	}
	return false
}
