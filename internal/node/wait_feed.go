package node

import (
	"errors"
	"time"
)

// errNoDescriptors means that the device needs a waiter that can wait for descriptors.
var errNoDescriptors = errors.New("node: file descriptors " +
	"are not supported with this clock or system")

// feedWaiter waits for a channel and a runtime timer, which works on every platform. Its devices
// read in their own goroutines. It can be late, because an idle runtime rounds timers up to a
// millisecond.
type feedWaiter struct {
	feeds
	bell  doorbell
	rang  chan struct{}
	timer *time.Timer
}

func newFeedWaiter() *feedWaiter {
	w := &feedWaiter{rang: make(chan struct{}, 1), timer: time.NewTimer(0)}
	w.timer.Stop()
	return w
}

func (w *feedWaiter) Add(int, int) error { return errNoDescriptors }

func (w *feedWaiter) Wait(timeout time.Duration, ready []int) ([]int, error) {
	if timeout == 0 || !w.bell.sleep() {
		w.bell.answer()
		return w.Fed(ready), nil
	}
	for w.sleep(timeout); !w.bell.enter(); {
		w.sleep(again)
	}
	return w.Fed(ready), nil
}

func (w *feedWaiter) sleep(timeout time.Duration) {
	if timeout < 0 {
		<-w.rang
		return
	}
	w.timer.Reset(timeout)
	select {
	case <-w.rang:
		w.timer.Stop()
	case <-w.timer.C:
	}
}

func (w *feedWaiter) Ring() {
	if w.bell.ring() {
		wake(w.rang)
	}
}

func (w *feedWaiter) Enter() bool { return w.bell.enter() }

func (w *feedWaiter) Yield() bool { return w.bell.sleep() }

func (w *feedWaiter) Leave() {
	w.bell.leave()
	wake(w.rang)
}

// WantWrite implements waiter. Devices without a descriptor never call it.
func (w *feedWaiter) WantWrite(int, bool) {}

func (w *feedWaiter) Close() error {
	w.timer.Stop()
	return nil
}
