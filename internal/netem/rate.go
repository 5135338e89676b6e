package netem

import (
	"fmt"
	"math/rand/v2"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Rate describes how fast a link sends.
type Rate interface {
	// Start makes a server that has been idle for ever. What it does at certain times counts
	// from the origin; random is its own.
	Start(origin clock.Time, random *rand.Rand) Server
	// MeanRate is what full packets get in the long run, in bits a second: the bandwidth of
	// a bandwidth-delay product.
	MeanRate() int64
}

// Server is the end of a link that sends, a packet at a time.
type Server interface {
	// Finish begins to send a packet of size bytes at begin and returns when it
	// is done; never if that does not happen. Begin is never before what the last Finish
	// returned.
	Finish(begin clock.Time, size int) clock.Time
}

// Turns is a Server that does not take packets whenever it is idle, but when their turn comes.
type Turns interface {
	Server
	// Turn returns when the server takes the next packet, to be given to Finish then: after
	// now, or at now if the packet before has just left and the turn that it had has room.
	// Never: it takes no more.
	Turn(now clock.Time, sending bool) clock.Time
}

// framer is a Rate that counts more bytes of each packet than it has, in its queue too.
type framer interface{ framing() int }

func framing(r Rate) int {
	if f, ok := r.(framer); ok {
		return f.framing()
	}
	return 0
}

// BitsPerSecond is a rate that does not change.
type BitsPerSecond int64

// Validate reports what is wrong with the description.
func (b BitsPerSecond) Validate() error {
	if b <= 0 || b > mostRate {
		return fmt.Errorf("%w: rate %d bit/s must be 1 to %d", ErrConfig, int64(b), int64(mostRate))
	}
	return nil
}

// Start implements Rate.
func (b BitsPerSecond) Start(clock.Time, *rand.Rand) Server {
	return &constantServer{rate: uint64(b)}
}

// MeanRate implements Rate.
func (b BitsPerSecond) MeanRate() int64 { return int64(b) }

// mostRate keeps sums of bits and nanoseconds within their words.
const mostRate = 1 << 50

// bitNanoseconds are a byte's bits, in units of what passes in a nanosecond at a bit a second.
const bitNanoseconds = 8e9

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
	left := uint64(size)*bitNanoseconds + s.rest
	s.rest = left % s.rate
	s.free = begin + clock.Time(left/s.rate)
	return s.free
}
