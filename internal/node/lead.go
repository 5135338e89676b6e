package node

import (
	"sync/atomic"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// leading lets applications' goroutines run iterations of the loop (Leader/Followers). Between a
// request and its reply, most of the cost is threads that wake each other: a datagram wakes the
// loop, the loop a reader, and the reader's answer the loop again.
//
// The protocol:
//   - The waiter's doorbell names the stack's owner, of which there is one at most: the loop's
//     goroutine outside Wait, or a goroutine that has entered.
//   - A writer of at most smallWrite bytes enters and runs an iteration (lend). A reader enters
//     and waits in the waiter's second seat (lead) until it can read, for leadTime at most.
//   - One reader leads at a time. The loop's goroutine waits in its own seat meanwhile. A packet
//     wakes one of the two, and the loop's goroutine keeps the time.
//   - leave gives the stack up. It first serves goroutines that rang meanwhile, twice at most. If
//     deadlines or reads are left that the loop's goroutine does not wake up for, leave rings.
//   - If an owner has news for the reader that leads (newsFor), it ends that reader's wait when it
//     gives up the stack itself.
type leading struct {
	node   *Node
	second second     // a waiter with a second seat; nil: nothing leads
	lulled clock.Time // until when the loop's goroutine sleeps for a lull at most; the owner's
	alarm  clock.Time // when the loop's goroutine wakes; the owner's
	woke   bool       // the last iteration woke an application; the owner's

	leader atomic.Pointer[duplex] // what the second seat waits for; nil: it is empty
	called atomic.Bool            // there is news for leader
}

const (
	// leadTime is how long a reader leads. Goroutines that it made ready just before may have to
	// wait for as long, where all other processors are busy.
	leadTime = 200 * time.Microsecond
	// lull is how long the loop's goroutine sleeps at most while others run iterations: less than
	// most deadlines are away, so that it need not be woken for one.
	lull = 5 * time.Millisecond
	// smallWrite is how many bytes a writer sends itself. To send more takes longer than to wake
	// another processor, which sends while the writer continues.
	smallWrite = 4 << 10
	// mostServed bounds how often leave serves others.
	mostServed = 2
)

// lend runs an iteration of the loop, unless another goroutine does, which then looks again.
func (l *leading) lend() {
	if l.node.waiter.Enter() {
		l.node.turn()
		l.leave()
	}
}

// leave gives up the stack, and rings if there is work left. It first serves goroutines that rang
// meanwhile: most often the peer's loop with the answer to the packet that was just sent.
func (l *leading) leave() {
	n := l.node
	l.lulled = n.Time.now().Add(lull)
	for range mostServed {
		if len(n.Devices.again) > 0 || !l.timely() || n.closing.Load() {
			break // the loop's goroutine has to know
		}
		if n.waiter.Yield() {
			if l.called.Load() && l.leader.Load() != nil {
				l.second.Call()
			}
			return
		}
		n.look()
		n.turn()
	}
	n.waiter.Leave()
}

// timely reports whether the loop's goroutine wakes before the next deadline. The owner's.
func (l *leading) timely() bool {
	due := l.node.due()
	return due == clock.Never || l.alarm != clock.Never && l.alarm <= due
}

// lead waits for packets in the loop's place until d does not wait any more, or leadTime is over,
// and reports which. It does not wait while another leads or was just woken, nor for the first data
// of a connection: the loop alone serves short connections better.
func (l *leading) lead(d *duplex) bool {
	n := l.node
	if l.second == nil || d.in.ring.Head() == 0 ||
		l.leader.Load() != nil || !l.second.Free() || !n.waiter.Enter() {
		return false
	}
	if l.leader.Load() != nil {
		l.leave()
		return false
	}
	for start := n.Time.now(); !l.woke && len(n.Devices.again) == 0 && l.timely(); {
		l.called.Store(false)
		l.leader.Store(d) // newsFor sees this, or d.waits sees the news
		left := leadTime - n.Time.now().Sub(start)
		if left <= 0 || !d.waits() {
			break
		}
		ready, owner := l.second.Lead(left, n.Devices.ready[:0])
		l.leader.Store(nil)
		if !owner {
			return !d.waits()
		}
		n.Devices.gather(ready)
		n.turn()
	}
	l.leader.Store(nil)
	l.leave()
	return !d.waits()
}

// newsFor notes that there is news for d: the owner calls d when it leaves. The owner's.
func (l *leading) newsFor(d *duplex) {
	if l.leader.Load() == d {
		l.called.Store(true)
	}
}

// call ends d's wait if it leads. Any goroutine may call it.
func (l *leading) call(d *duplex) {
	if l.leader.Load() == d {
		l.called.Store(true)
		l.second.Call()
	}
}

// alarmAt is when the loop's goroutine, which is about to wait, wakes if nothing arrives. A reader
// that leads and has news is dismissed first.
func (l *leading) alarmAt() clock.Time {
	if l.called.Load() && l.leader.Load() != nil {
		l.second.Dismiss()
	}
	l.alarm = l.node.due()
	if now := l.node.Time.now(); now < l.lulled {
		l.alarm = clock.Earliest(l.alarm, now.Add(lull))
	}
	return l.alarm
}
