package node

import (
	"sync/atomic"
	"time"
)

// waiter is how an owner loop waits: for its devices, for the next deadline, and
// for the doorbell that other goroutines ring.
//
// It also says who the owner is. Whoever made the waiter is, gives what it owns up while it is
// in Wait, and has it again when that returns; meanwhile another goroutine may Enter. All methods
// but Ring and Enter are the owner's.
//
// A ring is never lost: whoever leaves something for the owner and then rings can
// be sure that a Wait returns after that, or that who has entered leaves it to one
// that does. A Wait may return for nothing.
type waiter interface {
	doors
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
	// WantWrite has Wait report an added fd when it is writable, or no longer.
	WantWrite(fd int, want bool)
	// Close gives back what waiting took. Ring does nothing then.
	Close() error
}

// doors are how others than the loop come to what it owns.
type doors interface {
	// Ring has the owner look around: the Wait under way, or the next one,
	// returns. It costs an atomic operation or two while there is an owner.
	Ring()
	// Enter makes the caller the owner if there is none; else it rings.
	Enter() bool
	// Yield gives up what Enter has given, unless somebody has rung meanwhile.
	Yield() bool
	// Leave gives it up and rings.
	Leave()
}

// second is a way of waiting with a second seat, beside the loop's.
type second interface {
	// Free reports whether there is no owner right now.
	Free() bool
	// Lead is Wait for an owner by Enter, beside the loop's Wait. What arrives wakes one of the
	// two, rather who came last. It reports whether the caller is the owner again; if not,
	// another is, who knows what was ready.
	Lead(timeout time.Duration, ready []int) ([]int, bool)
	// Call has the Lead under way return, or the Wait beside it, and Dismiss, which is for the
	// loop, has the Lead return before it does itself.
	Call()
	Dismiss()
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
	owned    = iota
	rung     // owned, and rung since the owner last looked
	sleeping // nobody is the owner, who waits or is about to: a ring must wake
	woken    // nobody is the owner, and one was woken
)

// doorbell keeps rings cheap, for only one that finds everybody asleep has to wake, and has the
// stack be one goroutine's at a time: what one did before sleep is seen by who enters.
type doorbell struct{ state atomic.Uint32 }

// ring notes a ring and reports whether somebody must be woken. Who looks at a bell that was
// rung already spares a busy owner's cache line the write.
func (d *doorbell) ring() bool {
	for {
		switch d.state.Load() {
		case owned:
			if d.state.CompareAndSwap(owned, rung) {
				return false
			}
		case sleeping:
			if d.state.CompareAndSwap(sleeping, woken) {
				return true
			}
		default:
			return false
		}
	}
}

// enter makes the caller the owner, or rings at who is.
func (d *doorbell) enter() bool {
	for {
		switch s := d.state.Load(); s {
		case rung:
			return false
		case owned:
			if d.state.CompareAndSwap(owned, rung) {
				return false
			}
		default:
			if d.state.CompareAndSwap(s, owned) {
				return true
			}
		}
	}
}

// leave gives up what the caller owns to somebody who must be woken.
func (d *doorbell) leave() { d.state.Store(woken) }

// free reports whether there is no owner right now.
func (d *doorbell) free() bool { return d.state.Load() >= sleeping }

// sleep gives up what the caller owns. It is false when he must look again, for somebody rang
// since he last did, and stays the owner.
func (d *doorbell) sleep() bool { return d.state.CompareAndSwap(owned, sleeping) }

// look announces that the owner is about to look: rings so far are answered.
func (d *doorbell) look() { d.state.Store(owned) }

// again is when a loop looks again that found another in its place. That one has been rung, and
// does what there is to do, but knows no better than the loop's last sleep when it is to wake.
const again = time.Millisecond

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
