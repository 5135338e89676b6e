package netem

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Loss describes which packets are lost on the wire.
type Loss interface {
	// Start creates a model in its initial state, with its own random source. The model's times
	// count from origin.
	Start(origin clock.Time, random *rand.Rand) LossFunc
}

// LossFunc is a running loss model: it decides whether the next packet, of size bytes, is lost.
type LossFunc func(now clock.Time, size int) bool

// UniformLoss loses each packet with this probability, independently of the others.
type UniformLoss float64

// Validate returns an error if the description is invalid.
func (u UniformLoss) Validate() error { return validShares(share{"loss", float64(u)}) }

// Start implements Loss.
func (u UniformLoss) Start(_ clock.Time, random *rand.Rand) LossFunc {
	return func(clock.Time, int) bool { return random.Float64() < float64(u) }
}

// PeriodicLoss loses one of each Every packets, as in the response functions of RFC 9438 §5.
type PeriodicLoss struct {
	Every uint64 // interval of losses, at least 1
	// First is the number of the first lost packet, counted from 1; 0: Every.
	First uint64
}

// Validate returns an error if the description is invalid.
func (p PeriodicLoss) Validate() error {
	if p.Every < 1 {
		return fmt.Errorf("%w: loss every %d packets: must be 1 or more", ErrConfig, p.Every)
	}
	return nil
}

// Start implements Loss.
func (p PeriodicLoss) Start(clock.Time, *rand.Rand) LossFunc {
	left := cmp.Or(p.First, p.Every)
	return func(clock.Time, int) bool {
		if left--; left > 0 {
			return false
		}
		left = p.Every
		return true
	}
}

// ListedLoss loses the packets with these numbers; the first packet is number 1.
type ListedLoss []uint64

// Validate returns an error if the description is invalid.
func (l ListedLoss) Validate() error {
	if slices.Contains(l, 0) {
		return fmt.Errorf("%w: loss of packet 0: packet numbers start at 1", ErrConfig)
	}
	return nil
}

// Start implements Loss.
func (l ListedLoss) Start(clock.Time, *rand.Rand) LossFunc {
	left, at := slices.Compact(slices.Sorted(slices.Values(l))), uint64(0)
	return func(clock.Time, int) bool {
		at++
		if len(left) == 0 || left[0] != at {
			return false
		}
		left = left[1:]
		return true
	}
}

// ByteLoss loses the packets that contain these bytes. The bytes of all packets that reach the
// model are numbered consecutively from 0.
type ByteLoss []uint64

// Start implements Loss.
func (l ByteLoss) Start(clock.Time, *rand.Rand) LossFunc {
	left, at := slices.Sorted(slices.Values(l)), uint64(0)
	return func(_ clock.Time, size int) bool {
		at += uint64(size)
		lost := false
		for len(left) > 0 && left[0] < at {
			lost, left = true, left[1:]
		}
		return lost
	}
}

// GilbertElliott loses packets in bursts. A Markov chain moves between a good and a bad state, one
// step for each packet, and each state has its own loss rate. In the long run the chain is in the
// bad state for p/(p+r) of the packets, and for 1/r packets at a time on average.
type GilbertElliott struct {
	P    float64 // probability of a transition from good to bad
	R    float64 // probability of a transition from bad to good
	Good float64 // loss rate in the good state: 1-k in Gilbert and Elliott's notation
	Bad  float64 // loss rate in the bad state: 1-h in Gilbert and Elliott's notation
}

// Bursts returns a Gilbert-Elliott model with the given mean loss rate. It loses all packets of a
// burst; bursts have the given mean length.
func Bursts(share, length float64) GilbertElliott {
	r := 1 / length
	return GilbertElliott{P: r * share / (1 - share), R: r, Bad: 1}
}

// Validate returns an error if the description is invalid.
func (g GilbertElliott) Validate() error {
	if err := validShares(
		share{"chance good to bad", g.P},
		share{"chance bad to good", g.R},
		share{"loss in the good state", g.Good},
		share{"loss in the bad state", g.Bad},
	); err != nil {
		return err
	}
	if g.P+g.R == 0 {
		return fmt.Errorf("%w: the Gilbert-Elliott model "+
			"never changes state: P and R must not both be 0", ErrConfig)
	}
	return nil
}

// Mean returns the share of packets that the model loses in the long run.
func (g GilbertElliott) Mean() float64 {
	return (float64(g.P*g.Bad) + float64(g.R*g.Good)) / (g.P + g.R)
}

// Start implements Loss. It draws the initial state from the stationary distribution, so that a
// short run has the same mean.
func (g GilbertElliott) Start(_ clock.Time, random *rand.Rand) LossFunc {
	bad := random.Float64() < g.P/(g.P+g.R)
	return func(clock.Time, int) bool {
		loss, change := g.Good, g.P
		if bad {
			loss, change = g.Bad, g.R
		}
		// Both are drawn for every packet, so the number of draws does not depend on the shares.
		lost := random.Float64() < loss
		if random.Float64() < change {
			bad = !bad
		}
		return lost
	}
}
