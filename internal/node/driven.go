package node

import (
	"container/heap"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Clock is a time that a program advances. Nodes with a Clock have no goroutine of their own. A
// goroutine that gives such a node work, or advances the clock, runs the loops of all nodes and
// returns when nothing is left to do at that instant. The zero Clock is ready for use and starts
// with the year 2000.
type Clock struct {
	elapsed atomic.Int64 // elapsed time in nanoseconds
	dirty   atomic.Bool  // the doorbell of a node has rung

	mu        sync.Mutex // held by the goroutine that runs the loops
	nodes     []*Node    // nodes in the order of opening; the list is replaced and never changed
	following *following // makes the clock follow the real time; nil: a program advances the clock

	timersMu sync.Mutex
	timers   timerHeap
	sequence uint64
}

var drivenEpoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// Now returns the clock's time.
func (c *Clock) Now() time.Time { return drivenEpoch.Add(time.Duration(c.elapsed.Load())) }

func (c *Clock) now() clock.Time { return clock.Time(c.elapsed.Load() + 1) }

// lastInstant is the time at which the clock stops, after 146 years. Later deadlines can still be
// represented.
const lastInstant = clock.Time(1 << 62)

// Advance moves the clock forward by d, and stops at each deadline on the way. Events at the same
// instant happen in the order in which the nodes were opened.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	c.settle()
	c.advanceTo(c.now().Add(min(max(0, d), lastInstant.Sub(c.now()))))
	c.mu.Unlock()
	c.run()
}

// advanceTo moves the clock forward to end, and stops at each deadline on the way. The caller holds
// mu.
func (c *Clock) advanceTo(end clock.Time) {
	for next := c.next(); next.Due(end); next = c.next() {
		c.set(max(next, c.now()))
		c.settle()
	}
	c.set(end)
}

// Next returns the duration until the next deadline, or false if there is no deadline.
func (c *Clock) Next() (time.Duration, bool) {
	c.mu.Lock()
	c.settle()
	next, now := c.next(), c.now()
	c.mu.Unlock()
	c.run()
	if next == clock.Never {
		return 0, false
	}
	return max(0, next.Sub(now)), true
}

// set moves the clock forward and runs the events that are due. The caller holds mu.
func (c *Clock) set(now clock.Time) {
	c.elapsed.Store(int64(now - 1))
	for _, n := range c.nodes {
		if w := n.waiter.(*drivenWaiter); !w.paused && w.due.Due(now) {
			w.mark()
		}
	}
	for {
		t := c.popTimer(now)
		if t == nil {
			return
		}
		t.f()
	}
}

// next returns the next deadline. The caller holds mu.
func (c *Clock) next() clock.Time {
	c.timersMu.Lock()
	first := clock.Never
	if len(c.timers) > 0 {
		first = c.timers[0].at
	}
	c.timersMu.Unlock()
	for _, n := range c.nodes {
		if w := n.waiter.(*drivenWaiter); !w.paused {
			first = clock.Earliest(first, w.due)
		}
	}
	return first
}

// run serves the nodes whose doorbells have rung, unless another goroutine is already doing that.
func (c *Clock) run() {
	for c.dirty.Load() && c.mu.TryLock() {
		c.catchUp()
		c.mu.Unlock()
	}
}

// settle runs all nodes until nothing is left to do at this instant. The caller holds mu.
func (c *Clock) settle() {
	for {
		for c.dirty.Swap(false) {
			for _, n := range c.nodes {
				step(n)
			}
		}
		i := slices.IndexFunc(c.nodes, func(n *Node) bool { return n.closing.Load() })
		if i < 0 {
			return
		}
		n := c.nodes[i]
		c.nodes = slices.Concat(c.nodes[:i], c.nodes[i+1:])
		n.crash()
		n.shutdown()
		close(n.stopped)
	}
}

// Pause stops or resumes a node of the clock. A stopped node does nothing. When it resumes, it does
// what it has missed.
func (c *Clock) Pause(n *Node, paused bool) {
	w, ok := n.waiter.(*drivenWaiter)
	if !ok {
		return
	}
	c.mu.Lock()
	w.paused = paused
	w.mark()
	c.mu.Unlock()
	c.run()
}

