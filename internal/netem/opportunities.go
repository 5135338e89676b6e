package netem

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Opportunities is the rate of a link that sends at the times of a trace, as mahimahi's links do.
// At each time the link may send OpportunityBytes: one packet, several packets, or a part of one.
// The rest of a packet leaves at the next opportunity. Each packet costs OpportunityOverhead in
// addition to its own bytes, also in the queue. Unused bytes are lost. A packet that arrives
// exactly at an opportunity cannot use it.
type Opportunities struct {
	// At are the times since the link's origin, in order. A time that occurs several times is
	// several opportunities. The list starts again at its last time, so an opportunity at 0 then
	// coincides with the last one. At is not copied.
	At []time.Duration
	// Once stops the link after the last time, instead of starting again.
	Once bool
	// Name is the name of the trace's file, for String.
	Name string
}

// These are mahimahi's values. Its packets include the 4 bytes of a TUN device.
const (
	OpportunityBytes    = 1504
	OpportunityOverhead = 4
)

// Validate returns an error if the description is invalid.
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

// MeanRate implements Rate. It returns the rate of packets that fill one opportunity each.
func (o Opportunities) MeanRate() int64 {
	return max(1, perSecond(int64(len(o.At))*traceBits, o.period()))
}

// Start implements Rate.
func (o Opportunities) Start(origin clock.Time, _ *rand.Rand) Server {
	l := cursor{at: o.At, base: origin, once: o.Once}
	return &opportunityServer{next: l, unreported: l}
}

// opportunityServer is the server. Its current opportunity, if any, is the one before next.
type opportunityServer struct {
	next       cursor
	left       int    // unused bytes of the current opportunity
	unreported cursor // position of the next opportunity to report
}

func (s *opportunityServer) Turn(now clock.Time, sending bool) clock.Time {
	if sending && s.left > 0 {
		return now
	}
	s.left = 0
	if !sending {
		s.next.pass(now)
	}
	return s.next.time()
}

func (s *opportunityServer) Finish(begin clock.Time, size int) clock.Time {
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

func (s *opportunityServer) report(until clock.Time, f func(at clock.Time, bytes int)) {
	for t := s.unreported.time(); t.Due(until); t = s.unreported.time() {
		f(t, OpportunityBytes)
		s.unreported.step()
	}
}

func (s *opportunityServer) skip(until clock.Time) { s.unreported.pass(until) }

// cursor is a position in a list of times that starts again after its end.
type cursor struct {
	at   []time.Duration
	i    int
	base clock.Time // start of this lap
	once bool
}

// time returns the time at the position; never: the list has ended.
func (l *cursor) time() clock.Time {
	if l.i == len(l.at) {
		return clock.Never
	}
	return max(1, l.base.Add(l.at[l.i])) // clock.Time cannot represent an earlier instant
}

func (l *cursor) step() {
	if l.i++; l.i == len(l.at) && !l.once {
		l.i = 0
		l.base = l.base.Add(l.at[len(l.at)-1])
	}
}

// pass moves to the first time after now, unless the position is already there. It covers a short
// distance step by step. For a long distance it skips whole laps and then searches.
func (l *cursor) pass(now clock.Time) {
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
