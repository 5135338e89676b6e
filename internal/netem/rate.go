package netem

import (
	"fmt"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Rate describes how fast a link sends.
type Rate interface {
	// Start makes a server that has been idle for ever.
	Start() Server
}

// Server is the end of a link that sends, a packet at a time.
type Server interface {
	// Finish begins to send a packet of size bytes at begin and returns when it
	// is done. Begin is never before what the last Finish returned.
	Finish(begin clock.Time, size int) clock.Time
}

// BitsPerSecond is a rate that does not change.
type BitsPerSecond int64

// Validate reports what is wrong with the description.
func (b BitsPerSecond) Validate() error {
	if b <= 0 {
		return fmt.Errorf("%w: rate %d bit/s: want more than 0", ErrConfig, int64(b))
	}
	return nil
}

// Start implements Rate.
func (b BitsPerSecond) Start() Server { return &constantServer{rate: uint64(b)} }

// constantServer is exact: what a nanosecond's rounding leaves of one packet is
// part of the next, so that a busy link neither gains nor loses a bit.
type constantServer struct {
	rate uint64 // bits a second
	free clock.Time
	rest uint64 // of a nanosecond beyond free, in 1/rate
}

func (s *constantServer) Finish(begin clock.Time, size int) clock.Time {
	if begin != s.free {
		s.rest = 0 // it was idle
	}
	// Below 2^64: a packet has 16 bits of length, and the rest is less than the rate.
	const bitNanoseconds = 8e9
	left := uint64(size)*bitNanoseconds + s.rest
	s.rest = left % s.rate
	s.free = begin + clock.Time(left/s.rate)
	return s.free
}
