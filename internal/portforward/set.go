package portforward

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/node"
)

// Set are the doors of a node. A door has a goroutine that accepts, and each flow through it two
// that copy.
type Set struct {
	control.Handlers
	node  *node.Node
	mu    sync.Mutex
	list  map[int]*Door
	next  int
	over  bool // the node ends: no more
	flows sync.WaitGroup
	// lookAround is how long a write waits for a reader before the door checks its writer, halfHere
	// how long a virtual host has to answer a client that has sent its FIN.
	lookAround, halfHere time.Duration
}

// New returns the doors of a node, of which there are none yet.
func New(n *node.Node) *Set {
	s := &Set{Handlers: control.Handlers{}, node: n, list: map[int]*Door{}}
	s.lookAround, s.halfHere = time.Second, 5*time.Second
	handle(s, s.Publish)
	handle(s, s.Expose)
	handle(s, s.Splice)
	control.Handle(s.Handlers, func(context.Context, control.Doors) ([]control.Door, error) {
		return s.states(), nil
	})
	control.HandleOrder(s.Handlers, s.closeDoor)
	return s
}

// handle enters the handler of a request that opens a door.
func handle[R control.Request[control.Door]](s *Set, open func(R) (*Door, error)) {
	control.Handle(s.Handlers, func(_ context.Context, r R) (control.Door, error) {
		d, err := open(r)
		if errors.Is(err, net.ErrClosed) {
			err = fmt.Errorf("node: %w", control.ErrClosed)
		}
		if err != nil {
			return control.Door{}, err
		}
		return d.State(), nil
	})
}

// admit enters a door whose listener is open into the books, and has run accept what comes.
func (s *Set) admit(d *Door, shut func(), run ...func()) error {
	d.shut = shut
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	switch {
	case s.over:
		err = net.ErrClosed
	case len(s.list) >= maxDoors:
		err = fmt.Errorf("%d doors are open: %w: `doors close` some", maxDoors, control.ErrNoPorts)
	}
	if err != nil {
		d.end()
		shut()
		return err
	}
	d.state.ID = s.next
	s.next++
	s.list[d.state.ID] = d
	for _, f := range run {
		s.flows.Go(f)
	}
	return nil
}

// doors are those that are open, and those that are closed and have flows.
func (s *Set) doors() []*Door {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*Door, 0, len(s.list))
	for _, d := range s.list {
		all = append(all, d)
	}
	return all
}

// states is the snapshot of all doors.
func (s *Set) states() []control.Door {
	list := []control.Door{}
	for _, d := range s.doors() {
		list = append(list, d.State())
	}
	slices.SortFunc(list, func(a, b control.Door) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// holder adds to the error of a port that is in use which door has it, if one of ours does.
func (s *Set) holder(
	err error, kind control.DoorKind, network string, at netip.AddrPort,
) error {
	if !errors.Is(err, control.ErrPortInUse) {
		return err
	}
	for _, d := range s.doors() {
		had, bad := netip.ParseAddrPort(d.addr.String())
		if bad == nil && d.state.Kind == kind && d.state.Network == network &&
			had.Port() == at.Port() && (had.Addr() == at.Addr() ||
			had.Addr().IsUnspecified() || at.Addr().IsUnspecified()) {
			return fmt.Errorf("%w: door %d leads from there to %s; `doors close %d` closes it", err,
				d.state.ID, d.state.To, d.state.ID)
		}
	}
	return err
}

func (s *Set) closeDoor(_ context.Context, r control.CloseDoor) error {
	s.mu.Lock()
	d := s.list[r.ID]
	s.mu.Unlock()
	if d == nil {
		return fmt.Errorf("%d: %w; `doors` lists them", r.ID, control.ErrNoSuchDoor)
	}
	if d.Close(r.Cut) != nil {
		return fmt.Errorf("door %d: %w; flows that go on: %d; --cut resets them", r.ID,
			control.ErrClosed, d.State().Open)
	}
	return nil
}

// Close closes all doors and resets what goes through them. There will be no more.
func (s *Set) Close() {
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	for _, d := range s.doors() {
		_ = d.Close(true) // it may be closed already
	}
}

// Wait waits until nothing goes through any door. A handshake with a virtual host ends with the
// node, so both are closed first.
func (s *Set) Wait() { s.flows.Wait() }

// machineError gives an error of this machine's network its name among control's.
func machineError(err error) error {
	err = control.Reason(err)
	var names []error
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		names = append(names, control.ErrPortInUse)
	case errors.Is(err, syscall.EACCES):
		return control.Also(errors.New("permission denied: ports below 1024 are mostly root's"),
			syscall.EACCES, control.ErrUsage)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		names = append(names, control.ErrUsage)
	case errors.Is(err, syscall.ECONNREFUSED):
		names = append(names, control.ErrRefused)
	case errors.Is(err, syscall.ECONNRESET):
		names = append(names, control.ErrReset)
	}
	// What the system call was called is of no use to anybody here.
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return control.Also(errno, names...)
	}
	return err
}
