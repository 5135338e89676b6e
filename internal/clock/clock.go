// Package clock defines the time of the protocol engines. The engines never read a clock; the
// program that drives them passes in the current instant.
package clock

import "time"

// Time is an instant in nanoseconds since an origin that the driver chooses.
// The zero Time means never, so a driver's clock starts above zero.
type Time int64

// Never stands for no instant at all.
const Never Time = 0

// Add returns the instant d after t.
func (t Time) Add(d time.Duration) Time { return t + Time(d) }

// Later returns the instant d after t, and at least one nanosecond after it.
func (t Time) Later(d time.Duration) Time { return t.Add(max(d, time.Nanosecond)) }

// Sub returns how long t is after u.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t - u) }

// Due reports whether t is set and not after now.
func (t Time) Due(now Time) bool { return t != Never && t <= now }

// Order returns a number for sorting: the earlier the instant, the smaller the number. Never has
// the largest.
func (t Time) Order() uint64 { return uint64(t) - 1 }

// Earliest returns the first of the given instants. It ignores Never, unless all are Never.
func Earliest(ts ...Time) Time {
	first := Never.Order()
	for _, t := range ts {
		first = min(first, t.Order())
	}
	return Time(first + 1)
}
