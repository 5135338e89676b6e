package netem

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Opportunities is the rate of a link that sends at the times of a trace, as mahimahi's links do.
// At each time the link may send OpportunityBytes: of one packet, of several, or of a part of one,
// whose remaining bytes leave at the next opportunity. Each packet costs OpportunityOverhead in
// addition to its own bytes; that counts in the queue too. Unused bytes are lost. A packet that
// arrives exactly at an opportunity cannot use it.
type Opportunities struct {
	// At are the times since the link's origin, in order. A time that occurs several times is
	// several opportunities. After the last time the list starts again at that time: opportunities
	// at 0 then coincide with the last. It is not copied.
	At []time.Duration
	// Once stops the link after the last time, instead of starting again.
	Once bool
	// Name is the trace's file, for String.
	Name string
}

// mahimahi's values: it sees packets with the 4 bytes of a TUN device.
const (
	OpportunityBytes    = 1504
	OpportunityOverhead = 4
)

// Validate reports what is wrong with the description.
func (o Opportunities) Validate() error {
	switch {
	case len(o.At) == 0:
		return fmt.Errorf("%w: the trace has no transmission opportunities", ErrConfig)
	case o.At[0] < 0:
		return fmt.Errorf("%w: opportunity 1 at %v: must be at 0 or later", ErrConfig, o.At[0])
	case o.period() <= 0:
		return fmt.Errorf("%w: the trace has length 0", ErrConfig)
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

// MeanRate implements Rate: the rate for packets that fill one opportunity each.
func (o Opportunities) MeanRate() int64 {
	return max(1, perSecond(int64(len(o.At))*traceBits, o.period()))
}

// Start implements Rate.
func (o Opportunities) Start(origin clock.Time, _ *rand.Rand) Server {
	l := lap{at: o.At, base: origin, once: o.Once}
	return &opportunist{next: l, untold: l}
}

// opportunist is the server. Its current opportunity, if any, is the one before next.
type opportunist struct {
	next   lap
	left   int // bytes of the current opportunity
	untold lap // the next one to report
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
	for size += OpportunityOverhead; size > s.left; {
		size -= s.left
		if at = s.next.time(); at == clock.Never {
			s.left = 0
			return clock.Never
		}
		s.next.step()
		s.left = OpportunityBytes
	}
	s.left -= size
	return at
}

func (s *opportunist) tell(until clock.Time, f func(at clock.Time, bytes int)) {
	for t := s.untold.time(); t.Due(until); t = s.untold.time() {
		f(t, OpportunityBytes)
		s.untold.step()
	}
}

func (s *opportunist) skip(until clock.Time) { s.untold.pass(until) }

// lap is a place in a list of times that starts again after its end.
type lap struct {
	at   []time.Duration
	i    int
	base clock.Time // when this lap began
	once bool
}

// time returns the time of the place; never: the list has ended.
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

// pass moves to the first place after now, unless it is already there. It takes a short distance
// step by step; for a long one it skips whole laps and then searches.
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
	later, _ := slices.BinarySearch(l.at[l.i:], since+1)
	if l.i += later; l.i == len(l.at) && !l.once {
		l.i = 0
		l.base = l.base.Add(period)
	}
}
