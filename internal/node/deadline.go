package node

import (
	"cmp"
	"net"
	"sync"
	"time"
)

// deadline is the deadline of blocking calls. It can be changed while a call blocks.
type deadline struct {
	mu     sync.Mutex
	timer  Timer
	passed chan struct{} // closed when the deadline has passed; nil: never set
	idle   bool          // no call will wait again
}

// init must be called if a call may already block when the deadline is set for the first time.
func (d *deadline) init() { d.passed = make(chan struct{}) }

// set changes the deadline. The zero time removes it.
func (d *deadline) set(by *Time, at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil && !d.timer.Stop() {
		<-d.passed // the timer has fired, or is about to
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
		return // no call needs a timer
	}
	passed := d.passed
	d.timer = by.AfterFunc(left, func() { close(passed) })
}

// wait returns a channel that is closed when the deadline has passed.
func (d *deadline) wait() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.passed
}

// stop releases the timer. No call will wait again.
func (d *deadline) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.idle = true
	if d.timer != nil && d.timer.Stop() {
		d.timer = nil // a timer that has fired stays set, because set waits for it
	}
}

// SetDeadline sets both deadlines.
func (d *duplex) SetDeadline(t time.Time) error {
	return cmp.Or(d.SetReadDeadline(t), d.SetWriteDeadline(t))
}

// SetReadDeadline sets the deadline of Read; the zero time means none.
func (d *duplex) SetReadDeadline(t time.Time) error { return d.setDeadline(&d.in, t) }

// SetWriteDeadline sets the deadline of Write; the zero time means none.
func (d *duplex) SetWriteDeadline(t time.Time) error { return d.setDeadline(&d.out, t) }

func (d *duplex) setDeadline(h *halfConn, t time.Time) error {
	if d.closed.Load() {
		return d.opError("set", net.ErrClosed)
	}
	h.by.set(&d.node.Time, t)
	h.ready.ring() // a blocked call looks at the new deadline
	d.node.leading.wakeLeader(d)
	return nil
}
