package netem

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Slots is the rate `slot` of tc-netem(8), a crude model of links that have to acquire their
// medium, such as Wi-Fi, LTE and DOCSIS. A packet that arrives at an idle link waits for a slot. In
// the slot, all packets that have arrived by then leave at once, or as many as fit.
type Slots struct {
	// Min and Max limit the time to acquire a slot, which is uniformly distributed. If Max is below
	// Min, the time is always Min.
	Min, Max time.Duration
	// Jitter is added to Min, and Max is not used; nil: no jitter.
	Jitter Jitter
	// Packets and Bytes limit a slot: it ends with the packet that reaches one of them. Zero: no
	// limit.
	Packets, Bytes int
}

// Validate returns an error if the description is invalid.
func (s Slots) Validate() error {
	if s.Min < 0 || s.Min > maxDelay || s.Max < 0 || s.Max > maxDelay || s.Packets < 0 ||
		s.Bytes < 0 {
		return fmt.Errorf("%w: slots of %d packets, %d bytes after %v to %v: no value may "+
			"be negative, and times must be at most %v", ErrConfig, s.Packets, s.Bytes, s.Min,
			s.Max, maxDelay)
	}
	if v, ok := s.Jitter.(validator); ok {
		return v.Validate()
	}
	return nil
}

// MeanRate implements Rate. It returns the rate of full slots with packets of 1500 bytes.
func (s Slots) MeanRate() int64 {
	const full = 1500
	bytes := int64(math.MaxInt64)
	if s.Packets > 0 {
		bytes = full * int64(s.Packets)
	}
	if s.Bytes > 0 {
		bytes = min(bytes, int64(s.Bytes))
	}
	if bytes == math.MaxInt64 {
		return mostRate
	}
	mean := s.Min
	if s.Jitter == nil {
		mean += max(0, s.Max-s.Min) / 2
	}
	return min(mostRate, perSecond(8*bytes, mean))
}

// Start implements Rate.
func (s Slots) Start(origin clock.Time, random *rand.Rand) Server {
	return &slotted{Slots: s, origin: origin, random: random}
}

type slotted struct {
	Slots
	origin         clock.Time
	random         *rand.Rand
	packets, bytes int // packets and bytes that have left in this slot
}

func (s *slotted) Turn(now clock.Time, sending bool) clock.Time {
	if sending && (s.Packets == 0 || s.packets < s.Packets) && (s.Bytes == 0 || s.bytes < s.Bytes) {
		return now
	}
	s.packets, s.bytes = 0, 0
	wait := s.Min
	switch {
	case s.Jitter != nil:
		wait = max(0, wait+s.Jitter.Draw(now.Sub(s.origin), s.random))
	case s.Max > s.Min:
		wait += time.Duration(s.random.Int64N(int64(s.Max-s.Min) + 1))
	}
	return now.Add(wait)
}

func (s *slotted) Finish(begin clock.Time, size int) clock.Time {
	s.packets++
	s.bytes += size
	return begin
}

// Cells is a rate in whole cells, as in ATM: a packet uses as many cells as it needs, and each cell
// has an overhead.
type Cells struct {
	Rate           BitsPerSecond
	Size, Overhead int // size and overhead of one cell, in bytes
}

// Validate returns an error if the description is invalid.
func (c Cells) Validate() error {
	if c.Size <= 0 || c.Size > math.MaxUint16 || c.Overhead < 0 || c.Overhead > math.MaxUint16 {
		return fmt.Errorf("%w: cell size %d (must be 1 to %[4]d), overhead %[3]d "+
			"(must be 0 to %[4]d)", ErrConfig, c.Size, c.Overhead, math.MaxUint16)
	}
	return c.Rate.Validate()
}

// MeanRate implements Rate. It returns the rate of whole cells.
func (c Cells) MeanRate() int64 {
	return int64(float64(c.Rate) * (float64(c.Size) / float64(c.Size+c.Overhead)))
}

// Start implements Rate.
func (c Cells) Start(clock.Time, *rand.Rand) Server {
	return &cellServer{constantServer{rate: uint64(c.Rate)}, c}
}

type cellServer struct {
	constantServer
	cells Cells
}

func (s *cellServer) Finish(begin clock.Time, size int) clock.Time {
	n := (size + s.cells.Size - 1) / s.cells.Size
	return s.constantServer.Finish(begin, n*(s.cells.Size+s.cells.Overhead))
}
