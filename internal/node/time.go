package node

import (
	"context"
	"os"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Time is the time of a node: the system's, or that of a Clock.
type Time struct {
	start time.Time // start of the loop's time
	clock *Clock    // the Clock that drives the node; nil: the system's time
}

func newTime(c *Clock) Time {
	if c != nil {
		return Time{drivenEpoch, c}
	}
	return Time{start: time.Now()}
}

// now returns the loop's time: nanoseconds since just before the node started.
func (t *Time) now() clock.Time {
	if t.clock != nil {
		return t.clock.now()
	}
	return clock.Time(time.Since(t.start)) + 1
}

// Wall converts the loop's time to the time of day.
func (t *Time) Wall(at clock.Time) time.Time { return t.start.Add(time.Duration(at - 1)) }

// Now returns the time of day of the node's clock.
func (t *Time) Now() time.Time { return t.Wall(t.now()) }

// Driven reports whether a Clock drives the node.
func (t *Time) Driven() bool { return t.clock != nil }

// stepped reports whether a program advances the node's time.
func (t *Time) stepped() bool { return t.clock != nil && t.clock.following == nil }

// settle waits until a Clock that follows package time has run everything that is due. A program
// then does not run in parallel with the network that woke it up. The caller must not hold a lock
// that the loop takes.
func (t *Time) settle() {
	c := t.clock
	if c == nil || c.following == nil {
		return
	}
	c.mu.Lock()
	if c.dirty.Load() { // the goroutine that held the lock may have run nothing
		c.catchUp()
	}
	c.mu.Unlock()
	c.run()
}

func (t *Time) until(at time.Time) time.Duration {
	if t.stepped() {
		return at.Sub(t.clock.Now())
	}
	return time.Until(at)
}

// Timer is a timer of either kind of time. Stop reports whether it prevented the call.
type Timer interface{ Stop() bool }

// AfterFunc calls f after d, unless the timer is stopped before.
func (t *Time) AfterFunc(d time.Duration, f func()) Timer {
	if t.stepped() {
		return t.clock.afterFunc(d, f)
	}
	return time.AfterFunc(d, f)
}

// Within returns a context that ends after d with the cause os.ErrDeadlineExceeded. If d is not
// positive, it returns ctx.
func (t *Time) Within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if d <= 0 {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	timer := t.AfterFunc(d, func() { cancel(os.ErrDeadlineExceeded) })
	return ctx, func() {
		timer.Stop()
		cancel(nil)
	}
}
