package trace

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/netem"
)

// Step is a rate, in bits a second, and for how long.
type Step struct {
	Rate     int64
	Duration time.Duration
}

// Bounds of what is generated.
const (
	MaxRate   = 20_000_000_000
	MaxLength = 100 * time.Hour
)

// ErrImpossible is the error of a trace that nobody can generate.
var ErrImpossible = errors.New("impossible trace")

// Kinds are the kinds of traces that Spec makes.
var Kinds = []string{"const", "poisson", "onoff", "cell"}

// Spec describes a trace to generate. Rates are in bits a second.
type Spec struct {
	Kind    string // one of Kinds
	Rate    int64
	Low     int64         // of cell: the least rate; 0: a tenth of Rate
	Length  time.Duration // after which the trace begins again
	On, Off time.Duration // of onoff
	Stay    time.Duration // of cell
	Seed    uint64        // of poisson and cell
	// Stall is how long the trace sends at StallRate, or nothing, before it begins with its
	// kind; Length includes it. The traces that Pantheon recorded on cellular paths, such as
	// 2.64mbps-poisson, begin with 1 to 5 s of one packet in 100 ms, which is 120 kbit/s.
	Stall     time.Duration
	StallRate int64
}

// Make makes the trace. Errors wrap ErrImpossible.
func (s Spec) Make() (Trace, error) {
	switch {
	case s.Stall == 0 && s.StallRate != 0:
		return nil, fmt.Errorf("%w: a rate of %d bit/s in a stall of 0s: want a stall such as 5s",
			ErrImpossible, s.StallRate)
	case s.Stall < 0 || s.Stall%time.Millisecond != 0:
		return nil, fmt.Errorf("%w: a stall of %v: want whole milliseconds", ErrImpossible, s.Stall)
	case s.Stall > 0 && s.Stall >= s.Length:
		return nil, fmt.Errorf("%w: a stall of %v in a trace of %v: want a shorter stall",
			ErrImpossible, s.Stall, s.Length)
	}
	t, err := s.kind(s.Length - s.Stall)
	if err != nil || s.Stall == 0 {
		return t, err
	}
	var out Trace
	if s.StallRate != 0 {
		if out, err = Constant(s.StallRate, s.Stall); err != nil {
			return nil, err
		}
	}
	for _, at := range t {
		out = append(out, s.Stall+at)
	}
	return out, nil
}

// kind makes what follows the stall.
func (s Spec) kind(length time.Duration) (Trace, error) {
	switch s.Kind {
	case "const":
		return Constant(s.Rate, length)
	case "poisson":
		return Poisson(s.Rate, length, s.Seed)
	case "onoff":
		return OnOff(s.Rate, s.On, s.Off, length)
	case "cell":
		low := s.Low
		if low == 0 {
			low = s.Rate / 10
		}
		return Cell(low, s.Rate, s.Stay, length, s.Seed)
	}
	return nil, fmt.Errorf("%w: %q is no kind of trace: want %s", ErrImpossible, s.Kind,
		strings.Join(Kinds, ", "))
}

// check sees to it that a trace can be.
func check(rate int64, length time.Duration) error {
	switch {
	case rate <= 0 || rate > MaxRate:
		return fmt.Errorf("%w: %d bit/s: want 1 to %d", ErrImpossible, rate, int64(MaxRate))
	case length < time.Millisecond || length > MaxLength:
		return fmt.Errorf("%w: %v long: want 1ms to %v", ErrImpossible, length, MaxLength)
	case float64(rate)/OpportunityBits*length.Seconds() > MaxLines:
		return fmt.Errorf("%w: %d bit/s for %v are more than %d packets",
			ErrImpossible, rate, length, MaxLines)
	}
	return nil
}

