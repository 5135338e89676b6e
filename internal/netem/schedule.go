package netem

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Schedule is a rate that changes at certain times, also while a packet is sent.
type Schedule struct {
	// Steps are in the order of time; the first is at 0. They are not copied.
	Steps []Step
	// Every is the period after which the steps repeat, longer than the last one's time; 0: the
	// last step lasts forever.
	Every time.Duration
}

// Step is the rate that applies from a time since the link's origin. At a rate of 0, no packet
// leaves.
type Step struct {
	At   time.Duration
	Rate BitsPerSecond
}

// Validate returns an error if the description is invalid.
func (s Schedule) Validate() error {
	if len(s.Steps) == 0 {
		return fmt.Errorf("%w: the schedule has no steps", ErrConfig)
	}
	if s.Steps[0].At != 0 {
		return fmt.Errorf("%w: the first step is at %v: must be 0", ErrConfig, s.Steps[0].At)
	}
	some := false
	for i, step := range s.Steps {
		switch {
		case step.Rate < 0 || step.Rate > mostRate:
			return fmt.Errorf("%w: step %d: rate %d bit/s: must be 0 to %d", ErrConfig, i+1,
				int64(step.Rate), int64(mostRate))
		case i > 0 && step.At <= s.Steps[i-1].At:
			return fmt.Errorf("%w: step %d at %v: must be later than %v",
				ErrConfig, i+1, step.At, s.Steps[i-1].At)
		}
		some = some || step.Rate > 0
	}
	last := s.Steps[len(s.Steps)-1].At
	switch {
	case s.Every != 0 && s.Every <= last:
		return fmt.Errorf("%w: schedule repeats after %v: must be later than the last step at %v",
			ErrConfig, s.Every, last)
	case !some:
		return fmt.Errorf("%w: the schedule's rate is always 0", ErrConfig)
	}
	return nil
}

// MeanRate implements Rate. It returns the mean over one lap. If the steps do not repeat, it
// returns the rate of the last step that is not 0.
func (s Schedule) MeanRate() int64 {
	if s.Every == 0 {
		i := len(s.Steps) - 1
		for ; i > 0 && s.Steps[i].Rate == 0; i-- {
			continue
		}
		return int64(s.Steps[i].Rate)
	}
	mean := 0.0
	for i, step := range s.Steps {
		mean += float64(float64(step.Rate) * (float64(s.length(i)) / float64(s.Every)))
	}
	return int64(math.Round(mean))
}

func (s Schedule) length(i int) time.Duration {
	if i+1 < len(s.Steps) {
		return s.Steps[i+1].At - s.Steps[i].At
	}
	return s.Every - s.Steps[i].At
}

// Each calls f for each step that begins before until, in every lap.
func (s Schedule) Each(until time.Duration,
	f func(rate BitsPerSecond, begin, end time.Duration),
) {
	for lap := time.Duration(0); lap < until; lap += s.Every {
		for i, step := range s.Steps {
			end := until
			if i+1 < len(s.Steps) || s.Every > 0 {
				end = min(until, lap+step.At+s.length(i))
			}
			if begin := lap + step.At; begin < until {
				f(step.Rate, begin, end)
			}
		}
		if s.Every == 0 {
			return
		}
	}
}

// Start implements Rate.
func (s Schedule) Start(origin clock.Time, _ *rand.Rand) Server {
	return &scheduled{Schedule: s, base: origin}
}

// scheduled is the server. It is as exact as constantServer.
type scheduled struct {
	Schedule
	i    int        // index of the current step
	base clock.Time // start of the current lap
	free clock.Time
	rest uint64 // fraction of a nanosecond, as in constantServer
}

func (s *scheduled) Finish(begin clock.Time, size int) clock.Time {
	if begin != s.free {
		s.rest = 0 // the server was idle
	}
	s.seek(begin)
	left := uint64(size)*bitNanoseconds + s.rest
	for at := begin; ; {
		rate, end := uint64(s.Steps[s.i].Rate), s.end()
		if rate > 0 {
			took := left / rate
			if end == clock.Never || took <= uint64(end.Sub(at)) {
				s.free, s.rest = at+clock.Time(took), left%rate
				return s.free
			}
			left -= uint64(end.Sub(at)) * rate
		}
		if end == clock.Never {
			return clock.Never
		}
		at = end
		s.step()
	}
}

func (s *scheduled) end() clock.Time {
	switch {
	case s.i+1 < len(s.Steps):
		return s.base.Add(s.Steps[s.i+1].At)
	case s.Every > 0:
		return s.base.Add(s.Every)
	}
	return clock.Never
}

func (s *scheduled) step() {
	if s.i++; s.i == len(s.Steps) {
		s.i = 0
		s.base = s.base.Add(s.Every)
	}
}

// seek moves to the step that is valid at a time.
func (s *scheduled) seek(now clock.Time) {
	if since := now.Sub(s.base); s.Every > 0 && since >= s.Every {
		s.base, s.i = s.base.Add(since-since%s.Every), 0
	}
	for end := s.end(); end != clock.Never && end <= now; end = s.end() {
		s.step()
	}
}

// perSecond converts an amount per time to an amount per second. It rounds down, and returns at
// most the largest number.
func perSecond(amount int64, d time.Duration) int64 {
	high, low := bits.Mul64(uint64(amount), uint64(time.Second))
	if d <= 0 || high >= uint64(d) {
		return math.MaxInt64
	}
	mean, _ := bits.Div64(high, low, uint64(d))
	return int64(min(mean, math.MaxInt64))
}
