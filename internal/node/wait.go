package node

import (
	"sync/atomic"
	"time"
)

// waiter is how an owner loop waits: for its devices, for the next deadline, and
// for the doorbell that other goroutines ring. All methods but Ring are the
// loop's goroutine's.
//
// A ring is never lost: whoever leaves something for the loop and then rings can
// be sure that a Wait returns after that. A Wait may return for nothing.
type waiter interface {
	// Add has Wait report token when fd is readable.
	Add(fd, token int) error
	// Feed is for a device without a descriptor: what it returns has Wait
	// report token, once a call, and may be called by any goroutine.
	Feed(token int) (ready func())
	// Wait sleeps until a device is ready, the doorbell was rung or timeout
	// has passed; negative: for ever, 0: not at all. It appends the tokens of
	// the devices that are readable (or writable, where that was wanted) to
	// ready.
	Wait(timeout time.Duration, ready []int) ([]int, error)
	// Ring has the loop look around: the Wait under way, or the next one,
	// returns. It costs an atomic operation or two while the loop is awake.
	Ring()
	// WantWrite has Wait report an added fd when it is writable, or no longer.
	WantWrite(fd int, want bool)
	// Close gives back what waiting took. Ring does nothing then.
	Close() error
}

// Waiter is how a loop waits that is not a node's, and moves packets as punctually.
type Waiter = waiter

// NewWaiter returns the platform's best way of waiting.
func NewWaiter() (Waiter, error) { return newWaiter(waitBest) }

// waiterKind chooses between the ways of waiting; zero: the system's best.
type waiterKind uint8

const (
	waitBest waiterKind = iota
	waitFed             // the one that every system has
)

// The states of a doorbell.
const (
	awake    = iota
	sleeping // or about to: a ring must wake the loop
	rung     // since the loop last looked
)

// doorbell keeps rings cheap: only one that finds the loop asleep has to wake it.
type doorbell struct{ state atomic.Uint32 }

// ring notes a ring and reports whether the loop must be woken. The first look
// spares a busy loop's cache line the write.
func (d *doorbell) ring() bool {
	return d.state.Load() != rung && d.state.Swap(rung) == sleeping
}

// sleep announces that the loop is about to sleep. It is false when it must not,
// for somebody rang since it last looked.
func (d *doorbell) sleep() bool { return d.state.CompareAndSwap(awake, sleeping) }

// wake announces that the loop is about to look: rings so far are answered.
func (d *doorbell) wake() { d.state.Store(awake) }

// feeds are the devices without a descriptor.
type feeds struct {
	list []*feed
	any  atomic.Bool // one of list is ready
}

type feed struct {
	token int
	ready atomic.Bool
}

// add returns what marks token as ready and rings.
func (f *feeds) add(token int, ring func()) func() {
	one := &feed{token: token}
	f.list = append(f.list, one)
	return func() {
		one.ready.Store(true)
		f.any.Store(true)
		ring()
	}
}

// take moves the tokens that are ready to ready. It comes after the doorbell's
// wake: what is marked later rings again.
func (f *feeds) take(ready []int) []int {
	if !f.any.Load() || !f.any.Swap(false) {
		return ready
	}
	for _, one := range f.list {
		if one.ready.Load() && one.ready.Swap(false) {
			ready = append(ready, one.token)
		}
	}
	return ready
}
