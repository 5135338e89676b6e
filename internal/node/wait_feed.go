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
	if timeout == 0 || !w.bell.sleep() {
		w.bell.look()
		return w.fed.take(ready), nil
	}
	for w.sleep(timeout); !w.bell.enter(); {
		w.sleep(again)
	}
	return w.fed.take(ready), nil
}

func (w *feedWaiter) sleep(timeout time.Duration) {
	if timeout < 0 {
		<-w.knock
		return
	}
	w.timer.Reset(timeout)
	select {
	case <-w.knock:
		w.timer.Stop()
	case <-w.timer.C:
	}
}

// Ring implements waiter.
func (w *feedWaiter) Ring() {
	if w.bell.ring() {
		wake(w.knock)
	}
}

// Enter implements waiter.
func (w *feedWaiter) Enter() bool { return w.bell.enter() }

// Yield implements waiter.
func (w *feedWaiter) Yield() bool { return w.bell.sleep() }

// Leave implements waiter.
func (w *feedWaiter) Leave() {
	w.bell.leave()
	wake(w.knock)
}

// WantWrite implements waiter: devices without a descriptor never ask.
func (w *feedWaiter) WantWrite(int, bool) {}

// Close implements waiter.
func (w *feedWaiter) Close() error {
	w.timer.Stop()
	return nil
}
