package node

import (
	"net/netip"
	"slices"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// These limits of one iteration give both packets and requests their share.
const (
	framesPerRead        = 16
	readsPerIteration    = 4
	requestsPerIteration = 256
)

// loop runs the node until it is closed. An iteration does this:
//
//	wait      until a device is ready, the doorbell rings, or a deadline is due
//	read      a batch, give it to stack.Input, send what that causes
//	serve     applications and operators
//	advance   the stack's timers
//	drain     send batches until there are no more or the links are full
//	tell      applications what happened to their sockets
func (n *Node) loop() {
	defer close(n.stopped)
	for !n.closing.Load() {
		n.iterate()
		n.wait()
	}
	if !n.crash() {
		n.linger()
	}
	n.shutdown()
}

// iterate runs an iteration without its wait.
func (n *Node) iterate() {
	n.leading.woke = false
	n.Devices.readReady()
	past := n.Time.now()
	now := past
	if n.stack.Deadline().Due(past) {
		n.readArrived()    // answers the doorbell, so it must come before serveRequests
		now = n.Time.now() // an answer must not be older than the packet that was just read
	}
	n.serveRequests(now)
	n.TCP.serve(now)
	if n.stack.Deadline().Due(past) {
		n.stack.Advance(now)
	}
	n.Devices.Drain(now)
	if n.Neighbors.check(now) {
		n.Devices.Drain(now)
	}
	n.Devices.takeDown(now)
	n.notifyAll(now)
	if n.TCP.relays.pending() {
		n.Devices.Drain(now)
		n.notifyAll(now)
	}
	n.Taps.endIteration(now)
}

// wait sleeps until there is something to do.
func (n *Node) wait() {
	wakeAt := n.leading.nextWake()
	now := n.Time.now()
	if n.leading.slot != nil && !n.leading.wokeAny && now < n.leading.yieldAt {
		n.leading.slot.Quiet()
	} else {
		n.leading.yieldAt = now.Add(yieldAfter)
	}
	n.leading.wokeAny = false
	timeout := time.Duration(-1)
	if len(n.Devices.again) > 0 {
		timeout = 0
	} else if wakeAt != clock.Never {
		timeout = max(0, wakeAt.Sub(now))
	}
	ready, err := n.waiter.Wait(timeout, n.Devices.ready[:0])
	if err != nil {
		n.Watchers.Printf("node: waiting for packets: %v", err)
	}
	n.Devices.gather(ready)
}

// readArrived reads the packets that have arrived so far. A deadline may have passed only because
// this process waited for a CPU. The awaited packet is then already in a socket, and must be read
// before the timer expires.
func (n *Node) readArrived() {
	ready, err := n.waiter.Wait(0, n.Devices.ready[:0])
	if err != nil {
		return // wait reports it
	}
	n.Devices.gather(ready)
	n.Devices.readReady()
}

// due returns when the loop must wake up if nothing arrives.
func (n *Node) due() clock.Time {
	return clock.Earliest(n.stack.Deadline(), n.Taps.due(), n.Devices.deliverAt(), n.Neighbors.next)
}

// serveRequests runs the posted functions.
func (n *Node) serveRequests(now clock.Time) {
	for range requestsPerIteration {
		f, ok := n.requests.Shift()
		if !ok {
			return
		}
		f(now)
		n.leading.wokeAny = true
	}
	n.waiter.Ring() // there may be more functions
}

// notifyAll reports to applications and watchers what happened in this iteration.
func (n *Node) notifyAll(now clock.Time) {
	n.TCP.notify(now)
	n.Packets.notify(now)
	n.followers = slices.DeleteFunc(n.followers, func(f func() bool) bool { return f() })
	n.Forwarders.dispatch()
	l := &n.leading
	l.wokeAny = l.wokeAny || l.woke ||
		len(n.followers)+len(n.Taps.observers)+len(n.Packets.raws) > 0
	for _, e := range n.stack.Events() {
		if a := e.Address; a != nil && a.Gone {
			for _, b := range n.BoundTo(map[netip.Addr]bool{a.Addr.Addr(): true}) {
				b.End(now)
			}
		}
		n.Watchers.publishStack(e, n.Network())
	}
}
