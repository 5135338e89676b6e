package netem

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Opportunities is the rate of a link that sends when a trace says so, as mahimahi's do. At
// each of the times a number of bytes may leave: of one packet or several, or a part of one,
// whose rest leaves by the next. What an opportunity has left over when nothing waits is
// lost, and a packet that comes at that very time is too late for it.
type Opportunities struct {
	// At are the times since the link's origin, in order, several at a time if so much may
	// leave. After the last the list begins again, at that time: opportunities at 0 coincide
	// with the last then. It is not copied.
	At []time.Duration
	// Bytes is how much may leave by each, and Overhead how many bytes of that each packet
	// costs beyond its own, which count in the queue too. Zero Bytes: what mahimahi has, 1504
	// and 4, for it sees packets behind the 4 bytes of a TUN device.
	Bytes, Overhead int
	// Once has the link send no more after the last, instead of beginning again.
	Once bool
}

// What mahimahi has.
const (
	OpportunityBytes    = 1504
	OpportunityOverhead = 4
)

func (o Opportunities) withDefaults() Opportunities {
	if o.Bytes == 0 {
		o.Bytes, o.Overhead = OpportunityBytes, OpportunityOverhead
	}
	return o
}

// Validate reports what is wrong with the description.
func (o Opportunities) Validate() error {
	o = o.withDefaults()
	switch {
	case len(o.At) == 0:
		return fmt.Errorf("%w: a trace without opportunities", ErrConfig)
	case o.Bytes < 0 || o.Overhead < 0 || o.Overhead >= o.Bytes:
		return fmt.Errorf("%w: opportunities of %d bytes, %d of them overhead",
			ErrConfig, o.Bytes, o.Overhead)
	case o.At[0] < 0:
		return fmt.Errorf("%w: opportunity 1 at %v", ErrConfig, o.At[0])
	case o.period() <= 0:
		return fmt.Errorf("%w: a trace of length 0", ErrConfig)
	}
	for i := 1; i < len(o.At); i++ {
		if o.At[i] < o.At[i-1] {
			return fmt.Errorf("%w: opportunity %d at %v is before the one at %v",
				ErrConfig, i+1, o.At[i], o.At[i-1])
		}
	}
	return nil
}

func (o *Opportunities) period() time.Duration { return o.At[len(o.At)-1] }

func (o Opportunities) framing() int { return o.withDefaults().Overhead }

// MeanRate implements Rate: what packets get that fill an opportunity each.
func (o Opportunities) MeanRate() int64 {
	o = o.withDefaults()
	return max(1, perSecond(int64(len(o.At))*int64(o.Bytes-o.Overhead)*8, o.period()))
}

// Start implements Rate.
func (o Opportunities) Start(origin clock.Time, _ *rand.Rand) Server {
	o = o.withDefaults()
	s := &opportunist{o: o, next: lap{at: o.At, base: origin, once: o.Once}}
	s.untold = s.next
	return s
}

// opportunist is the server. The opportunity that it is in, if any, is the one before next.
type opportunist struct {
	o      Opportunities
	next   lap
	left   int // bytes of the opportunity it is in
	untold lap // what the watcher is to hear of next
}

// Turn implements Turns.
func (s *opportunist) Turn(now clock.Time, sending bool) clock.Time {
	if sending && s.left > 0 {
		return now
	}
	s.left = 0
	if !sending {
		s.next.pass(now)
	}
	return s.next.time()
}

// Finish implements Server.
func (s *opportunist) Finish(begin clock.Time, size int) clock.Time {
	at := begin
	for size += s.o.Overhead; size > s.left; {
		size -= s.left
		if at = s.next.time(); at == clock.Never {
			s.left = 0
			return clock.Never
		}
		s.next.step()
		s.left = s.o.Bytes
	}
	s.left -= size
	return at
}

func (s *opportunist) tell(until clock.Time, f func(at clock.Time, bytes int)) {
	for t := s.untold.time(); t.Due(until); t = s.untold.time() {
		f(t, s.o.Bytes)
		s.untold.step()
	}
}

func (s *opportunist) skip(until clock.Time) { s.untold.pass(until) }

// lap is a place in a list of times that begins again at its end.
type lap struct {
	at   []time.Duration
	i    int
	base clock.Time // when this lap began
	once bool
}

// time returns the time of the place; never: the list is over.
func (l *lap) time() clock.Time {
	if l.i == len(l.at) {
		return clock.Never
	}
	return max(1, l.base.Add(l.at[l.i])) // before the clock's first instant nothing happens
}

func (l *lap) step() {
	if l.i++; l.i == len(l.at) && !l.once {
		l.i = 0
		l.base = l.base.Add(l.at[len(l.at)-1])
	}
}

// pass goes to the first place after now, unless it is there. A short way it walks; of a long
// one it leaves out whole laps and halves the rest.
func (l *lap) pass(now clock.Time) {
	const short = 32
	for range short {
		if t := l.time(); !t.Due(now) {
			return
		}
		l.step()
	}
	if l.i == len(l.at) {
		return
	}
	period := l.at[len(l.at)-1]
	since := now.Sub(l.base)
	if !l.once && since >= period {
		l.base, l.i = l.base.Add(since-since%period), 0
		since %= period
	}
	from, to := l.i, len(l.at) // the first above since is in between
	for from < to {
		if middle := (from + to) / 2; l.at[middle] <= since {
			from = middle + 1
		} else {
			to = middle
		}
	}
	if l.i = from; from == len(l.at) && !l.once {
		l.i = 0
		l.base = l.base.Add(period)
	}
}