// Steps makes the trace of rates that follow each other, as evenly as milliseconds allow, as
// mahimahi's mm-rate-to-events does: what does not make a packet yet is kept for the next
// millisecond. It is as long as its steps: where the last opportunity is earlier, an end that has
// none cannot be told, so that the last step is cut there.
func Steps(steps ...Step) (Trace, error) {
	var t Trace
	var begin time.Duration
	bits := int64(0) // in thousandths
	for _, s := range steps {
		if s.Rate == 0 {
			begin += s.Duration.Truncate(time.Millisecond)
			continue
		}
		if err := check(s.Rate, s.Duration); err != nil {
			return nil, err
		}
		for ms := int64(1); ms <= int64(s.Duration/time.Millisecond); ms++ {
			for bits += s.Rate; bits >= OpportunityBits*1000; bits -= OpportunityBits * 1000 {
				t = append(t, begin+time.Duration(ms)*time.Millisecond)
			}
		}
		begin += s.Duration.Truncate(time.Millisecond)
		if len(t) > MaxLines {
			return nil, fmt.Errorf("%w: more than %d packets", ErrImpossible, MaxLines)
		}
	}
	return t.made()
}

// Constant makes the trace of one rate.
func Constant(rate int64, length time.Duration) (Trace, error) {
	return Steps(Step{rate, length})
}

// Poisson makes a trace whose opportunities come with exponential gaps. Its mean rate is close to
// rate; its last opportunity is where it begins again.
func Poisson(rate int64, length time.Duration, seed uint64) (Trace, error) {
	if err := check(rate, length); err != nil {
		return nil, err
	}
	random := netem.Streams(seed)("poisson trace")
	// Of a long stretch and not of a packet: a mean of whole nanoseconds is off by less then.
	const stretch = 1000
	mean := time.Duration(stretch * OpportunityBits * int64(time.Second) / rate)
	var t Trace
	var at time.Duration // in thousandths
	for {
		at += netem.Exponential(random, mean)
		ms := (at / stretch).Truncate(time.Millisecond)
		if ms > length {
			return t.made()
		}
		t = append(t, ms)
	}
}

// OnOff makes a trace that alternates between a rate and nothing. Where it ends with nothing, one
// opportunity is its end, since a trace begins again behind its last: without it the last pause
// would be left out of each turn.
func OnOff(rate int64, on, off, length time.Duration) (Trace, error) {
	if on < time.Millisecond || off < time.Millisecond {
		return nil, fmt.Errorf("%w: %v on and %v off: want 1ms or more", ErrImpossible, on, off)
	}
	if err := check(rate, length); err != nil {
		return nil, err
	}
	var steps []Step
	for left := length; left > 0; left -= on + off {
		steps = append(steps, Step{rate, min(on, left)})
		if left > on {
			steps = append(steps, Step{0, min(off, left-on)})
		}
	}
	t, err := Steps(steps...)
	if end := length.Truncate(time.Millisecond); err == nil && steps[len(steps)-1].Rate == 0 {
		t = append(t, end)
	}
	return t, err
}

// Cell makes a trace such as a cellular link has: its rate moves between low and high by a factor
// of at most two, and stays where it is for stay on the average. Opportunities of one rate are
// Poisson.
func Cell(low, high int64, stay, length time.Duration, seed uint64) (Trace, error) {
	switch {
	case low > high || low <= 0:
		return nil, fmt.Errorf("%w: from %d to %d bit/s", ErrImpossible, low, high)
	case stay < time.Millisecond:
		return nil, fmt.Errorf("%w: %v at each rate: want 1ms or more", ErrImpossible, stay)
	}
	if err := check(high, length); err != nil {
		return nil, err
	}
	random := netem.Streams(seed)("cell trace")
	rate := low + random.Int64N(high-low+1)
	var t Trace
	for at := time.Duration(0); at < length; {
		end := min(at+max(netem.Exponential(random, stay), time.Millisecond), length)
		t = spread(t, random, rate, at, end)
		at = end
		from, to := max(low, rate/2), min(high, 2*rate)
		rate = from + random.Int64N(to-from+1)
	}
	return t.made()
}

// spread adds Poisson opportunities from one time to another.
func spread(t Trace, random *rand.Rand, rate int64, from, to time.Duration) Trace {
	mean := time.Duration(OpportunityBits * int64(time.Second) / rate)
	for {
		if from += netem.Exponential(random, mean); from >= to {
			return t
		}
		t = append(t, from.Truncate(time.Millisecond))
	}
}

// made is a trace that can be read again.
func (t Trace) made() (Trace, error) {
	if len(t) == 0 || t[len(t)-1] == 0 {
		return nil, fmt.Errorf("%w: no packet within its length", ErrImpossible)
	}
	return t, nil
}
