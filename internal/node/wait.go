package node

import (
	"sync/atomic"
	"time"
)

// waiter waits for devices, for the next deadline, and for the doorbell that other goroutines ring.
//
// It also decides which goroutine owns the stack. At first that is the goroutine that created the
// waiter. This goroutine gives up the stack in Wait, and owns it again when Wait returns. In
// between, another goroutine can Enter. Only the owner may call the methods, except Ring and Enter.
//
// No ring is lost: after a ring some Wait returns, even if another goroutine owned the stack at
// that time. Wait may also return without a reason.
type waiter interface {
	ownership
	// Add makes Wait report token when fd is readable.
	Add(fd, token int) error
	// Feed adds a device whose packets do not come from a descriptor. Each call of ready, in any
	// goroutine, makes Wait or Fed report token once. ready calls ring, which must ring or enter.
	Feed(token int, ring func()) (ready func())
	// Wait sleeps until a device is ready, the doorbell has rung, or the timeout has passed. A
	// negative timeout means forever, and 0 means not at all. Wait appends the tokens of readable
	// devices to ready, and those of writable devices that WantWrite has enabled.
	Wait(timeout time.Duration, ready []int) ([]int, error)
	// WantWrite starts or stops reporting an added fd when it is writable.
	WantWrite(fd int, want bool)
	// Close releases the waiter's descriptors. After it, Ring has no effect.
	Close() error
}

// ownership gives other goroutines access to the stack.
type ownership interface {
	// Ring makes the current or next Wait return. While a goroutine owns the stack, Ring costs only
	// one or two atomic operations.
	Ring()
	// Enter makes the caller the owner. If there already is an owner, it rings instead.
	Enter() bool
	// Fed appends the tokens that are ready without a descriptor. It must be called after answer or
	// enter: a token that is marked later rings again.
	Fed(ready []int) []int
	// Yield undoes Enter, unless a goroutine has rung since.
	Yield() bool
	// Leave gives up the stack and rings.
	Leave()
}

// leaderWaiter is a waiter with a second slot, in which another goroutine can wait at the same time
// as the loop.
type leaderWaiter interface {
	// Free reports whether no goroutine owns the stack.
	Free() bool
	// Quiet says that the loop has woken up no goroutine since its last Wait.
	Quiet()
	// Lead is like Wait, for an owner that has entered. An event wakes up one of the two waiting
	// goroutines, usually the one that came last. Lead reports whether the caller owns the stack
	// again. If not, the owner has the events.
	Lead(timeout time.Duration, ready []int) ([]int, bool)
	// Call makes the current Lead, or the loop's Wait, return. Dismiss ends the Lead and waits
	// until it has returned. Only the loop calls Dismiss.
	Call()
	Dismiss()
}

// Waiter is for loops outside this package that send packets at precise times.
type Waiter = waiter

// NewWaiter returns the platform's best waiter.
func NewWaiter() (Waiter, error) { return newWaiter(waitBest) }

// waiterKind chooses a waiter. Zero means the best on this platform.
type waiterKind uint8

const (
	waitBest waiterKind = iota
	waitFed             // the waiter that works on every platform
)

// These are the states of a doorbell.
const (
	owned    = iota
	rung     // the stack has an owner, and the bell has rung since the last answer
	sleeping // the stack has no owner; a ring must wake up a goroutine
	woken    // the stack has no owner; a goroutine is waking up
)

// doorbell decides which goroutine owns the stack. A ring needs a system call only if no goroutine
// owns the stack. After enter, a goroutine sees all memory that the last owner wrote before sleep.
type doorbell struct{ state atomic.Uint32 }

// ring rings, and reports whether a goroutine must be woken up. It does not write if the bell has
// already rung, because a write would move the cache line away from a busy owner.
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

// leave gives up the stack. The caller must wake up a goroutine.
func (d *doorbell) leave() { d.state.Store(woken) }

// free reports whether no goroutine owns the stack.
func (d *doorbell) free() bool { return d.state.Load() >= sleeping }

// sleep gives up the stack. If the bell has rung since answer, it returns false and the caller
// stays the owner.
func (d *doorbell) sleep() bool { return d.state.CompareAndSwap(owned, sleeping) }

// answer acknowledges all rings so far. The owner then looks for work.
func (d *doorbell) answer() { d.state.Store(owned) }

// again is how long the loop's goroutine waits if it woke up while another goroutine owned the
// stack. That goroutine serves the ring, but does not know when the loop must wake up next.
const again = time.Millisecond

// feeds are the devices without a descriptor.
type feeds struct {
	list []*feed
	any  atomic.Bool // at least one device is ready
}

type feed struct {
	token int
	ready atomic.Bool
}

// Feed implements waiter.
func (f *feeds) Feed(token int, ring func()) func() {
	one := &feed{token: token}
	f.list = append(f.list, one)
	return func() {
		one.ready.Store(true)
		f.any.Store(true)
		ring()
	}
}

// Fed implements waiter.
func (f *feeds) Fed(ready []int) []int {
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
