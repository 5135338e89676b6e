// Package portforward connects ports of this machine with ports of a node's network, in both
// directions.
package portforward

import (
	"container/list"
	"context"
	"net"
	"sync"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
)

// Bounds of doors.
const (
	maxDoors    = 256
	maxFlows    = 4096             // of one door at a time; see enter for what others do
	patience    = 10 * time.Second // for a service to answer
	sayAgain    = time.Second      // between two announcements of one problem at one door
	acceptAgain = 100 * time.Millisecond
)

// Door is a way between this machine's network and the virtual one.
type Door struct {
	set   *Set
	state control.Door
	addr  net.Addr
	ends  context.Context //nolint:containedctx // the life of the door
	end   context.CancelFunc
	// goesOn is the life of its flows: those that are being opened outlive a door that is closed.
	goesOn context.Context //nolint:containedctx // as ends
	stop   context.CancelFunc
	room   chan struct{} // a token for each flow
	shut   func()        // stops listening

	mu      sync.Mutex
	cuts    map[*flow]func() // what ends a flow at once
	fresh   list.List        // of *flow: those of datagrams that are not confirmed, oldest first
	closing bool
	cutting bool      // flows end as they begin
	said    time.Time // when state.Problem was announced
}

// flow is one connection, or one flow of datagrams, through a door.
type flow struct {
	door *Door
	name string // who came, for announcements
	// fresh is its place in the door's list of that name; nil: it is not there.
	fresh *list.Element
}

func (s *Set) newDoor(kind control.DoorKind, network, from, to string) *Door {
	d := &Door{
		set: s, room: make(chan struct{}, maxFlows), cuts: map[*flow]func(){},
		state: control.Door{Kind: kind, Network: network, From: from, To: to},
	}
	d.ends, d.end = context.WithCancel(context.Background())
	d.goesOn, d.stop = context.WithCancel(context.Background())
	return d
}

// Addr is where the door listens.
func (d *Door) Addr() net.Addr { return d.addr }

// State is the door as it is.
func (d *Door) State() control.Door {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.state
	s.Open, s.Closing = len(d.cuts), d.closing
	return s
}

// Close closes the door; connections under way go on until they end, or, cut, are reset. Flows of
// datagrams, which have no end of their own, end with the door.
func (d *Door) Close(cut bool) error {
	d.mu.Lock()
	again := d.closing
	d.closing = true
	d.mu.Unlock()
	if !again {
		d.end()
		d.shut()
	}
	if cut {
		d.cut()
	}
	d.forget()
	if again && !cut {
		return net.ErrClosed
	}
	return nil
}

// cut ends every flow at once.
func (d *Door) cut() {
	d.mu.Lock()
	d.cutting = true
	d.stop()
	cuts := make([]func(), 0, len(d.cuts))
	for _, f := range d.cuts {
		cuts = append(cuts, f)
	}
	d.mu.Unlock()
	for _, f := range cuts {
		f()
	}
}

// forget strikes a door from the books that is closed and has no flows.
func (d *Door) forget() {
	d.mu.Lock()
	gone := d.closing && len(d.cuts) == 0
	d.mu.Unlock()
	if gone {
		d.set.mu.Lock()
		delete(d.set.list, d.state.ID)
		d.set.mu.Unlock()
	}
}

// enter notes a flow that begins, once there is room for it; false: the door is closed. A full door
// ends its oldest flow of datagrams that is not confirmed; without such a flow enter waits.
func (d *Door) enter(name string, cut func()) (*flow, bool) {
	select {
	case d.room <- struct{}{}:
	default:
		d.evict()
		select {
		case d.room <- struct{}{}:
		case <-d.ends.Done():
			return nil, false
		}
	}
	f := &flow{door: d, name: name}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closing {
		<-d.room
		return nil, false
	}
	d.cuts[f] = cut
	d.state.Opened++
	d.set.flows.Add(1) // the door's own goroutine has one yet
	return f, true
}

// mayGo says that the flow, which is one of datagrams, may end to make room until it is confirmed:
// its first datagram may be one of a flood with forged sources.
func (f *flow) mayGo() {
	d := f.door
	d.mu.Lock()
	defer d.mu.Unlock()
	f.fresh = d.fresh.PushBack(f)
}

// confirm notes that the flow's client has sent again after an answer, so it is there.
func (f *flow) confirm() {
	d := f.door
	d.mu.Lock()
	defer d.mu.Unlock()
	d.settle(f)
}

// settle takes a flow out of the list of those that are not confirmed. The caller has d.mu.
func (d *Door) settle(f *flow) {
	if f.fresh != nil {
		d.fresh.Remove(f.fresh)
		f.fresh = nil
	}
}

// evict ends the oldest flow that is not confirmed.
func (d *Door) evict() {
	d.mu.Lock()
	oldest := d.fresh.Front()
	if oldest == nil {
		d.mu.Unlock()
		return
	}
	f := oldest.Value.(*flow)
	d.settle(f)
	cut := d.cuts[f]
	d.mu.Unlock()
	cut()
}

// crowded reports whether there is no room, and no flow that could make some.
func (d *Door) crowded() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.room) == cap(d.room) && d.fresh.Len() == 0
}

// onCut is what ends the flow from now on.
func (f *flow) onCut(cut func()) {
	d := f.door
	d.mu.Lock()
	d.cuts[f] = cut
	late := d.cutting
	d.mu.Unlock()
	if late {
		cut()
	}
}

// pause waits before an accept that failed is tried again; false: the door was closed.
func (d *Door) pause() bool {
	again := time.NewTimer(acceptAgain)
	defer again.Stop()
	select {
	case <-again.C:
		return true
	case <-d.ends.Done():
		return false
	}
}

// leave notes that a flow has ended; a reason is told.
func (f *flow) leave(reason error) {
	d := f.door
	defer d.set.flows.Done()
	if reason != nil {
		d.failed(f.name, reason) // who sees that it is gone sees why
	}
	d.mu.Lock()
	delete(d.cuts, f)
	d.settle(f)
	d.mu.Unlock()
	<-d.room
	d.forget()
}

// count adds bytes that went through.
func (d *Door) count(in bool, k int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if in {
		d.state.In += uint64(k)
	} else {
		d.state.Out += uint64(k)
	}
}

// failed notes a problem, and announces it unless it was just announced.
func (d *Door) failed(who string, reason error) {
	text := control.Reason(reason).Error()
	d.mu.Lock()
	d.state.Failed++
	now := time.Now()
	loud := d.state.Problem != text || now.Sub(d.said) >= sayAgain
	d.state.Problem = text
	if loud {
		d.said = now
	}
	d.mu.Unlock()
	if loud {
		d.set.node.Watchers.Printf(
			"%s %s -> %s: %s: %s", d.state.Kind, d.state.From, d.state.To, who, text)
	}
}