func (c *Clock) add(n *Node) {
	c.mu.Lock()
	c.nodes = append(slices.Clip(c.nodes), n)
	c.mu.Unlock()
	n.waiter.Ring()
}

// step runs an iteration of a node whose doorbell has rung. The caller holds Clock.mu.
func step(n *Node) {
	w := n.waiter.(*drivenWaiter)
	if w.paused || !w.rung.Swap(false) {
		return
	}
	n.Devices.gather(w.Fed(n.Devices.ready[:0]))
	n.iterate()
	w.due = n.due()
	if len(n.Devices.again) > 0 || w.due.Due(n.Time.now()) {
		w.mark()
	}
}

// drivenWaiter is the waiter of a node with a Clock. It never waits.
type drivenWaiter struct {
	clock *Clock
	feeds
	rung atomic.Bool

	// The following fields may be used only while Clock.mu is held.
	due    clock.Time // the node's next deadline, as of its last iteration
	paused bool
}

var errDrivenDescriptor = errors.New("node: UDP links and TUN devices cannot be used with a Clock")

func (w *drivenWaiter) Add(int, int) error { return errDrivenDescriptor }

// Wait implements waiter. It is not called.
func (w *drivenWaiter) Wait(_ time.Duration, ready []int) ([]int, error) { return ready, nil }

func (w *drivenWaiter) Ring() {
	w.mark()
	w.clock.run()
}

// Enter implements waiter. Ring has run the node's iterations when it returns.
func (w *drivenWaiter) Enter() bool {
	w.Ring()
	return false
}

// Yield implements waiter. Enter never succeeds.
func (w *drivenWaiter) Yield() bool { return true }

// Leave implements waiter. Enter never succeeds.
func (w *drivenWaiter) Leave() {}

func (w *drivenWaiter) mark() {
	w.rung.Store(true)
	w.clock.dirty.Store(true)
}

// WantWrite implements waiter. Devices without a descriptor never call it.
func (w *drivenWaiter) WantWrite(int, bool) {}

func (w *drivenWaiter) Close() error { return nil }

// drivenTimer is a timer of a Clock.
type drivenTimer struct {
	clock    *Clock
	at       clock.Time
	sequence uint64
	index    int // position in the heap; -1: not in the heap
	f        func()
}

// afterFunc calls f after d, in the goroutine that advances the clock.
func (c *Clock) afterFunc(d time.Duration, f func()) *drivenTimer {
	c.timersMu.Lock()
	defer c.timersMu.Unlock()
	c.sequence++
	t := &drivenTimer{clock: c, at: c.now().Add(max(d, 1)), sequence: c.sequence, f: f}
	heap.Push(&c.timers, t)
	return t
}

// popTimer removes and returns the first timer that is due, or nil.
func (c *Clock) popTimer(now clock.Time) *drivenTimer {
	c.timersMu.Lock()
	defer c.timersMu.Unlock()
	if len(c.timers) == 0 || c.timers[0].at > now {
		return nil
	}
	return heap.Pop(&c.timers).(*drivenTimer)
}

// Stop reports whether it stopped the timer before f was called.
func (t *drivenTimer) Stop() bool {
	t.clock.timersMu.Lock()
	defer t.clock.timersMu.Unlock()
	if t.index < 0 {
		return false
	}
	heap.Remove(&t.clock.timers, t.index)
	return true
}

// timerHeap orders timers by time, then by age.
type timerHeap []*drivenTimer

func (h timerHeap) Len() int { return len(h) }

func (h timerHeap) Less(i, j int) bool {
	if h[i].at != h[j].at {
		return h[i].at < h[j].at
	}
	return h[i].sequence < h[j].sequence
}

func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *timerHeap) Push(x any) {
	t := x.(*drivenTimer)
	t.index = len(*h)
	*h = append(*h, t)
}

func (h *timerHeap) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	t.index = -1
	return t
}
