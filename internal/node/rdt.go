package node

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/rdt"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/udp"
)

// What RDT has over founding document 003 in a node, unless somebody says otherwise.
const (
	// DefaultRDTWindow is the window in packets. Nothing paces them, so all may be waiting in a
	// UDP socket's receive buffer at once, a kernel's on the way or a program's at the end, and
	// what finds no room is lost. 128 of 1325 bytes are 174 kB and fit into 256 KiB; the
	// document's 1120 are 1.5 MB.
	DefaultRDTWindow = 128
	// rdtPatience is the silence that ends a flow, rdtRequest how long a client waits until it
	// asks again, and rdtLinger how long either end remembers a flow that is over: four times
	// the longest that an adaptive time-out becomes.
	rdtPatience = 10 * time.Second
	rdtRequest  = 500 * time.Millisecond
	rdtLinger   = 8 * time.Second
)

// progressPeriod is how often a flow under way is told of.
const progressPeriod = 200 * time.Millisecond

// rdtNetwork is what errors call it.
const rdtNetwork = "rdt"

type (
	// RDTConfig is how RDT behaves at an end. Of the zero RDTConfig a node makes its own.
	RDTConfig = rdt.Config
	// RDTObject is an object with a name.
	RDTObject = rdt.Object
	// RDTEntry is one without its bytes.
	RDTEntry = rdt.Entry
	// RDTServed is what a server gives, or gave, to one client.
	RDTServed = rdt.Flow
)

// NewRDTObject makes an object of bytes.
func NewRDTObject(name string, data []byte) RDTObject {
	return RDTObject{
		Entry: RDTEntry{Name: name, Size: int64(len(data)), SHA256: sha256.Sum256(data)},
		Data:  data,
	}
}

// rdtDefaults fills in what a node has otherwise than the document.
func rdtDefaults(cfg RDTConfig) RDTConfig {
	if cfg.Window == 0 {
		cfg.Window = DefaultRDTWindow
	}
	cfg.Adaptive = cfg.Adaptive || cfg.Timeout == 0
	if cfg.Patience == 0 {
		cfg.Patience = rdtPatience
	}
	cfg.Linger = max(rdtLinger, 4*cfg.Timeout)
	return cfg
}

// RDTServer gives objects to whoever asks at a UDP port.
type RDTServer struct {
	node   *Node
	addr   netip.AddrPort
	server *rdt.Server     // the loop's
	port   *stack.Port     // the loop's; nil: it is closed
	ended  func(RDTServed) // called by the loop for each flow that has ended; nil: nobody cares
	closed atomic.Bool
}

// ServeRDT gives objects to whoever asks on a UDP port of any of the node's addresses, or of
// the given one. Their bytes stay as they are while the server lives. Port 0 has one chosen. Ended
// is called by the loop for each flow that has ended; nil: nobody cares.
func (n *Node) ServeRDT(
	on netip.AddrPort, cfg RDTConfig, objects []RDTObject, ended func(RDTServed),
) (*RDTServer, error) {
	s := &RDTServer{node: n, ended: ended}
	server, err := rdt.NewServer(rdtDefaults(cfg), objects)
	if err == nil {
		s.server = server
		callErr := n.call(func(clock.Time) {
			s.port, err = n.openPort(func() (*stack.Port, error) {
				return n.stack.OpenRDTServer(on, server)
			})
			if err == nil {
				s.port.UDP.Owner = s
				s.addr = s.port.UDP.Local()
			}
		})
		err = firstError(callErr, err)
	}
	if err != nil {
		return nil, RDTError("listen", on, err)
	}
	return s, nil
}

// RDTError is an error of an operation at an address.
func RDTError(op string, at netip.AddrPort, err error) error {
	return &net.OpError{
		Op: op, Net: rdtNetwork, Addr: net.UDPAddrFromAddrPort(at), Err: netError(err),
	}
}

// Addr returns a *net.UDPAddr of the virtual network.
func (s *RDTServer) Addr() net.Addr { return net.UDPAddrFromAddrPort(s.addr) }

// Local is the virtual address and port of the server.
func (s *RDTServer) Local() netip.AddrPort { return s.addr }

// Close ends the server and its flows, and frees the port.
func (s *RDTServer) Close() error {
	open := false
	if !s.closed.Swap(true) {
		_ = s.node.call(func(clock.Time) { open = s.shut() }) // a closed node has none
	}
	if !open {
		return RDTError("close", s.addr, net.ErrClosed)
	}
	return nil
}

// Flows describes the flows under way, and those that have ended lately.
func (s *RDTServer) Flows() (list []RDTServed) {
	_ = s.node.call(func(now clock.Time) { // a closed node has none
		if s.port != nil {
			list = s.server.Flows(now)
		}
	})
	return list
}

// shut frees the port, and reports whether it had one. The loop's.
func (s *RDTServer) shut() bool {
	if s.port == nil {
		return false
	}
	s.node.stack.ClosePort(s.port)
	s.port = nil
	s.closed.Store(true)
	return true
}

// tell passes on which flows have ended. The loop's.
func (s *RDTServer) tell(clock.Time) {
	for f, ok := s.server.Next(); ok; f, ok = s.server.Next() {
		if s.ended != nil {
			s.ended(f)
		}
	}
}

