package node

import (
	"sync"
	"time"
)

// deadline is the point at which a blocked call gives up; it may be moved
// while the call waits.
type deadline struct {
	mu     sync.Mutex
	timer  Timer
	passed chan struct{} // closed once the deadline is over; nil: there never was one
	idle   bool          // nothing will wait for it any more
}

// init is for those whose calls wait through a change of the deadline.
func (d *deadline) init() { d.passed = make(chan struct{}) }

// set moves the deadline to an instant of a node's time; the zero time means none.
func (d *deadline) set(by *Time, at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil && !d.timer.Stop() {
		<-d.passed // it has fired, or is about to
	}
	d.timer = nil
	over := false
	select {
	case <-d.passed:
		over = true
	default:
	}
	if at.IsZero() {
		if over {
			d.passed = make(chan struct{})
		}
		return
	}
	if d.passed == nil {
		d.passed = make(chan struct{})
	}
	left := by.until(at)
	if left <= 0 {
		if !over {
			close(d.passed)
		}
		return
	}
	if over {
		d.passed = make(chan struct{})
	}
	if d.idle {
		return // a timer would only outlive what it is for
	}
	passed := d.passed
	d.timer = by.AfterFunc(left, func() { close(passed) })
}

// wait returns a channel that is closed when the deadline is over.
func (d *deadline) wait() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.passed
}

// stop releases the timer for good, because calls do not wait any more.
func (d *deadline) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.idle = true
	if d.timer != nil && d.timer.Stop() {
		d.timer = nil // one that has fired is set's to wait for
	}
}
