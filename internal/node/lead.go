package node

import (
	"sync/atomic"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// leading implements the Leader/Followers pattern: an application's goroutine can become the
// leader, which runs iterations of the loop. Between a request and its reply, most of the cost is
// that threads wake up each other: a datagram wakes up the loop, the loop wakes up a reader, and
// the reader's answer wakes up the loop again.
//
// The protocol:
//   - The waiter's doorbell knows the stack's owner. There is at most one: the loop's goroutine
//     outside Wait, or a goroutine whose Enter succeeded.
//   - A goroutine that writes at most smallWrite bytes enters and runs an iteration
//     (runIteration). A goroutine that reads enters and waits in the waiter's second slot (lead)
//     until there is data, for at most leadTime.
//   - One reader leads at a time. Meanwhile the loop's goroutine waits in its own slot. A packet
//     wakes up one of the two. Deadlines wake up the loop's goroutine.
//   - leave gives up the stack. Before that it serves goroutines that have rung, at most twice.
//     It rings if there is work that the loop's goroutine would not wake up for.
//   - An owner that has data for the leading reader (markReadable) ends that reader's wait when it
//     gives up the stack.
type leading struct {
	node       *Node
	slot       leaderWaiter // the waiter's second slot; nil: the waiter has no second slot
	sleepUntil clock.Time   // until this time, the loop's goroutine sleeps at most leadSleep
	wakeAt     clock.Time   // when the loop's goroutine wakes up; owner only
	yieldAt    clock.Time   // latest time at which Wait yields to the scheduler; owner only
	woke       bool         // the last iteration woke up an application; owner only
	wokeAny    bool         // a goroutine may have been woken up since Wait; owner only

	leader   atomic.Pointer[duplex] // reader that waits; nil: no reader
	readable atomic.Bool            // the leader can read
}

const (
	// leadTime limits how long a reader leads. On a busy machine, goroutines that the reader has
	// just made runnable may have to wait that long.
	leadTime = 200 * time.Microsecond
	// leadSleep is the longest sleep of the loop's goroutine while others run iterations. Most
	// deadlines are later, so the others need not wake it up for them.
	leadSleep = 5 * time.Millisecond
	// smallWrite is the maximum size of writes that run an iteration themselves. Sending a longer
	// write takes longer than waking up another CPU, which sends while the writer continues.
	smallWrite = 4 << 10
	// yieldAfter is how long the loop runs without yielding to the scheduler. After 10 ms Go's
	// monitor thread takes the processor away, and then wakes up every 20 µs for a while.
	yieldAfter = 8 * time.Millisecond
	// mostServed limits how many times leave serves other goroutines.
	mostServed = 2
)

// runIteration runs an iteration. If another goroutine owns the stack, it rings instead.
func (l *leading) runIteration() {
	if l.node.waiter.Enter() {
		l.node.iterate()
		l.leave()
	}
}

// deliver runs an iteration after another node of the process has put packets into a device. That
// node's goroutine runs it, inside an iteration of its own. It cannot enter a node that it already
// runs: that node has an owner, so Enter rings.
func (l *leading) deliver() {
	n := l.node
	if !n.cfg.Exchange.Deliver(func() {
		if n.waiter.Enter() {
			n.Devices.gather(n.waiter.Fed(n.Devices.ready[:0]))
			n.iterate()
			l.leave()
		}
	}) {
		n.waiter.Ring()
	}
}

// leave gives up the stack, and rings if work is left. Before that it serves goroutines that have
// rung. Most often that is a peer's loop with the answer to the packet that was just sent.
func (l *leading) leave() {
	n := l.node
	l.sleepUntil = n.Time.now().Add(leadSleep)
	for range mostServed {
		if len(n.Devices.again) > 0 || !l.wakesInTime() || n.closing.Load() {
			break // the loop's goroutine does the remaining work
		}
		if n.waiter.Yield() {
			if l.readable.Load() && l.leader.Load() != nil {
				l.slot.Call()
			}
			return
		}
		n.readArrived()
		n.iterate()
	}
	n.waiter.Leave()
}

// wakesInTime reports whether the loop's goroutine wakes up before the next deadline. Owner only.
func (l *leading) wakesInTime() bool {
	due := l.node.due()
	return due == clock.Never || l.wakeAt != clock.Never && l.wakeAt <= due
}

// lead waits for packets in place of the loop's goroutine until d can read, for at most leadTime,
// and reports whether d can read. It does not wait if another reader leads or has just been woken
// up. It also does not wait if d has not received anything yet, because for short connections the
// loop alone is faster.
func (l *leading) lead(d *duplex) bool {
	n := l.node
	if l.slot == nil || d.in.ring.Head() == 0 ||
		l.leader.Load() != nil || !l.slot.Free() || !n.waiter.Enter() {
		return false
	}
	if l.leader.Load() != nil {
		l.leave()
		return false
	}
	for start := n.Time.now(); !l.woke && len(n.Devices.again) == 0 && l.wakesInTime(); {
		l.readable.Store(false)
		l.leader.Store(d) // markReadable now finds d; d.waits detects data that arrived earlier
		left := leadTime - n.Time.now().Sub(start)
		if left <= 0 || !d.waits() {
			break
		}
		ready, owner := l.slot.Lead(left, n.Devices.ready[:0])
		l.leader.Store(nil)
		if !owner {
			return !d.waits()
		}
		n.Devices.gather(ready)
		n.iterate()
	}
	l.leader.Store(nil)
	l.leave()
	return !d.waits()
}

// markReadable does nothing unless d leads. It records that d can read; the owner ends d's wait
// when it gives up the stack. Owner only.
func (l *leading) markReadable(d *duplex) {
	if l.leader.Load() == d {
		l.readable.Store(true)
	}
}

// wakeLeader ends d's wait if d leads. Any goroutine may call it.
func (l *leading) wakeLeader(d *duplex) {
	if l.leader.Load() == d {
		l.readable.Store(true)
		l.slot.Call()
	}
}

// nextWake returns when the loop's goroutine, which is about to wait, must wake up if nothing
// arrives. Before that it ends the wait of a leading reader that can read.
func (l *leading) nextWake() clock.Time {
	if l.readable.Load() && l.leader.Load() != nil {
		l.slot.Dismiss()
	}
	l.wakeAt = l.node.due()
	if now := l.node.Time.now(); now < l.sleepUntil {
		l.wakeAt = clock.Earliest(l.wakeAt, now.Add(leadSleep))
	}
	return l.wakeAt
}
