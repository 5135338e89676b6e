package netem

import (
	"fmt"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Policer is a token bucket. It passes packets without delay while it has tokens for their bytes.
// So at most Burst bytes pass at once, and Rate is the highest long-term rate.
type Policer struct {
	Rate BitsPerSecond
	// Burst is the size of the bucket in bytes. The bucket is full at the start. A larger packet
	// never passes.
	Burst int
	// Mark sets Congestion Experienced on excess packets instead of dropping them, if their
	// transport is ECN-capable (RFC 3168 §5).
	Mark bool
}

// maxBurst keeps a bucket's content below 2^63.
const maxBurst = 1 << 30

// Validate returns an error if the description is invalid.
func (p Policer) Validate() error {
	if p.Burst <= 0 || p.Burst > maxBurst {
		return fmt.Errorf("%w: policer with a burst of %d bytes: must be 1 to %d",
			ErrConfig, p.Burst, maxBurst)
	}
	return p.Rate.Validate()
}

func (p Policer) start() *tokenBucket {
	return &tokenBucket{Policer: p, tokens: int64(p.Burst) * bitNanoseconds}
}

// tokenBucket is a running policer. Tokens are billionths of a bit, so that nothing is rounded.
type tokenBucket struct {
	Policer
	tokens int64
	at     clock.Time // time for which tokens is valid
	excess bool       // the last packet exceeded the rate
}

func (p *tokenBucket) passes(now clock.Time, size int) bool {
	most, took := int64(p.Burst)*bitNanoseconds, int64(now.Sub(p.at))
	p.at = now
	if took > (most-p.tokens)/int64(p.Rate) {
		p.tokens = most
	} else {
		p.tokens += took * int64(p.Rate)
	}
	cost := int64(size) * bitNanoseconds
	if p.excess = cost > p.tokens; p.excess {
		return false
	}
	p.tokens -= cost
	return true
}
