package node

import (
	"slices"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// Limits of one iteration, so that packets and requests both get their share.
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
	n.linger()
	n.shutdown()
}

// iterate runs an iteration without its wait.
func (n *Node) iterate() {
	n.leading.woke = false
	n.Devices.readReady()
	past := n.Time.now()
	now := past
	if n.stack.Deadline().Due(past) {
		n.look()           // this answers the doorbell: look before what was posted is served
		now = n.Time.now() // a packet that was just read must not be newer than the answer to it
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
	n.tellAll(now)
	n.Taps.settle(now)
}

// wait sleeps until there is something to do.
func (n *Node) wait() {
	timeout := time.Duration(-1)
	alarm := n.leading.alarmAt()
	if len(n.Devices.again) > 0 {
		timeout = 0
	} else if alarm != clock.Never {
		timeout = max(0, alarm.Sub(n.Time.now()))
	}
	ready, err := n.waiter.Wait(timeout, n.Devices.ready[:0])
	if err != nil {
		n.Watchers.Printf("node: waiting for packets: %v", err)
	}
	n.Devices.gather(ready)
}

// look reads what has arrived by now. A deadline may have passed only because this process waited
// for a CPU. The awaited packet is then already in a socket, and must be read before the timer
// expires.
func (n *Node) look() {
	ready, err := n.waiter.Wait(0, n.Devices.ready[:0])
	if err != nil {
		return // wait reports it
	}
	n.Devices.gather(ready)
	n.Devices.readReady()
}

// due returns when the loop has something to do even if nothing arrives.
func (n *Node) due() clock.Time {
	return clock.Earliest(n.stack.Deadline(), n.Taps.due(), n.Devices.held(), n.Neighbors.next)
}

// serveRequests runs the posted functions.
func (n *Node) serveRequests(now clock.Time) {
	for range requestsPerIteration {
		f, ok := n.requests.Shift()
		if !ok {
			return
		}
		f(now)
	}
	n.waiter.Ring() // there may be more
}

// tellAll reports to applications and watchers what happened in this iteration.
func (n *Node) tellAll(now clock.Time) {
	n.TCP.tell()
	n.Packets.tell(now)
	n.followers = slices.DeleteFunc(n.followers, func(f func() bool) bool { return f() })
	n.Forwarders.tell()
	for _, e := range n.stack.Events() {
		n.Watchers.publishStack(e, n.Network())
	}
}

// onEvent reports an event to the application, and returns whether it woke a goroutine.
func (c *Conn) onEvent(ev tcp.Event) (woke bool) {
	if err := c.tc.Err(); err != nil && c.failure.Load() == nil {
		translated := NetError(err)
		c.failure.Store(&translated)
		ev |= tcp.Readable | tcp.Writable
	}
	if c.tc.ReadDone() {
		c.eof.Store(true)
		ev |= tcp.Readable
	}
	if ev&(tcp.Established|tcp.Closed) != 0 {
		c.established.pass()
	}
	if ev&tcp.Readable != 0 {
		woke = c.in.parked.Load()
		c.in.ready.ring()
		c.node.leading.newsFor(&c.duplex)
	}
	if ev&tcp.Writable != 0 {
		woke = woke || c.out.parked.Load()
		c.out.ready.ring()
	}
	if s := c.tc.State(); !c.finAcked && (s == tcp.StateFinWait2 || s == tcp.StateTimeWait ||
		s == tcp.StateClosed && c.tc.Err() == nil && c.out.closed.Load()) {
		c.finAcked = true
		c.delivered.pass()
	}
	if ev&tcp.Closed != 0 && !c.gone {
		c.gone = true
		if c.tc.Err() == nil {
			c.eof.Store(true)
		}
		c.in.ready.ring()
		c.out.ready.ring()
		c.node.leading.newsFor(&c.duplex)
		c.ended.pass()
		c.in.by.stop()
		c.out.by.stop()
		c.endProbe()
		c.node.Taps.flights.end(c)
		c.node.Taps.endTraces(c.tc)
		c.node.TCP.release(c)
	}
	c.announceEnd()
	return woke
}
