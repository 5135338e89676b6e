package portforward

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/node"
)

// Set holds a node's port forwards. Each has a goroutine that accepts connections, and one for each
// flow, or two if the node's loop cannot relay (join_other.go).
type Set struct {
	control.Handlers
	node *node.Node
	// Lookup returns the addresses of a name, for proxies; nil: names are unknown.
	Lookup func(ctx context.Context, name string) ([]netip.Addr, error)

	mu    sync.Mutex
	list  map[int]*Forward
	next  int
	over  bool // the set is closed, and opens no forwards
	flows sync.WaitGroup
	// stallCheck is how long a write to one end blocks before the other end is checked.
	// halfCloseTimeout limits how long a virtual host may take to answer a client that has already
	// sent its FIN.
	stallCheck, halfCloseTimeout time.Duration
	copies                       bool // goroutines relay, as on systems other than Linux
}

// New returns an empty set.
func New(n *node.Node) *Set {
	s := &Set{Handlers: control.Handlers{}, node: n, list: map[int]*Forward{}}
	s.stallCheck, s.halfCloseTimeout = time.Second, 5*time.Second
	handle(s, s.Publish)
	handle(s, s.Expose)
	handle(s, s.Splice)
	handle(s, s.Proxy)
	control.Handle(s.Handlers, func(context.Context, control.Doors) ([]control.Door, error) {
		return s.states(), nil
	})
	control.HandleOrder(s.Handlers, s.closeForward)
	return s
}

// handle adds the handler of a request that opens a port forward.
func handle[R control.Request[control.Door]](s *Set, open func(R) (*Forward, error)) {
	control.Handle(s.Handlers, func(_ context.Context, r R) (control.Door, error) {
		fw, err := open(r)
		if errors.Is(err, net.ErrClosed) {
			err = fmt.Errorf("node: %w", control.ErrClosed)
		}
		if err != nil {
			return control.Door{}, err
		}
		return fw.State(), nil
	})
}

// admit adds a forward that listens, and starts the functions that accept.
func (s *Set) admit(fw *Forward, shut func(), run ...func()) error {
	fw.shut = shut
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	switch {
	case s.over:
		err = net.ErrClosed
	case len(s.list) >= maxForwards:
		err = fmt.Errorf("%d port forwards are open: %w; `doors close` closes one", maxForwards,
			control.ErrNoPorts)
	}
	if err != nil {
		fw.stopListening()
		shut()
		return err
	}
	fw.state.ID = s.next
	s.next++
	s.list[fw.state.ID] = fw
	for _, f := range run {
		s.flows.Go(f)
	}
	return nil
}

// forwards lists the forwards that listen or still have flows.
func (s *Set) forwards() []*Forward {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.list))
}

// states returns a snapshot of all forwards, by number.
func (s *Set) states() []control.Door {
	list := []control.Door{}
	for _, fw := range s.forwards() {
		list = append(list, fw.State())
	}
	slices.SortFunc(list, func(a, b control.Door) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// holder extends an "in use" error by the forward that uses the port.
func (s *Set) holder(err error, kind control.DoorKind, network string, at netip.AddrPort) error {
	if !errors.Is(err, control.ErrPortInUse) {
		return err
	}
	for _, fw := range s.forwards() {
		had, bad := netip.ParseAddrPort(fw.addr.String())
		if bad == nil && fw.state.Kind == kind && fw.state.Network == network &&
			had.Port() == at.Port() && (had.Addr() == at.Addr() ||
			had.Addr().IsUnspecified() || at.Addr().IsUnspecified()) {
			return fmt.Errorf("%w: port forward %d to %s uses it; `doors close %d` closes it", err,
				fw.state.ID, fw.state.To, fw.state.ID)
		}
	}
	return err
}

func (s *Set) closeForward(_ context.Context, r control.CloseDoor) error {
	s.mu.Lock()
	fw := s.list[r.ID]
	s.mu.Unlock()
	if fw == nil {
		return fmt.Errorf("%d: %w; `doors` lists them", r.ID, control.ErrNoSuchDoor)
	}
	if fw.Close(r.Cut) != nil {
		return fmt.Errorf("port forward %d: %w; open flows: %d; --cut resets them", r.ID,
			control.ErrClosed, fw.State().Open)
	}
	return nil
}

// Close closes all forwards, resets their connections, and refuses new forwards.
func (s *Set) Close() {
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	for _, fw := range s.forwards() {
		_ = fw.Close(true) // ignores the error, because the forward may be closed already
	}
}

// Wait waits until all flows have ended. Close the set and the node first: connecting to a virtual
// host can last until the node is closed.
func (s *Set) Wait() { s.flows.Wait() }

// machineError translates an error of this machine's network into one of package control.
func machineError(err error) error {
	err = control.Reason(err)
	var names []error
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		names = append(names, control.ErrPortInUse)
	case errors.Is(err, syscall.EACCES):
		return control.Also(errors.New("permission denied: ports below 1024 usually need root"),
			syscall.EACCES, control.ErrUsage)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		names = append(names, control.ErrUsage)
	case errors.Is(err, syscall.ECONNREFUSED):
		names = append(names, control.ErrRefused)
	case errors.Is(err, syscall.ECONNRESET):
		names = append(names, control.ErrReset)
	}
	// The name of the system call is omitted.
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return control.Also(errno, names...)
	}
	return err
}
