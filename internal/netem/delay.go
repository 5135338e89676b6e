package netem

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Jitter describes how the delay of packets varies.
type Jitter interface {
	// Draw returns the jitter of a packet; it may be negative. The packet leaves at the given time
	// since the link's origin.
	Draw(since time.Duration, random *rand.Rand) time.Duration
}

// RandomJitter draws the jitter of each packet.
type RandomJitter struct {
	Size time.Duration
	// Shape is the distribution: empty for a uniform one between minus and plus Size, "normal" with
	// the standard deviation Size, "pareto" or "paretonormal" of tc-netem(8), or the name of Table.
	Shape string
	// Table is in the form of tc's files: all entries are equally likely, and 8192 stands for Size.
	// New does not copy it.
	Table []int16
}

// UniformJitter is uniformly distributed between minus and plus its size.
func UniformJitter(size time.Duration) RandomJitter { return RandomJitter{Size: size} }

// NormalJitter is normally distributed with this standard deviation.
func NormalJitter(size time.Duration) RandomJitter {
	return RandomJitter{Size: size, Shape: shapeNormal}
}

// Validate returns an error if the description is invalid.
func (j RandomJitter) Validate() error {
	known := j.Shape == "" || slices.Contains(shapes, j.Shape)
	switch {
	case len(j.Table) == 0 && !known || len(j.Table) > maxTable:
		return fmt.Errorf("%w: table with %d entries: must be 1 to %d",
			ErrConfig, len(j.Table), maxTable)
	case j.Size < 0 || j.Size > maxJitter:
		return fmt.Errorf("%w: jitter %v: must be 0 to %v", ErrConfig, j.Size, maxJitter)
	}
	return nil
}

// Draw implements Jitter.
func (j RandomJitter) Draw(_ time.Duration, random *rand.Rand) time.Duration {
	switch {
	case len(j.Table) > 0:
		return scaledJitter(j.Size, int64(j.Table[random.IntN(len(j.Table))]))
	case j.Shape == shapeNormal:
		return normal(j.Size, random)
	case j.Shape == shapePareto:
		return scaledJitter(j.Size, pareto(1+int64(random.Uint32N(quantiles))))
	case j.Shape == shapeParetoNormal:
		return scaledJitter(j.Size, paretoNormal(int64(random.Uint32N(quantiles))))
	}
	return time.Duration(random.Int64N(2*int64(j.Size)+1) - int64(j.Size))
}

// normal adds up twelve uniform variables with a variance of 1/12 each. The sum is close to a
// normal variable, and never more than six deviations from the mean. It is computed with integers,
// so it is the same on every machine.
func normal(deviation time.Duration, random *rand.Rand) time.Duration {
	const halves, half = 12, 1 << 31
	sum := int64(-halves * half)
	for range halves / 2 {
		draw := random.Uint64()
		sum += int64(draw>>32) + int64(draw&(1<<32-1))
	}
	// The sum has 35 bits. It is shortened so that the product fits for every deviation up to
	// maxJitter.
	const kept = 16
	return time.Duration((sum >> kept) * int64(deviation) >> (32 - kept))
}

// maxJitter prevents overflow.
const maxJitter = time.Hour

// Reorder changes the order of packets.
type Reorder struct {
	// Share is the share of packets that are reordered.
	Share float64
	// Late is the maximum additional delay of reordered packets, uniformly distributed. Zero means
	// that they skip the wire's delay instead, and so arrive before all packets in transit.
	Late time.Duration
	// Gap is the minimum distance between two reordered packets: the Gap-1 packets after one are
	// not reordered. Share applies to the others. 0 and 1 mean no minimum.
	Gap int
}
