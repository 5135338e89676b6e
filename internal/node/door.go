package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
)

// Bounds of doors.
const (
	maxDoors     = 256
	maxDoorFlows = 4096             // of one door at a time; TCP's others wait in the backlog
	doorPatience = 10 * time.Second // for a service to answer
	sayAgain     = time.Second      // between two announcements of one problem at one door
	acceptAgain  = 100 * time.Millisecond
)

// doors are the ways between this machine's network and the virtual one. A door has a goroutine
// that accepts, and each flow through it two that copy.
type doors struct {
	mu    sync.Mutex
	list  map[int]*Door
	next  int
	over  bool // the node ends: no more
	flows sync.WaitGroup
}

// Door is a way between this machine's network and the virtual one.
type Door struct {
	node  *Node
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
	cuts    map[*doorFlow]func() // what ends a flow at once
	closing bool
	cutting bool      // flows end as they begin
	said    time.Time // when state.Problem was announced
}

// doorFlow is one connection, or one flow of datagrams, through a door.
type doorFlow struct {
	door *Door
	name string // who came, for announcements
}

func newDoor(n *Node, kind control.DoorKind, network, from, to string) *Door {
	d := &Door{
		node: n, room: make(chan struct{}, maxDoorFlows), cuts: map[*doorFlow]func(){},
		state: control.Door{Kind: kind, Network: network, From: from, To: to},
	}
	d.ends, d.end = context.WithCancel(context.Background())
	d.goesOn, d.stop = context.WithCancel(context.Background())
	return d
}

// admit enters a door whose listener is open into the node's books, and has run accept what comes.
func (n *Node) admit(d *Door, shut func(), run ...func()) error {
	d.shut = shut
	n.doors.mu.Lock()
	defer n.doors.mu.Unlock()
	var err error
	switch {
	case n.doors.over:
		err = net.ErrClosed
	case len(n.doors.list) >= maxDoors:
		err = fmt.Errorf("%d doors are open: %w: `doors close` some", maxDoors, control.ErrNoPorts)
	}
	if err != nil {
		d.end()
		shut()
		return err
	}
	if n.doors.list == nil {
		n.doors.list = map[int]*Door{}
	}
	d.state.ID = n.doors.next
	n.doors.next++
	n.doors.list[d.state.ID] = d
	for _, f := range run {
		n.doors.flows.Go(f)
	}
	return nil
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

// Close closes the door; flows under way go on until they end, or, cut, are reset.
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
		d.node.doors.mu.Lock()
		delete(d.node.doors.list, d.state.ID)
		d.node.doors.mu.Unlock()
	}
}

// enter notes a flow that begins, once there is room for it; false: the door is closed.
func (d *Door) enter(name string, cut func()) (*doorFlow, bool) {
	select {
	case d.room <- struct{}{}:
	case <-d.ends.Done():
		return nil, false
	}
	f := &doorFlow{door: d, name: name}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closing {
		<-d.room
		return nil, false
	}
	d.cuts[f] = cut
	d.state.Opened++
	d.node.doors.flows.Add(1) // the door's own goroutine has one yet
	return f, true
}

// onCut is what ends the flow from now on.
func (f *doorFlow) onCut(cut func()) {
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
func (f *doorFlow) leave(reason error) {
	d := f.door
	defer d.node.doors.flows.Done()
	d.mu.Lock()
	delete(d.cuts, f)
	d.mu.Unlock()
	<-d.room
	if reason != nil {
		d.failed(f.name, reason)
	}
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
	text := inner(reason).Error()
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
		d.node.say("%s %s -> %s: %s: %s", d.state.Kind, d.state.From, d.state.To, who, text)
	}
}

// doorList is the snapshot of all doors.
func (n *Node) doorList() []control.Door {
	n.doors.mu.Lock()
	all := make([]*Door, 0, len(n.doors.list))
	for _, d := range n.doors.list {
		all = append(all, d)
	}
	n.doors.mu.Unlock()
	list := make([]control.Door, 0, len(all))
	for _, d := range all {
		list = append(list, d.State())
	}
	slices.SortFunc(list, func(a, b control.Door) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// closeDoors ends all doors with the node: what is under way is reset at this machine's end.
func (n *Node) closeDoors() {
	n.doors.mu.Lock()
	n.doors.over = true
	all := make([]*Door, 0, len(n.doors.list))
	for _, d := range n.doors.list {
		all = append(all, d)
	}
	n.doors.mu.Unlock()
	for _, d := range all {
		_ = d.Close(true) // it may be closed already
	}
	n.doors.flows.Wait()
}

// outsideRequest serves the requests about what is outside of the virtual network.
func (n *Node) outsideRequest(req any) (any, error) {
	var d *Door
	var err error
	switch r := req.(type) {
	case control.Reload:
		return n.reloadFile(r)
	case control.Doors:
		return n.doorList(), nil
	case control.CloseDoor:
		return control.Nothing{}, n.closeDoor(r)
	case control.Publish:
		d, err = n.Publish(r)
	case control.Expose:
		d, err = n.Expose(r)
	case control.Splice:
		d, err = n.Splice(r)
	}
	if err != nil {
		return control.Door{}, controlError(err)
	}
	return d.State(), nil
}

func (n *Node) closeDoor(r control.CloseDoor) error {
	n.doors.mu.Lock()
	d := n.doors.list[r.ID]
	n.doors.mu.Unlock()
	if d == nil {
		return fmt.Errorf("%d: %w; `doors` lists them", r.ID, control.ErrNoSuchDoor)
	}
	if d.Close(r.Cut) != nil {
		return fmt.Errorf("door %d: %w, and %d flows go on; --cut ends them", r.ID,
			control.ErrClosed, d.State().Open)
	}
	return nil
}

// machineError gives an error of this machine's network its name among control's.
func machineError(err error) error {
	err = inner(err)
	var names []error
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		names = append(names, control.ErrPortInUse)
	case errors.Is(err, syscall.EACCES):
		return &mapped{
			error: errors.New("permission denied: ports below 1024 are mostly root's"),
			also:  []error{syscall.EACCES, control.ErrUsage},
		}
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		names = append(names, control.ErrUsage)
	case errors.Is(err, syscall.ECONNREFUSED):
		names = append(names, control.ErrRefused)
	case errors.Is(err, syscall.ECONNRESET):
		names = append(names, control.ErrReset)
	}
	// What the system call was called is of no use to anybody here.
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return &mapped{error: errno, also: names}
	}
	return err
}
