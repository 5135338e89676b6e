package netem

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// These limit a TraceSpec, in bits/s and time.
const (
	MaxTraceRate   = 20_000_000_000
	MaxTraceLength = 100 * time.Hour
)

// ErrTrace is the error for a trace that cannot be generated.
var ErrTrace = errors.New("cannot generate this trace")

var errNoPacket = fmt.Errorf(
	"%w: no packet fits into the trace: choose a higher rate or a longer trace", ErrTrace)

// TraceKinds are the values of TraceSpec.Kind.
var TraceKinds = []string{"const", "poisson", "onoff", "cell"}

// TraceSpec describes a trace to generate. Rates are in bits/s.
type TraceSpec struct {
	// Kind is one of four words. const has one rate; poisson has exponential gaps between packets;
	// onoff sends at Rate for On, then nothing for Off; cell has a rate that varies randomly
	// between Low and Rate, as on a cellular link.
	Kind    string
	Rate    int64
	Low     int64         // for cell: minimum rate; 0: a tenth of Rate
	Length  time.Duration // time after which the trace starts again
	On, Off time.Duration // for onoff: lengths of the two periods
	Stay    time.Duration // for cell: mean time between changes of the rate
	Seed    uint64        // for poisson and cell: seed of the random numbers
	// Stall is how long the trace sends at StallRate, or nothing, before it sends as Kind says.
	// Length includes it. The traces that Pantheon recorded on cellular paths, such as
	// 2.64mbps-poisson, begin with 1 to 5 s of one packet in 100 ms, which is 120 kbit/s.
	Stall     time.Duration
	StallRate int64
}

// Make generates the trace. Errors wrap ErrTrace.
func (s TraceSpec) Make() (Trace, error) {
	switch {
	case s.Stall == 0 && s.StallRate != 0:
		return nil, fmt.Errorf("%w: stall rate %d bit/s needs a stall, such as 5s",
			ErrTrace, s.StallRate)
	case s.Stall < 0 || s.Stall%time.Millisecond != 0:
		return nil, fmt.Errorf("%w: stall %v: must be whole milliseconds", ErrTrace, s.Stall)
	case s.Stall > 0 && s.Stall >= s.Length:
		return nil, fmt.Errorf("%w: stall %v: must be shorter than the trace, %v",
			ErrTrace, s.Stall, s.Length)
	}
	t, err := s.moving(s.Length - s.Stall)
	if err != nil || s.Stall == 0 {
		return t, err
	}
	var out Trace
	if s.StallRate != 0 {
		if out, err = constant(s.StallRate, s.Stall).Trace(); err != nil {
			return nil, err
		}
	}
	for _, at := range t {
		out = append(out, s.Stall+at)
	}
	return out, nil
}

// moving generates the part after the stall.
func (s TraceSpec) moving(length time.Duration) (Trace, error) {
	switch s.Kind {
	case "const":
		return constant(s.Rate, length).Trace()
	case "poisson":
		return poisson(s.Rate, length, s.Seed)
	case "onoff":
		return s.onOff(length)
	case "cell":
		return s.cell(length)
	}
	return nil, fmt.Errorf("%w: kind %q: must be %s", ErrTrace, s.Kind,
		strings.Join(TraceKinds, ", "))
}

func checkTrace(rate int64, length time.Duration) error {
	switch {
	case rate <= 0 || rate > MaxTraceRate:
		return fmt.Errorf("%w: rate %d bit/s: must be 1 to %d", ErrTrace, rate, int64(MaxTraceRate))
	case length < time.Millisecond || length > MaxTraceLength:
		return fmt.Errorf("%w: length %v: must be 1ms to %v", ErrTrace, length, MaxTraceLength)
	case float64(rate)/traceBits*length.Seconds() > maxTraceLines:
		return fmt.Errorf("%w: %d bit/s for %v need more than "+
			"%d packets: choose a lower rate or a shorter trace",
			ErrTrace, rate, length, maxTraceLines)
	}
	return nil
}

func constant(rate int64, length time.Duration) Schedule {
	return Schedule{Steps: []Step{{0, BitsPerSecond(rate)}}, Every: length}
}

// Trace returns the trace of one lap of the schedule, whose Every must be set. See Times.
func (s Schedule) Trace() (Trace, error) {
	times, err := s.Times()
	if err != nil {
		return nil, err
	}
	return slices.Collect(times), nil
}

