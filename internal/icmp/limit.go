package icmp

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Limit bounds how many error messages a node sends (RFC 1812 §4.3.2.8).
type Limit struct {
	// Rate is messages a second in the long run; 0: 1000. Negative: no limit.
	Rate int
	// Burst is how many may leave at once; 0: 50.
	Burst int
}

// The defaults are those that Linux had for all messages of a host together.
const (
	defaultRate  = 1000
	defaultBurst = 50
)

// WithDefaults returns the limit with its zeros filled in.
func (l Limit) WithDefaults() Limit {
	if l.Rate == 0 {
		l.Rate = defaultRate
	}
	if l.Burst == 0 {
		l.Burst = defaultBurst
	}
	return l
}

// Bucket is a token bucket. The zero Bucket is full and has the default limit.
type Bucket struct {
	limit Limit
	// empty is when the bucket was, or would have been, without a token: what it holds
	// is what has run in since. It is kept within a burst of now.
	empty clock.Time
	used  bool
}

// SetLimit changes what runs into the bucket, and how much it holds, from now on.
func (b *Bucket) SetLimit(l Limit) { b.limit = l }

// Take takes a token; false: there is none, and the message is not sent.
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
