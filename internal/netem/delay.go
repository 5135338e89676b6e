package netem

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Jitter describes how the delay of packets varies.
type Jitter interface {
	// Draw returns how much longer a packet takes that leaves so long after the link's
	// origin; shorter if negative.
	Draw(since time.Duration, random *rand.Rand) time.Duration
}

// UniformJitter is anything between so much less and so much more, all equally
// likely.
type UniformJitter time.Duration

// Validate reports what is wrong with the description.
func (u UniformJitter) Validate() error { return validJitter(time.Duration(u)) }

// Draw implements Jitter.
func (u UniformJitter) Draw(_ time.Duration, random *rand.Rand) time.Duration {
	return time.Duration(random.Int64N(2*int64(u)+1) - int64(u))
}

// NormalJitter is normally distributed with this standard deviation.
type NormalJitter time.Duration

// Validate reports what is wrong with the description.
func (n NormalJitter) Validate() error { return validJitter(time.Duration(n)) }

// Draw implements Jitter. It adds up twelve uniform variables, whose variance is
// 1/12 each: normal to within what an experiment shows, six deviations wide, and
// in whole numbers, which are the same on every machine.
func (n NormalJitter) Draw(_ time.Duration, random *rand.Rand) time.Duration {
	const halves, half = 12, 1 << 31
	sum := int64(-halves * half)
	for range halves / 2 {
		two := random.Uint64()
		sum += int64(two>>32) + int64(two&(1<<32-1))
	}
	// The sum is of 35 bits: it is shortened so that the product fits for any deviation below
	// two days.
	const kept = 16
	return time.Duration((sum >> kept) * int64(n) >> (32 - kept))
}

// maxJitter keeps the arithmetic within its words.
const maxJitter = time.Hour

func validJitter(d time.Duration) error {
	if d < 0 || d > maxJitter {
		return fmt.Errorf("%w: jitter %v: must be 0 to %v", ErrConfig, d, maxJitter)
	}
	return nil
}

// Reorder takes packets out of their turn.
type Reorder struct {
	// Share is how many of the packets.
	Share float64
	// Late is up to how much later than their turn they arrive, all delays being
	// equally likely. Zero: they arrive without the wire's delay instead, before
	// all that is under way.
	Late time.Duration
	// Gap is how many packets apart at least those are that are taken out of their
	// turn: the share is of every Gap-th then. 0 and 1: of all.
	Gap int
}