// Times returns the opportunities of one lap of the schedule, whose Every must be set, as evenly
// spaced as milliseconds allow. Bits that do not fill a packet are kept for the next millisecond,
// as in mahimahi's mm-rate-to-events. The trace ends with its last opportunity, even if the lap is
// longer: a trace cannot express a pause at its end. Errors wrap ErrTrace.
func (s Schedule) Times() (iter.Seq[time.Duration], error) {
	bits := int64(0) // unit: thousandths of a bit
	for i, step := range s.Steps {
		if step.Rate == 0 {
			continue
		}
		if err := checkTrace(int64(step.Rate), s.length(i)); err != nil {
			return nil, err
		}
		bits += int64(step.Rate) * int64(s.length(i)/time.Millisecond)
	}
	switch {
	case bits/fullPacket > maxTraceLines:
		return nil, fmt.Errorf("%w: more than %d packets: choose a lower rate or a shorter trace",
			ErrTrace, maxTraceLines)
	case bits < fullPacket:
		return nil, errNoPacket
	}
	return s.each, nil
}

func (s Schedule) each(yield func(time.Duration) bool) {
	at, bits := time.Duration(0), int64(0)
	for i, step := range s.Steps {
		for range s.length(i) / time.Millisecond {
			at += time.Millisecond
			for bits += int64(step.Rate); bits >= fullPacket; bits -= fullPacket {
				if !yield(at) {
					return
				}
			}
		}
	}
}

// poisson generates opportunities with exponential gaps. The trace ends with the last opportunity.
func poisson(rate int64, length time.Duration, seed uint64) (Trace, error) {
	if err := checkTrace(rate, length); err != nil {
		return nil, err
	}
	random := Streams(seed)("poisson trace")
	// Gaps are drawn in thousandths of a nanosecond, so that rounding changes the mean less.
	const stretch = 1000
	mean := time.Duration(stretch * traceBits * int64(time.Second) / rate)
	var t Trace
	var at time.Duration // unit: thousandths of a nanosecond
	for {
		at += Exponential(random, mean)
		ms := (at / stretch).Truncate(time.Millisecond)
		if ms > length {
			return t.checked()
		}
		t = append(t, ms)
	}
}

// onOff generates a trace that alternates between Rate and a pause. If it ends with a pause, one
// opportunity marks the end: a trace starts again after its last opportunity, so the pause would be
// lost.
func (s TraceSpec) onOff(length time.Duration) (Trace, error) {
	if s.On < time.Millisecond || s.Off < time.Millisecond {
		return nil, fmt.Errorf("%w: %v on and %v off: must be 1ms or more", ErrTrace, s.On, s.Off)
	}
	if err := checkTrace(s.Rate, length); err != nil {
		return nil, err
	}
	lap := Schedule{Every: length}
	for at := time.Duration(0); at < length; at += s.On + s.Off {
		lap.Steps = append(lap.Steps, Step{at, BitsPerSecond(s.Rate)})
		if at+s.On < length {
			lap.Steps = append(lap.Steps, Step{at + s.On, 0})
		}
	}
	t, err := lap.Trace()
	if err == nil && lap.Steps[len(lap.Steps)-1].Rate == 0 {
		t = append(t, length.Truncate(time.Millisecond))
	}
	return t, err
}

// cell generates a trace whose rate changes by a factor of at most two and stays the same for Stay
// on average. The opportunities of one rate are Poisson.
func (s TraceSpec) cell(length time.Duration) (Trace, error) {
	low, high := cmp.Or(s.Low, s.Rate/10), s.Rate
	switch {
	case low > high || low <= 0:
		return nil, fmt.Errorf("%w: lowest rate %d bit/s: must be 1 to %d", ErrTrace, low, high)
	case s.Stay < time.Millisecond:
		return nil, fmt.Errorf("%w: %v at each rate: must be 1ms or more", ErrTrace, s.Stay)
	}
	if err := checkTrace(high, length); err != nil {
		return nil, err
	}
	random := Streams(s.Seed)("cell trace")
	rate := low + random.Int64N(high-low+1)
	var t Trace
	for at := time.Duration(0); at < length; {
		end := min(at+max(Exponential(random, s.Stay), time.Millisecond), length)
		t = addPoisson(t, random, rate, at, end)
		at = end
		from, to := max(low, rate/2), min(high, 2*rate)
		rate = from + random.Int64N(to-from+1)
	}
	return t.checked()
}

func addPoisson(t Trace, random *rand.Rand, rate int64, from, to time.Duration) Trace {
	mean := time.Duration(traceBits * int64(time.Second) / rate)
	for {
		if from += Exponential(random, mean); from >= to {
			return t
		}
		t = append(t, from.Truncate(time.Millisecond))
	}
}

func (t Trace) checked() (Trace, error) {
	if len(t) == 0 || t[len(t)-1] == 0 {
		return nil, errNoPacket
	}
	return t, nil
}
