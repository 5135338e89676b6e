package netem

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Config describes one direction of a link. The zero value forwards packets unchanged. Shares are
// fractions of all packets, from 0 to 1.
type Config struct {
	// Policer drops or marks packets above the agreed rate, before the queue; nil: no policer.
	Policer *Policer
	// Rate is how fast bytes leave; nil: immediately.
	Rate Rate
	// Overhead is the number of bytes that Rate adds to each packet.
	Overhead int
	// Queue holds packets while the server is busy; nil: a drop-tail queue with no limits except
	// MaxPackets and MaxBytes.
	Queue Discipline
	// Loss decides which packets are lost; nil: no loss.
	Loss Loss
	// Duplicate is the share of packets that arrive twice.
	Duplicate float64
	// Corrupt damages some packets.
	Corrupt Corrupt
	// Truncate is the share of packets that are truncated.
	Truncate float64
	// Delay is the propagation delay.
	Delay time.Duration
	// Jitter varies each packet's delay; nil: no jitter. The sum is never below zero.
	Jitter Jitter
	// Overtaking lets packets pass each other because of Jitter. Without it, no packet arrives
	// earlier than the one before it.
	Overtaking bool
	// Reorder changes the order of some packets.
	Reorder Reorder
	// Correlation correlates the random decisions about successive packets.
	Correlation Correlation
	// MaxPackets and MaxBytes limit the packets in the link, queued or in transit. Further packets
	// are dropped and counted. Zero: 65536, 64 MiB.
	MaxPackets, MaxBytes int
	// Origin is the start of a schedule, a trace, or windows of loss. Zero means the clock's origin
	// for a link from New, and the time of the change for Change.
	Origin clock.Time
	// Seed is the seed that the creator of the link passes to Streams; 0: the creator chooses. New
	// does not use it.
	Seed uint64
}

const (
	// maxDelay limits a link's delay, and so the number of packets in transit.
	maxDelay = time.Hour
	// These are the default limits.
	defaultMaxPackets = 1 << 16
	defaultMaxBytes   = 64 << 20
)

// ErrConfig is the error for an invalid Config.
var ErrConfig = errors.New("netem: bad configuration")

func (c Config) withDefaults() Config {
	c.MaxPackets = cmp.Or(c.MaxPackets, defaultMaxPackets)
	c.MaxBytes = cmp.Or(c.MaxBytes, defaultMaxBytes)
	return c
}

// validator is a part of a configuration that can be invalid.
type validator interface{ Validate() error }

func (c *Config) validate() error {
	if err := validShares(
		share{"duplicate", c.Duplicate},
		share{"corrupt", c.Corrupt.Share},
		share{"truncate", c.Truncate},
		share{"reorder", c.Reorder.Share},
	); err != nil {
		return err
	}
	switch {
	case c.Delay < 0 || c.Delay > maxDelay || c.Reorder.Late < 0:
		return fmt.Errorf("%w: Delay %v (must be 0 to %v), Reorder.Late %v (must be 0 or more)",
			ErrConfig, c.Delay, maxDelay, c.Reorder.Late)
	case c.Corrupt.Bits < 0 || c.Reorder.Gap < 0 || c.Overhead < 0 || c.MaxPackets < 0 ||
		c.MaxBytes < 0 || c.Origin < 0:
		return fmt.Errorf("%w: numbers of bits, packets and bytes must not be negative", ErrConfig)
	case c.Queue != nil && c.Rate == nil:
		return fmt.Errorf("%w: a queue needs a rate", ErrConfig)
	}
	if err := c.Correlation.validate(); err != nil {
		return err
	}
	if c.Policer != nil {
		if err := c.Policer.Validate(); err != nil {
			return err
		}
	}
	for _, part := range []any{c.Rate, c.Queue, c.Loss, c.Jitter} {
		if v, ok := part.(validator); ok {
			if err := v.Validate(); err != nil {
				return err
			}
		}
	}
	return nil
}

// share is a share of packets, or a probability, with its name in errors.
type share struct {
	name  string
	value float64
}

// validShares returns an error if a share is not between 0 and 1. It also rejects NaN.
func validShares(shares ...share) error {
	for _, s := range shares {
		if !(s.value >= 0 && s.value <= 1) {
			return fmt.Errorf("%w: %s %v: must be 0 to 1", ErrConfig, s.name, s.value)
		}
	}
	return nil
}

// Streams returns a source of random streams for New. A stream depends only on the seed and on its
// name, so the parts of a link draw independently. Two experiments that differ in one part have the
// same random decisions in all other parts.
func Streams(seed uint64) func(part string) *rand.Rand {
	return func(part string) *rand.Rand {
		const offset, prime = 14695981039346656037, 1099511628211 // constants of FNV-1a
		h := uint64(offset)
		for i := range len(part) {
			h = (h ^ uint64(part[i])) * prime
		}
		return rand.New(rand.NewPCG(seed, h))
	}
}
