package netem

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// ByTime loses packets at certain times.
type ByTime struct {
	// Windows are in the order of time and do not overlap. They are not copied.
	Windows []Window
	// Every is the period after which the windows repeat, at least the end of the last one; 0: they
	// do not repeat.
	Every time.Duration
}

// Window is a period in which a share of the packets is lost.
type Window struct {
	From, To time.Duration // times since the link's origin; To is not in the window
	Share    float64
}

// Validate returns an error if the description is invalid.
func (b ByTime) Validate() error {
	before := time.Duration(0)
	for i, w := range b.Windows {
		if w.From < before || w.To <= w.From {
			return fmt.Errorf("%w: window %d (%v to %v): must begin "+
				"at %v or later and not be empty",
				ErrConfig, i+1, w.From, w.To, before)
		}
		if err := validShares(share{"loss in a window", w.Share}); err != nil {
			return err
		}
		before = w.To
	}
	if b.Every != 0 && b.Every < before {
		return fmt.Errorf("%w: windows repeat after %v: must be %v or more",
			ErrConfig, b.Every, before)
	}
	return nil
}

// Start implements Loss.
func (b ByTime) Start(origin clock.Time, random *rand.Rand) LossFunc {
	base := origin // start of the current lap
	i := 0         // index of the first window that is not over
	return func(now clock.Time, _ int) bool {
		since := now.Sub(base)
		if b.Every > 0 && since >= b.Every {
			base, i = base.Add(since-since%b.Every), 0
			since %= b.Every
		}
		for i < len(b.Windows) && b.Windows[i].To <= since {
			i++
		}
		if i == len(b.Windows) || b.Windows[i].From > since {
			return false // outside windows, the model draws no random number
		}
		return drawShare(random, b.Windows[i].Share)
	}
}

// drawShare draws only if the share is between 0 and 1.
func drawShare(random *rand.Rand, share float64) bool {
	return share > 0 && (share >= 1 || random.Float64() < share)
}

// OnOff is a link that is alternately on and off, starting with on, like mahimahi's mm-onoff. While
// it is off, it loses all packets.
type OnOff struct {
	On, Off time.Duration
	// Poisson draws each period from an exponential distribution, with the mean On or Off.
	Poisson bool
}

// Validate returns an error if the description is invalid.
func (o OnOff) Validate() error {
	if o.On < 0 || o.Off < 0 || o.On > maxOnOff || o.Off > maxOnOff || o.On+o.Off == 0 {
		return fmt.Errorf("%w: on for %v and off for %v: must be at most %v, and not both 0",
			ErrConfig, o.On, o.Off, maxOnOff)
	}
	return nil
}

// maxOnOff prevents overflow of exponential times.
const maxOnOff = 1000 * time.Hour

// Mean returns the share of time for which the link is off.
func (o OnOff) Mean() float64 { return float64(o.Off) / float64(o.On+o.Off) }

// Start implements Loss.
func (o OnOff) Start(origin clock.Time, random *rand.Rand) LossFunc {
	l := &onOff{OnOff: o, random: random, on: true}
	l.until = origin.Add(l.stateDuration())
	return l.lose
}

type onOff struct {
	OnOff
	random *rand.Rand
	on     bool
	until  clock.Time
}

func (o *onOff) lose(now clock.Time, _ int) bool {
	const memory = 64 // maximum number of laps to make up for
	lap := o.On + o.Off
	switch past := now.Sub(o.until); {
	case past <= memory*lap:
	case o.Poisson: // an exponential process does not depend on the past
		o.on = o.random.Int64N(int64(lap)) < int64(o.On)
		o.until = now.Add(o.stateDuration())
	default:
		o.until = o.until.Add(past - past%lap)
	}
	for o.until <= now {
		o.on = !o.on
		o.until = o.until.Add(o.stateDuration())
	}
	return !o.on
}

// stateDuration returns the duration of the state that has just started.
func (o *onOff) stateDuration() time.Duration {
	mean := o.Off
	if o.on {
		mean = o.On
	}
	if !o.Poisson || mean == 0 {
		return mean
	}
	return Exponential(o.random, mean)
}

// Exponential draws a time of at least a nanosecond from the exponential distribution with the
// given mean. It uses von Neumann's method, which only compares integers. So the result is the same
// on every machine.
func Exponential(random *rand.Rand, mean time.Duration) time.Duration {
	for whole := time.Duration(0); ; whole += mean {
		first := random.Uint32()
		// A run of descending numbers that starts with x has an odd length with the probability
		// e^-x.
		last, odd := first, true
		for next := random.Uint32(); next < last; next = random.Uint32() {
			last, odd = next, !odd
		}
		if odd {
			const bits = 32
			part := mean>>bits*time.Duration(first) +
				mean&(1<<bits-1)*time.Duration(first>>1)>>(bits-1)
			return max(1, whole+part)
		}
	}
}
