package netem

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Config describes one direction of a link. The zero value does nothing to
// packets. Shares are of all packets, 0 to 1.
type Config struct {
	// Policer drops or marks what comes faster than is agreed, before the queue; nil: nobody
	// does.
	Policer *Policer
	// Rate is how fast bytes leave; nil: at once.
	Rate Rate
	// Overhead is how many bytes each packet costs on top of its own, for Rate.
	Overhead int
	// Queue is what packets wait in while the server is busy; nil: a drop-tail
	// queue bounded by MaxPackets and MaxBytes alone.
	Queue Discipline
	// Loss decides which packets die; nil: none.
	Loss Loss
	// Duplicate is the share of packets that arrive twice.
	Duplicate float64
	// Corrupt damages some packets.
	Corrupt Corrupt
	// Truncate is the share of packets that lose their end.
	Truncate float64
	// Delay is how long the wire is.
	Delay time.Duration
	// Jitter is how much more, or less, each packet takes; nil: nothing. No
	// packet takes less than no time.
	Jitter Jitter
	// Overtaking lets packets pass each other because of Jitter. Without it a
	// packet arrives no earlier than the one before it.
	Overtaking bool
	// Reorder takes some packets out of their turn.
	Reorder Reorder
	// Correlation makes the fates of successive packets alike.
	Correlation Correlation
	// MaxPackets and MaxBytes bound what is inside at a time, queued or under
	// way; what comes beyond is dropped and counted. Zero: 65536, 64 MiB.
	MaxPackets, MaxBytes int
	// Origin is the time from which a part that changes with time counts: a schedule, a trace,
	// windows of loss. Zero: the clock's origin, in a link that New makes, and the time of the
	// change after Change.
	Origin clock.Time
	// Seed is what whoever makes the link gives to Streams; 0: what it likes. New does
	// not look at it.
	Seed uint64
}

const (
	// maxDelay keeps what a link holds within what its bounds were meant for.
	maxDelay = time.Hour
	// What a zero bound means.
	defaultMaxPackets = 1 << 16
	defaultMaxBytes   = 64 << 20
)

// ErrConfig is what a Config that cannot be says.
var ErrConfig = errors.New("netem: bad configuration")

func (c Config) withDefaults() Config {
	if c.MaxPackets == 0 {
		c.MaxPackets = defaultMaxPackets
	}
	if c.MaxBytes == 0 {
		c.MaxBytes = defaultMaxBytes
	}
	return c
}

// validator is a description that can be wrong.
type validator interface{ Validate() error }

func (c *Config) validate() error {
	for _, s := range []struct {
		name  string
		share float64
	}{
		{"duplicate", c.Duplicate},
		{"corrupt", c.Corrupt.Share},
		{"truncate", c.Truncate},
		{"reorder", c.Reorder.Share},
	} {
		if err := validShare(s.name, s.share); err != nil {
			return err
		}
	}
	switch {
	case c.Delay < 0 || c.Delay > maxDelay || c.Reorder.Late < 0:
		return fmt.Errorf("%w: a time that is negative or above %v", ErrConfig, maxDelay)
	case c.Corrupt.Bits < 0 || c.Reorder.Gap < 0 || c.Overhead < 0 || c.MaxPackets < 0 ||
		c.MaxBytes < 0 || c.Origin < 0:
		return fmt.Errorf("%w: a negative number", ErrConfig)
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

// validShare also refuses what is not a number.
func validShare(name string, p float64) error {
	if !(p >= 0 && p <= 1) {
		return fmt.Errorf("%w: %s %v: must be 0 to 1", ErrConfig, name, p)
	}
	return nil
}

// Streams returns a source of random streams for New: one for each name, which
// depends on the seed and the name alone. So what one part draws does not shift
// what another sees, and two experiments that differ in one part see the same
// luck in all others.
func Streams(seed uint64) func(part string) *rand.Rand {
	return func(part string) *rand.Rand {
		const offset, prime = 14695981039346656037, 1099511628211 // FNV-1a
		h := uint64(offset)
		for i := range len(part) {
			h = (h ^ uint64(part[i])) * prime
		}
		return rand.New(rand.NewPCG(seed, h))
	}
}
