package node

import (
	"errors"
	"slices"
	"time"

	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/link"
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

// gather marks the devices for the next iteration to read: those that are ready, and those that had
// more to read in the last iteration.
func (ds *Devices) gather(ready []int) {
	for _, token := range ds.again {
		ready = appendToken(ready, token)
	}
	ds.again = ds.again[:0]
	ds.ready = ds.addDue(ready)
}

func appendToken(tokens []int, token int) []int {
	if slices.Contains(tokens, token) {
		return tokens
	}
	return append(tokens, token)
}

// readReady reads the devices that are ready.
func (ds *Devices) readReady() {
	for _, token := range ds.ready {
		ds.read(token)
	}
	ds.ready = ds.ready[:0]
}

// read reads one device, a batch at a time.
func (ds *Devices) read(token int) {
	dev := ds.list[token]
	if dev.Pending() > 0 {
		if _, err := dev.WriteBatch(nil); err != nil { // unsent packets stay queued
			ds.failed(token, err)
		}
	}
	for range readsPerIteration {
		got, err := dev.ReadBatch(ds.frames)
		if err != nil && !errors.Is(err, link.ErrWouldBlock) {
			ds.failed(token, err)
		}
		if got == 0 {
			return
		}
		now := ds.node.Time.now() // one timestamp for the batch; RTTs are measured with it
		for i := range ds.frames[:got] {
			f := &ds.frames[i]
			ds.packets = f.Packets(ds.packets[:0])
			ds.node.stack.Input(now, f.Iface, f.Checked, ds.packets)
		}
		ds.Drain(now) // before the frames' memory is reused
		if got < len(ds.frames) {
			return
		}
	}
	ds.again = appendToken(ds.again, token)
}

// Drain sends what the stack has to send. Loop only.
func (ds *Devices) Drain(now clock.Time) {
	for {
		for i, d := range ds.byIface {
			// The interfaces of one socket share its room.
			ds.room[i] = ds.list[d].Room() / ds.sharing[d]
		}
		more := ds.node.stack.Output(now, ds.room, ds.batch)
		ds.write(ds.batch.Trains())
		ds.batch.Reset()
		if !more {
			break
		}
	}
	for token, d := range ds.list {
		if want := d.Pending() > 0; want != ds.blocked[token] {
			ds.blocked[token] = want
			ds.node.waiter.WantWrite(d.FD(), want)
		}
	}
}

// write writes each run of trains for the same device.
func (ds *Devices) write(trains []buffer.Train) {
	for len(trains) > 0 {
		d := ds.byIface[trains[0].Iface]
		run := 1
		for run < len(trains) && ds.byIface[trains[run].Iface] == d {
			run++
		}
		if _, err := ds.list[d].WriteBatch(trains[:run]); err != nil {
			ds.failed(d, err)
		}
		trains = trains[run:]
	}
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

// serve does what applications asked of their connections.
func (t *TCP) serve(now clock.Time) {
	c := t.touched.Swap(nil)
	for c != nil {
		next := c.next
		c.next = nil
		c.serve(now, c.todo.Swap(0)) // push may add c again from here on
		c = next
	}
}

// push adds a connection to those with something to do.
func (t *TCP) push(c *Conn) {
	for {
		head := t.touched.Load()
		c.next = head
		if t.touched.CompareAndSwap(head, c) {
			return
		}
	}
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

// tell reports events to connections and listeners.
func (t *TCP) tell() {
	for n := t.node; ; {
		tc, tl, ev, ok := n.stack.TCP().NextEvent()
		if !ok {
			return
		}
		if tl != nil {
			n.leading.woke = true
			if l, ok := t.listeners[tl]; ok {
				l.refill()
				continue
			}
		} else if c, ok := tc.Owner.(*Conn); ok {
			n.leading.woke = c.onEvent(ev) || n.leading.woke
			continue
		}
		n.vir.changed()
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
