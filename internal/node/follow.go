package node

import (
	"sync"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// following makes a Clock advance itself with the time of package time. That is the system's time
// or, in a testing/synctest bubble, the time of the bubble.
//
// Events of the network happen at their own times, in the order of Advance. The goroutine that runs
// them wakes up a few nanoseconds after they are due. The seed determines that delay. In a bubble,
// programs sleep for round durations. Without the delay, many of them would wake up at the same
// instant as the network, in any order.
type following struct {
	began time.Time
	from  clock.Time // the clock's time when the following began
	seed  uint64
	timer *time.Timer
	ended chan struct{}
	armed clock.Time // time of the event for which the timer is set; guarded by Clock.mu
}

// Follow makes the clock advance itself until the caller calls stop. The clock then has the time of
// package time, which must be after the year 2000. Call Follow before nodes are opened.
func (c *Clock) Follow(seed uint64) (stop func()) {
	f := &following{began: time.Now(), seed: seed, ended: make(chan struct{})}
	c.elapsed.Store(int64(f.began.Sub(drivenEpoch)))
	f.from = c.now()
	f.timer = time.NewTimer(0)
	f.timer.Stop()
	c.following = f
	go func() {
		for {
			select {
			case <-f.timer.C:
				c.wake()
			case <-f.ended:
				return
			}
		}
	}()
	return sync.OnceFunc(func() { close(f.ended) })
}

// now returns the current time. The clock may not have advanced to it yet.
func (f *following) now() clock.Time { return f.from.Add(time.Since(f.began)) }

// wake runs the events that are due.
func (c *Clock) wake() {
	c.mu.Lock()
	c.following.armed = clock.Never
	c.catchUp()
	c.mu.Unlock()
	c.run()
}

// catchUp advances a clock that follows package time, and runs the nodes whose doorbells have rung.
// The caller holds mu.
func (c *Clock) catchUp() {
	f := c.following
	if f == nil {
		c.settle()
		return
	}
	c.advanceTo(max(f.now(), c.now()))
	c.settle()
	next := c.next()
	switch {
	case next == f.armed:
		return
	case next == clock.Never:
		f.timer.Stop()
	default:
		f.timer.Reset(next.Sub(f.now()) + f.delayOf(next))
	}
	f.armed = next
}

// delayOf returns the delay after which an event runs, from 1 to 1024 ns.
func (f *following) delayOf(at clock.Time) time.Duration {
	hash := (uint64(at) ^ f.seed*0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9
	return time.Duration(1 + hash>>54)
}
