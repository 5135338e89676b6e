package netem

import (
	"fmt"
	"math/rand/v2"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Correlation is the probability, from 0 to 1, that a decision repeats the decision about the
// previous packet. Otherwise it is drawn independently. So successive decisions have exactly this
// correlation, and the shares do not change. (The kernel's netem mixes the two random numbers
// instead, which shifts the results toward the middle. With `loss 0.3% 25%` it loses no packet at
// all.)
type Correlation struct{ Duplicate, Corrupt, Reorder, Jitter float64 }

func (c *Correlation) validate() error {
	return validShares(
		share{"correlation of duplicates", c.Duplicate},
		share{"correlation of corruption", c.Corrupt},
		share{"correlation of reordering", c.Reorder},
		share{"correlation of jitter", c.Jitter},
	)
}

// bernoulli draws decisions about successive packets.
type bernoulli struct {
	random *rand.Rand
	share  float64
	same   float64 // probability of repeating the last decision
	begun  bool
	last   bool
}

// draw makes a decision. It uses the random source only if the share is above zero.
func (l *bernoulli) draw() bool { return l.share > 0 && l.decide() }

func (l *bernoulli) decide() bool {
	if l.same > 0 && l.begun && l.random.Float64() < l.same {
		return l.last
	}
	l.begun = true
	l.last = l.random.Float64() < l.share
	return l.last
}

// CorrelatedLoss is like UniformLoss, but its decisions are correlated: see Correlation.
type CorrelatedLoss struct{ Share, Correlation float64 }

// Validate returns an error if the description is invalid.
func (c CorrelatedLoss) Validate() error {
	if err := validShares(share{"loss", c.Share}); err != nil {
		return err
	}
	if !(c.Correlation >= 0 && c.Correlation < 1) {
		return fmt.Errorf("%w: loss correlation %v must be less than 1", ErrConfig, c.Correlation)
	}
	return nil
}

// Start implements Loss.
func (c CorrelatedLoss) Start(_ clock.Time, random *rand.Rand) LossFunc {
	l := bernoulli{random: random, share: c.Share, same: c.Correlation}
	return func(clock.Time, int) bool { return l.draw() }
}
