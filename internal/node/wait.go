package node

import (
	"sync/atomic"
	"time"
)

// waiter waits for devices, the next deadline, and the doorbell that other goroutines ring.
//
// It also decides which goroutine owns the stack. That is the goroutine that made the waiter. It
// gives the stack up in Wait and owns it again when Wait returns; meanwhile another goroutine can
// Enter. Only the owner may call the methods, except Ring and Enter.
//
// No ring is lost: after a ring some Wait returns, even if another goroutine owned the stack when
// it rang. Wait may also return for no reason.
type waiter interface {
	ownership
	// Add lets Wait report token when fd is readable.
	Add(fd, token int) error
	// Feed is for a device without a descriptor. Each call of ready, in any goroutine, lets Wait
	// report token once.
	Feed(token int) (ready func())
	// Wait sleeps until a device is ready, the doorbell has rung, or timeout has passed. A negative
	// timeout means for ever, 0 not at all. It appends to ready the tokens of readable devices, and
	// of writable ones as WantWrite says.
	Wait(timeout time.Duration, ready []int) ([]int, error)
	// WantWrite starts or stops reporting an added fd when it is writable.
	WantWrite(fd int, want bool)
	// Close releases the waiter's descriptors. Ring has no effect from then on.
	Close() error
}

// ownership gives other goroutines access to the stack.
type ownership interface {
	// Ring makes the current or next Wait return. While a goroutine owns the stack, it costs an
	// atomic operation or two.
	Ring()
	// Enter makes the caller the owner, or rings if there is one.
	Enter() bool
	// Yield undoes Enter, unless a goroutine has rung meanwhile.
	Yield() bool
	// Leave gives it up and rings.
	Leave()
}

// leaderWaiter is a waiter with a second slot, in which a goroutine can wait as well as the loop.
type leaderWaiter interface {
	// Free reports whether no goroutine owns the stack.
	Free() bool
	// Quiet means that the loop has woken no goroutine since its last Wait.
	Quiet()
	// Lead is Wait for an owner that has entered. An event wakes one of the two waiting goroutines,
	// usually the one that came last. Lead reports whether the caller owns the stack again. If not,
	// the events went to the owner.
	Lead(timeout time.Duration, ready []int) ([]int, bool)
	// Call makes the current Lead, or the loop's Wait, return. Dismiss ends the Lead and waits
	// until it has returned. Only the loop calls it.
	Call()
	Dismiss()
}

// Waiter is used by a loop outside this package that moves packets at precise times.
type Waiter = waiter

// NewWaiter returns the platform's best waiter.
func NewWaiter() (Waiter, error) { return newWaiter(waitBest) }

// waiterKind chooses a waiter. Zero: the platform's best.
type waiterKind uint8

const (
	waitBest waiterKind = iota
	waitFed             // the one that every platform has
)

// The states of a doorbell.
const (
	owned    = iota
	rung     // owned, and rung since look
	sleeping // no owner; a ring must wake a goroutine
	woken    // no owner; a goroutine is being woken
)

// doorbell decides which goroutine owns the stack. A ring needs a system call only if no goroutine
// owns it. After enter, a goroutine sees what the last owner did before sleep.
type doorbell struct{ state atomic.Uint32 }

// ring rings, and reports whether a goroutine must be woken. It does not write if the bell has rung
// already: that would take the cache line from a busy owner.
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

// enter makes the caller the owner, or rings.
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

// leave gives up the stack. The caller must wake a goroutine.
func (d *doorbell) leave() { d.state.Store(woken) }

// free reports whether no goroutine owns the stack.
func (d *doorbell) free() bool { return d.state.Load() >= sleeping }

// sleep gives up the stack. It returns false, and the caller stays the owner, if the bell has rung
// since look.
func (d *doorbell) sleep() bool { return d.state.CompareAndSwap(owned, sleeping) }

// look answers all rings so far. The owner then looks for work.
func (d *doorbell) look() { d.state.Store(owned) }

// again is when the loop's goroutine looks again if it woke up while another goroutine owned the
// stack. That one serves the ring, but does not know when the loop must wake next.
const again = time.Millisecond

// feeds are the devices without a descriptor.
type feeds struct {
	list []*feed
	any  atomic.Bool // at least one is ready
}

type feed struct {
	token int
	ready atomic.Bool
}

// add returns a function that marks token as ready and rings.
func (f *feeds) add(token int, ring func()) func() {
	one := &feed{token: token}
	f.list = append(f.list, one)
	return func() {
		one.ready.Store(true)
		f.any.Store(true)
		ring()
	}
}

// take appends the tokens that are ready. Call it after look or enter: tokens that are marked later
// ring again.
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
