package netem

import (
	"fmt"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Policer is a token bucket that lets packets pass as they come, as long as there are tokens
// for their bytes: no more than a burst at once and a rate in the long run. Unlike a queue
// it delays nothing.
type Policer struct {
	Rate BitsPerSecond
	// Burst is the size of the bucket, in bytes. It is full at the start. A packet that is
	// larger never passes.
	Burst int
	// Mark has what is in excess marked with Congestion Experienced instead of dropped, if
	// its sender understands the mark (RFC 3168 §5).
	Mark bool
}

// maxBurst keeps a bucket's contents within 63 bits.
const maxBurst = 1 << 30

// Validate reports what is wrong with the description.
func (p Policer) Validate() error {
	if p.Burst <= 0 || p.Burst > maxBurst {
		return fmt.Errorf("%w: policer with a burst of %d bytes: must be 1 to %d",
			ErrConfig, p.Burst, maxBurst)
	}
	return p.Rate.Validate()
}

func (p Policer) start() *police {
	return &police{Policer: p, tokens: int64(p.Burst) * bitNanoseconds}
}

// police is a policer at work. Its tokens are bits in units of a nanosecond's at a bit a
// second, so that nothing is rounded.
type police struct {
	Policer
	tokens int64
	at     clock.Time // of tokens
	excess bool       // the last packet was
}

// passes decides on a packet.
func (p *police) passes(now clock.Time, size int) bool {
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
