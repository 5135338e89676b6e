package node

import (
	"sync/atomic"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// What lies between a request and its reply is mostly threads that wake each other: a datagram
// wakes the loop, the loop a reader, and his write the loop again. So who writes a little that
// can leave at once takes a turn of the loop himself, and a reader whose answer may be on its way
// takes the loop's turns while he waits: he leads. The loop's goroutine waits beside, keeps the
// time, and has whatever comes when nobody leads.

// leadTime is how long a reader leads. Goroutines that he made ready just before may have to wait
// for as long, where all other processors are busy.
const leadTime = 200 * time.Microsecond

// lull is how long the loop's goroutine sleeps at most while others have the stack now and then:
// less than most deadlines are away, so that nobody has to wake it for one.
const lull = 5 * time.Millisecond

// smallWrite is how many bytes a writer sends himself. To send more takes longer than to wake
// another processor, which does it while the writer goes on.
const smallWrite = 4 << 10

// leading is who leads.
type leading struct {
	second second     // a way of waiting that has a second seat; nil: nobody leads
	lulled clock.Time // until when the loop's goroutine sleeps for a lull at most; the owner's
	alarm  clock.Time // when the loop's goroutine wakes by itself; the owner's
	woke   bool       // the last turn woke an application; the owner's

	leader atomic.Pointer[duplex] // who waits in the second seat; nil: nobody
	called atomic.Bool            // there is news for leader
}

// lend runs a turn of the loop, unless somebody is at it, who will look again.
func (n *Node) lend() {
	if n.waiter.Enter() {
		n.turn()
		n.leave()
	}
}

// leave gives up the stack, and rings for what is left to do. Who rang meanwhile is served first,
// for most of all it is the loop's goroutine with the answer to what was just sent.
func (n *Node) leave() {
	n.lulled = n.now().Add(lull)
	for range turnsMore {
		if len(n.Devices.again) > 0 || !n.timely() || n.closing.Load() {
			break // the loop's goroutine has to know
		}
		if n.waiter.Yield() {
			if n.called.Load() && n.leader.Load() != nil {
				n.second.Call()
			}
			return
		}
		n.look()
		n.turn()
	}
	n.waiter.Leave()
}

// turnsMore bounds what one does for others before one leaves.
const turnsMore = 2

// timely reports whether the loop's goroutine wakes in time for what is due. The owner's.
func (n *Node) timely() bool {
	due := n.due()
	return due == clock.Never || n.alarm != clock.Never && n.alarm <= due
}

// lead waits for packets in the loop's place until d does not wait any more, or leadTime is over,
// and reports which. It does not wait while others lead or are served, nor for the first text of
// a connection, for who opens and closes many is better served by the loop alone.
func (n *Node) lead(d *duplex) bool {
	if n.second == nil || d.in.ring.Head() == 0 ||
		n.leader.Load() != nil || !n.second.Free() || !n.waiter.Enter() {
		return false
	}
	if n.leader.Load() != nil {
		n.leave()
		return false
	}
	for start := n.now(); !n.woke && len(n.Devices.again) == 0 && n.timely(); {
		n.called.Store(false)
		n.leader.Store(d) // who has news for d sees this, or d.waits sees the news
		left := leadTime - n.now().Sub(start)
		if left <= 0 || !d.waits() {
			break
		}
		ready, owner := n.second.Lead(left, n.Devices.ready[:0])
		n.leader.Store(nil)
		if !owner {
			return !d.waits()
		}
		n.Devices.gather(ready)
		n.turn()
	}
	n.leader.Store(nil)
	n.leave()
	return !d.waits()
}

// newsFor notes that there is news for d: who gives up the stack calls it. The owner's.
func (n *Node) newsFor(d *duplex) {
	if n.leader.Load() == d {
		n.called.Store(true)
	}
}

// call wakes who waits to read from d.
func (d *duplex) call() {
	d.in.ready.ring()
	if d.node.leader.Load() == d {
		d.node.called.Store(true)
		d.node.second.Call()
	}
}
