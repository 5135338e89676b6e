package netem

import (
	"fmt"
	"math/rand/v2"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Rate describes how fast a link sends.
type Rate interface {
	// Start creates a server that was never busy, with its own random source. Its times count from
	// origin.
	Start(origin clock.Time, random *rand.Rand) Server
	// MeanRate is the mean rate of full packets in bits a second, for bandwidth-delay products.
	MeanRate() int64
}

// Server is the sending end of a link. It sends one packet at a time.
type Server interface {
	// Finish starts to send a packet of size bytes at begin. It returns when the packet will have
	// been sent, or never if it will not be sent. begin is not before the result of the last
	// Finish.
	Finish(begin clock.Time, size int) clock.Time
}

// Turns is a Server that takes packets only at certain times.
type Turns interface {
	Server
	// Turn returns when the server takes the next packet, which is then passed to Finish. This is
	// after now, or at now if the last packet has just left (sending) and its turn has room. Never
	// means that the server takes no more packets.
	Turn(now clock.Time, sending bool) clock.Time
}

// framing returns the number of bytes that a rate adds to each packet. They also count in the
// queue.
func framing(r Rate) int {
	if _, ok := r.(Opportunities); ok {
		return OpportunityOverhead
	}
	return 0
}

// BitsPerSecond is a constant rate.
type BitsPerSecond int64

// Validate returns an error if the description is invalid.
func (b BitsPerSecond) Validate() error {
	if b <= 0 || b > mostRate {
		return fmt.Errorf("%w: rate %d bit/s: must be 1 to %d", ErrConfig, int64(b),
			int64(mostRate))
	}
	return nil
}

// Start implements Rate.
func (b BitsPerSecond) Start(clock.Time, *rand.Rand) Server {
	return &constantServer{rate: uint64(b)}
}

// MeanRate implements Rate.
func (b BitsPerSecond) MeanRate() int64 { return int64(b) }

// mostRate prevents overflow of sums of bits and nanoseconds.
const mostRate = 1 << 50

// bitNanoseconds is the number of billionths of a bit in one byte.
const bitNanoseconds = 8e9

// constantServer is exact: when it rounds the time of one packet, it adds the remaining fraction of
// a nanosecond to the next packet. So a busy link neither gains nor loses a bit.
type constantServer struct {
	rate uint64 // bits per second
	free clock.Time
	rest uint64 // fraction of a nanosecond after free, in units of 1/rate
}

func (s *constantServer) Finish(begin clock.Time, size int) clock.Time {
	if begin != s.free {
		s.rest = 0 // the server was idle
	}
	// The sum is below 2^64, because a packet's length has 16 bits, and the rest is less than the
	// rate.
	left := uint64(size)*bitNanoseconds + s.rest
	s.rest = left % s.rate
	s.free = begin + clock.Time(left/s.rate)
	return s.free
}