// rdtFlow is a flow of objects to this node: a UDP port of its own, and who waits for them.
type rdtFlow struct {
	node     *Node
	receiver *rdt.Receiver // the loop's
	port     *stack.Port   // the loop's; nil: it is closed
	local    netip.AddrPort
	news     chan struct{} // a token: look at what has become of it
	toldAt   clock.Time    // when the token was last for progress alone; the loop's

	mu    sync.Mutex
	ended []rdt.Completion // objects, not yet taken; as many as were asked for
	info  rdt.ReceiverInfo
	err   error // why no more objects will come
}

// openRDT asks a server for objects by number, from a UDP port of its own.
func (n *Node) openRDT(
	from, to netip.AddrPort, cfg RDTConfig, wanted []uint16,
) (*rdtFlow, error) {
	f := &rdtFlow{node: n, news: make(chan struct{}, 1)}
	if !control.IsHost(to.Addr()) || to.Port() == 0 {
		return nil, fmt.Errorf("%v: %w", to, udp.ErrAddress)
	}
	var err error
	callErr := n.call(func(now clock.Time) {
		if n.stack.IsBroadcast(to.Addr()) {
			err = fmt.Errorf("%v: %w", to, udp.ErrAddress)
			return
		}
		if f.receiver, err = rdt.NewReceiver(now, cfg, wanted...); err != nil {
			return
		}
		f.port, err = n.openPort(func() (*stack.Port, error) {
			return n.stack.OpenRDTReceiver(from, to, f.receiver)
		})
		if err == nil {
			f.port.UDP.Owner = f
			f.local = f.port.UDP.Local()
		}
	})
	if err = firstError(callErr, err); err != nil {
		return nil, err
	}
	return f, nil
}

// openPort opens a port. If there are too many it takes the place of the flow that has everything
// and has lingered the longest, if there is one. The loop's.
func (n *Node) openPort(open func() (*stack.Port, error)) (*stack.Port, error) {
	p, err := open()
	if !errors.Is(err, stack.ErrTooMany) {
		return p, err
	}
	for _, old := range n.stack.Ports() {
		if f, ok := old.UDP.Owner.(*rdtFlow); ok && f.receiver.Done() {
			f.shut(nil)
			return open()
		}
	}
	return p, err
}

// tell passes on what has come, and closes the port when the flow has lingered long enough.
// The loop's.
func (f *rdtFlow) tell(now clock.Time) {
	f.mu.Lock()
	before := len(f.ended)
	for c, ok := f.receiver.Next(); ok; c, ok = f.receiver.Next() {
		f.ended = append(f.ended, c)
	}
	if f.err == nil {
		f.err = f.receiver.Err()
	}
	news := len(f.ended) > before || f.err != nil || f.receiver.Done() ||
		now.Sub(f.toldAt) >= progressPeriod
	if news {
		f.toldAt, f.info = now, f.receiver.Info()
	}
	f.mu.Unlock()
	if news {
		wake(f.news)
	}
	if f.receiver.Closed() || f.receiver.Err() != nil {
		f.shut(nil)
	}
}

// report takes what ICMP says of a datagram. Only where nothing has come does it mean that
// nothing will: a server who has gone is silent. The loop's.
func (f *rdtFlow) report(err error) {
	if errors.Is(err, udp.ErrRefused) && f.receiver.Info().Received == 0 {
		f.shut(err)
	}
}

// shut ends the flow, with an error if objects are missing. The loop's.
func (f *rdtFlow) shut(err error) bool {
	if f.port == nil {
		return false
	}
	f.node.stack.ClosePort(f.port)
	f.port = nil
	if !f.receiver.Done() && err != nil {
		f.mu.Lock()
		f.err = err
		f.mu.Unlock()
	}
	wake(f.news)
	return true
}

// next waits for objects that have ended, or for progress. An error means that no more
// objects will come; those that come with it did before.
func (f *rdtFlow) next(ctx context.Context) ([]rdt.Completion, rdt.ReceiverInfo, error) {
	var end error
	select {
	case <-f.news:
	case <-ctx.Done():
		end = context.Cause(ctx)
	case <-f.node.stopped:
		end = net.ErrClosed
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	ended := f.ended
	f.ended = nil
	return ended, f.info, firstError(end, f.err)
}

// leave is for who does not wait any more: a flow that has everything lingers, any other ends.
func (f *rdtFlow) leave() {
	f.node.post(func(clock.Time) {
		if !f.receiver.Done() {
			f.shut(nil)
		}
	})
}

// rdtEnd is either end of RDT as the owner of a port.
type rdtEnd interface{ tell(now clock.Time) }

// tellRDT passes on what happened at RDT's ports in this turn. The loop's.
func (n *Node) tellRDT(now clock.Time) {
	// Backward, for one that closes moves those behind it.
	for _, port := range slices.Backward(n.stack.Ports()) {
		if e, ok := port.UDP.Owner.(rdtEnd); ok {
			e.tell(now)
		}
	}
}

// shutRDT ends every flow, at the end. Who has everything says so a few times more, because
// nobody will answer if the last acknowledgment was lost. The loop's.
func (n *Node) shutRDT() {
	for _, port := range n.stack.Ports() {
		if f, ok := port.UDP.Owner.(*rdtFlow); ok {
			f.receiver.Farewell()
		}
	}
}
