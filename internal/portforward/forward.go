// Package portforward forwards ports between this machine and a node's virtual network, in both
// directions.
package portforward

import (
	"container/list"
	"context"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
)

// These are limits of a port forward.
const (
	maxForwards      = 256
	maxFlows         = 4096             // flows of one port forward
	dialTimeout      = 10 * time.Second // limit for a service to answer
	announceInterval = time.Second      // minimum time between two reports of the same failure
	acceptRetry      = 100 * time.Millisecond
)

// Forward is one port forward, or the splice of an address.
type Forward struct {
	set           *Set
	state         control.Door
	addr          net.Addr
	listening     context.Context //nolint:containedctx // as long as it listens
	stopListening context.CancelFunc
	// flowing ends when the flows are cut. Flows that are being opened outlive Close.
	flowing   context.Context //nolint:containedctx // as listening
	stopFlows context.CancelFunc
	room      chan struct{} // holds one token for each flow
	shut      func()        // stops listening

	mu          sync.Mutex
	cuts        map[*flow]func() // functions that end each flow at once
	unconfirmed list.List        // UDP flows without confirmation, as *flow, oldest first
	closing     bool
	cutting     bool      // new flows end at once
	announced   time.Time // time at which state.Problem was announced
}

// flow is a TCP connection, or a flow of UDP datagrams, through a port forward.
type flow struct {
	forward *Forward
	name    string // name of the client, for announcements
	// unconfirmed is the flow's element in Forward.unconfirmed; nil: the flow is not in that list.
	unconfirmed *list.Element
}

func (s *Set) newForward(kind control.DoorKind, network, from, to string) *Forward {
	fw := &Forward{
		set: s, room: make(chan struct{}, maxFlows), cuts: map[*flow]func(){},
		state: control.Door{Kind: kind, Network: network, From: from, To: to},
	}
	fw.listening, fw.stopListening = context.WithCancel(context.Background())
	fw.flowing, fw.stopFlows = context.WithCancel(context.Background())
	return fw
}

// Addr returns the listening address.
func (fw *Forward) Addr() net.Addr { return fw.addr }

// State returns a snapshot.
func (fw *Forward) State() control.Door {
	fw.mu.Lock()
	defer fw.mu.Unlock()
	s := fw.state
	s.Open, s.Closing = len(fw.cuts), fw.closing
	return s
}

// Close stops listening. Open connections stay open, unless cut resets them. UDP flows end.
func (fw *Forward) Close(cut bool) error {
	fw.mu.Lock()
	again := fw.closing
	fw.closing = true
	fw.mu.Unlock()
	if !again {
		fw.stopListening()
		fw.shut()
	}
	if cut {
		fw.cut()
	}
	fw.forget()
	if again && !cut {
		return net.ErrClosed
	}
	return nil
}

// cut ends all flows at once.
func (fw *Forward) cut() {
	fw.mu.Lock()
	fw.cutting = true
	fw.stopFlows()
	cuts := slices.Collect(maps.Values(fw.cuts))
	fw.mu.Unlock()
	for _, f := range cuts {
		f()
	}
}

// forget removes the forward from the set if it is closed and has no flows.
func (fw *Forward) forget() {
	fw.mu.Lock()
	gone := fw.closing && len(fw.cuts) == 0
	fw.mu.Unlock()
	if gone {
		fw.set.mu.Lock()
		delete(fw.set.list, fw.state.ID)
		fw.set.mu.Unlock()
	}
}

// enter counts a new flow, and returns false if the forward is closed. If maxFlows are open, it
// ends the oldest UDP flow that is not confirmed. If every UDP flow is confirmed, it waits until a
// flow ends.
func (fw *Forward) enter(name string, cut func()) (*flow, bool) {
	select {
	case fw.room <- struct{}{}:
	default:
		fw.evict()
		select {
		case fw.room <- struct{}{}:
		case <-fw.listening.Done():
			return nil, false
		}
	}
	f := &flow{forward: fw, name: name}
	fw.mu.Lock()
	defer fw.mu.Unlock()
	if fw.closing {
		<-fw.room
		return nil, false
	}
	fw.cuts[f] = cut
	fw.state.Opened++
	fw.set.flows.Add(1) // the counter is not 0, because it includes the accepting goroutine
	return f, true
}

// markEvictable allows evict to end this UDP flow until the flow is confirmed. Its first datagram
// may be part of a flood with forged source addresses.
func (f *flow) markEvictable() {
	fw := f.forward
	fw.mu.Lock()
	defer fw.mu.Unlock()
	f.unconfirmed = fw.unconfirmed.PushBack(f)
}

// confirm marks the flow as one with a real client: the client has sent another datagram after an
// answer.
func (f *flow) confirm() {
	fw := f.forward
	fw.mu.Lock()
	defer fw.mu.Unlock()
	fw.settle(f)
}

// settle removes a flow from the list of unconfirmed flows. The caller holds fw.mu.
func (fw *Forward) settle(f *flow) {
	if f.unconfirmed != nil {
		fw.unconfirmed.Remove(f.unconfirmed)
		f.unconfirmed = nil
	}
}

// evict ends the oldest unconfirmed flow.
func (fw *Forward) evict() {
	fw.mu.Lock()
	oldest := fw.unconfirmed.Front()
	if oldest == nil {
		fw.mu.Unlock()
		return
	}
	f := oldest.Value.(*flow)
	fw.settle(f)
	cut := fw.cuts[f]
	fw.mu.Unlock()
	cut()
}

// full reports whether maxFlows are open and evict could end none of them.
func (fw *Forward) full() bool {
	fw.mu.Lock()
	defer fw.mu.Unlock()
	return len(fw.room) == cap(fw.room) && fw.unconfirmed.Len() == 0
}

// onCut replaces the function that ends the flow.
func (f *flow) onCut(cut func()) {
	fw := f.forward
	fw.mu.Lock()
	fw.cuts[f] = cut
	late := fw.cutting
	fw.mu.Unlock()
	if late {
		cut()
	}
}

// pause waits before Accept is called again after an error. It returns false if the forward is
// closed.
func (fw *Forward) pause() bool {
	select {
	case <-time.After(acceptRetry):
		return true
	case <-fw.listening.Done():
		return false
	}
}

// leave removes a flow that has ended, and reports the reason if it is not nil.
func (f *flow) leave(reason error) {
	fw := f.forward
	defer fw.set.flows.Done()
	if reason != nil {
		fw.failed(f.name, reason) // reported before the flow disappears from the snapshot
	}
	fw.mu.Lock()
	delete(fw.cuts, f)
	fw.settle(f)
	fw.mu.Unlock()
	<-fw.room
	fw.forget()
}

func (fw *Forward) count(in bool, k int) {
	fw.mu.Lock()
	defer fw.mu.Unlock()
	if in {
		fw.state.In += uint64(k)
	} else {
		fw.state.Out += uint64(k)
	}
}

// failed counts a failure. It announces the reason, unless the same one was announced less than
// announceInterval ago.
func (fw *Forward) failed(who string, reason error) {
	text := control.Reason(reason).Error()
	fw.mu.Lock()
	fw.state.Failed++
	now := time.Now()
	loud := fw.state.Problem != text || now.Sub(fw.announced) >= announceInterval
	fw.state.Problem = text
	if loud {
		fw.announced = now
	}
	fw.mu.Unlock()
	if loud {
		fw.set.node.Watchers.Printf(
			"%s %s -> %s: %s: %s", fw.state.Kind, fw.state.From, fw.state.To, who, text)
	}
}
