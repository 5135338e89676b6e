package node

import (
	"errors"
	"time"
)

// errNoDescriptors is a device that has a descriptor where nothing waits on any.
var errNoDescriptors = errors.New("node: this way of waiting takes no descriptors")

// feedWaiter waits on a channel and a runtime timer: what every system can do.
// Its devices read in goroutines of their own and signal. It is late: an idle
// runtime rounds timers up to a millisecond.
type feedWaiter struct {
	bell  doorbell
	fed   feeds
	knock chan struct{}
	timer *time.Timer
}

func newFeedWaiter() *feedWaiter {
	w := &feedWaiter{knock: make(chan struct{}, 1), timer: time.NewTimer(0)}
	w.timer.Stop()
	return w
}

// Add implements waiter.
func (w *feedWaiter) Add(int, int) error { return errNoDescriptors }

// Feed implements waiter.
func (w *feedWaiter) Feed(token int) func() { return w.fed.add(token, w.Ring) }

// Wait implements waiter.
func (w *feedWaiter) Wait(timeout time.Duration, ready []int) ([]int, error) {
	if timeout != 0 && w.bell.sleep() {
		if timeout < 0 {
			<-w.knock
		} else {
			w.timer.Reset(timeout)
			select {
			case <-w.knock:
				w.timer.Stop()
			case <-w.timer.C:
			}
		}
	}
	w.bell.wake()
	return w.fed.take(ready), nil
}

// Ring implements waiter.
func (w *feedWaiter) Ring() {
	if w.bell.ring() {
		select {
		case w.knock <- struct{}{}:
		default: // one is there already, from a sleep that ended otherwise
		}
	}
}

// WantWrite implements waiter: devices without a descriptor never ask.
func (w *feedWaiter) WantWrite(int, bool) {}

// Close implements waiter.
func (w *feedWaiter) Close() error {
	w.timer.Stop()
	return nil
}
