package netem

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Jitter describes how the delay of packets varies.
type Jitter interface {
	// Draw returns the jitter of a packet that leaves at a time since the link's origin; it may be
	// negative.
	Draw(since time.Duration, random *rand.Rand) time.Duration
}

// UniformJitter is uniformly distributed between minus and plus its value.
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

// Draw implements Jitter. It adds up twelve uniform variables with a variance of 1/12 each. The sum
// is normal within what an experiment can show, up to six deviations, and computed in integers,
// which are the same on every machine.
func (n NormalJitter) Draw(_ time.Duration, random *rand.Rand) time.Duration {
	const halves, half = 12, 1 << 31
	sum := int64(-halves * half)
	for range halves / 2 {
		two := random.Uint64()
		sum += int64(two>>32) + int64(two&(1<<32-1))
	}
	// The sum has 35 bits. It is shortened so that the product fits for every deviation below two
	// days.
	const kept = 16
	return time.Duration((sum >> kept) * int64(n) >> (32 - kept))
}

// maxJitter prevents overflow.
const maxJitter = time.Hour

func validJitter(d time.Duration) error {
	if d < 0 || d > maxJitter {
		return fmt.Errorf("%w: jitter %v: must be 0 to %v", ErrConfig, d, maxJitter)
	}
	return nil
}

// Reorder changes the order of packets.
type Reorder struct {
	// Share is the share of the packets that are reordered.
	Share float64
	// Late is the maximum additional delay of reordered packets, uniformly distributed. Zero: they
	// skip the wire's delay instead, and arrive before all packets in transit.
	Late time.Duration
	// Gap is the minimum distance between reordered packets: Share is then the share of every
	// Gap-th packet. 0 and 1: of all packets.
	Gap int
}
