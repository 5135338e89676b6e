// Package clock is the time of the protocol engines: an instant that their driver passes in, never
// read from the machine.
package clock

import "time"

// Time is an instant in nanoseconds since an origin that the driver chooses.
// The zero Time means never, so a driver's clock starts above zero.
type Time int64

// Never is the instant that does not come.
const Never Time = 0

// Add returns the instant d after t.
func (t Time) Add(d time.Duration) Time { return t + Time(d) }

// Later returns the instant d after t, and at least one nanosecond after it.
func (t Time) Later(d time.Duration) Time { return t.Add(max(d, time.Nanosecond)) }

// Sub returns how long t is after u.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t - u) }

// Due reports whether t is set and not after now.
func (t Time) Due(now Time) bool { return t != Never && t <= now }

// Order returns a number that is less for an earlier instant, and greatest for Never.
func (t Time) Order() uint64 { return uint64(t) - 1 }

// Earliest returns the first of the given instants. It ignores Never, unless all are Never.
func Earliest(ts ...Time) Time {
	first := Never.Order()
	for _, t := range ts {
		first = min(first, t.Order())
	}
	return Time(first + 1)
}
