package tidepool

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/node"
)

// Clock is time that stands still until a program advances it. The zero Clock is
// ready for use and shows the first second of the year 2000, UTC.
//
// Nodes that share a Clock need no goroutine. What a call such as Write or Dial
// causes at the present instant, on all of them, has happened when it returns;
// what is due later happens in Advance, in order of time and, at one instant, in
// the order in which the nodes were opened. So the same calls in the same order
// always have the same effect. Goroutines that wait in Read or Accept run on as
// soon as there is something for them, and Advance does not wait for what they do
// then: step from one event to the next with Next where that matters.
type Clock struct{ clock node.Clock }

// Now returns the time that the clock shows.
func (c *Clock) Now() time.Time { return c.clock.Now() }

// Advance moves the clock on by d, and everything happens that is due until then. A d
// that is negative is 0, and 146 years is as far as a clock goes.
func (c *Clock) Advance(d time.Duration) { c.clock.Advance(d) }

// Next returns how long it is until something is due, and false if nothing is.
func (c *Clock) Next() (time.Duration, bool) { return c.clock.Next() }
