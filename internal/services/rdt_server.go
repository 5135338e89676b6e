package services

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/rdt"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// These are defaults of RDT in a node. They differ from founding document 003.
const (
	// DefaultWindow is the window in packets. The packets are not paced, so all of them may arrive
	// at once, and those that do not fit in the UDP receive buffer are lost. 128 packets of 1325
	// bytes are 174 kB and fit in 256 KiB. The document's 1120 packets are 1.5 MB.
	DefaultWindow = 128
	// defaultPatience is the silence that ends a flow. requestPeriod is the time between a client's
	// requests. lingerTime is how long both ends remember a finished flow: four times the maximum
	// adaptive timeout.
	defaultPatience = 10 * time.Second
	requestPeriod   = 500 * time.Millisecond
	lingerTime      = 8 * time.Second
)

func withDefaults(cfg rdt.Config) rdt.Config {
	cfg.Window = cmp.Or(cfg.Window, DefaultWindow)
	cfg.Adaptive = cfg.Adaptive || cfg.Timeout == 0
	cfg.Patience = cmp.Or(cfg.Patience, defaultPatience)
	cfg.Linger = max(lingerTime, 4*cfg.Timeout)
	return cfg
}

// NewObject returns an object with this name and contents.
func NewObject(name string, data []byte) rdt.Object {
	return rdt.Object{
		Entry: rdt.Entry{Name: name, Size: int64(len(data)), SHA256: sha256.Sum256(data)},
		Data:  data,
	}
}

// checksums maps names to RDT's checksums.
var checksums = map[string]rdt.Checksum{
	"": rdt.MD5, rdt.MD5.String(): rdt.MD5, rdt.CRC32C.String(): rdt.CRC32C,
}

// parseChecksum returns a checksum by name: md5, which is also the default, or crc32c.
func parseChecksum(name string) (rdt.Checksum, error) {
	sum, ok := checksums[name]
	if !ok {
		return 0, node.NetError(fmt.Errorf("%w: checksum %q: must be md5 or crc32c", rdt.ErrConfig,
			name))
	}
	return sum, nil
}

// OpError returns a *net.OpError of an operation at an address.
func OpError(op string, at netip.AddrPort, err error) error {
	return &net.OpError{
		Op: op, Net: "rdt", Addr: net.UDPAddrFromAddrPort(at), Err: node.NetError(err),
	}
}

// RDTServer serves objects on a UDP port.
type RDTServer struct {
	node   *node.Node
	addr   netip.AddrPort
	server *rdt.Server    // owned by the loop
	stack  *stack.Stack   // owned by the loop
	port   *stack.Port    // owned by the loop; nil: closed
	ended  func(rdt.Flow) // called by the loop for each finished flow; may be nil
	closed atomic.Bool
}

var _ node.PortOwner = (*RDTServer)(nil)

// ServeRDT serves objects on a UDP port, at all addresses of the node or at the given one. The
// objects' bytes must not change while the server is open. Port 0 chooses a free port. For each
// finished flow, the loop calls ended, which may be nil.
func ServeRDT(
	n *node.Node, on netip.AddrPort, cfg rdt.Config, objects []rdt.Object, ended func(rdt.Flow),
) (*RDTServer, error) {
	server, err := rdt.NewServer(withDefaults(cfg), objects)
	if err != nil {
		return nil, OpError("listen", on, err)
	}
	s := &RDTServer{node: n, ended: ended, server: server}
	err = n.Call(func(st *stack.Stack, _ clock.Time) (err error) {
		s.stack = st
		s.port, err = openPort(st, func() (*stack.Port, error) {
			return st.Ports().OpenRDTServer(on, server)
		})
		if err == nil {
			s.port.UDP.Owner = s
			s.addr = s.port.UDP.Local()
		}
		return err
	})
	if err != nil {
		return nil, OpError("listen", on, err)
	}
	return s, nil
}

// ClosedRDTServer returns a closed server.
func ClosedRDTServer() *RDTServer {
	s := &RDTServer{node: node.Closed()}
	s.closed.Store(true)
	return s
}

// Addr returns a *net.UDPAddr of the virtual network.
func (s *RDTServer) Addr() net.Addr { return net.UDPAddrFromAddrPort(s.addr) }

// Local returns the virtual address and port of the server.
func (s *RDTServer) Local() netip.AddrPort { return s.addr }

// Close closes the server and its flows, and frees the port.
func (s *RDTServer) Close() error {
	open := false
	if !s.closed.Swap(true) {
		_ = s.node.Call(func(*stack.Stack, clock.Time) error { // a closed node has no flows
			open = s.shut()
			return nil
		})
	}
	if !open {
		return OpError("close", s.addr, net.ErrClosed)
	}
	return nil
}

// Flows describes the running and recently finished flows.
func (s *RDTServer) Flows() (list []rdt.Flow) {
	_ = s.node.Call(func(_ *stack.Stack, now clock.Time) error { // a closed node has no flows
		if s.port != nil {
			list = s.server.Flows(now)
		}
		return nil
	})
	return list
}

// shut frees the port. It returns false if the port is already closed. Only the loop calls it.
func (s *RDTServer) shut() bool {
	if s.port == nil {
		return false
	}
	s.stack.Ports().Close(s.port)
	s.port = nil
	s.closed.Store(true)
	return true
}

// Notify implements node.PortOwner. It passes on finished flows.
func (s *RDTServer) Notify(clock.Time) {
	for f, ok := s.server.Next(); ok; f, ok = s.server.Next() {
		if s.ended != nil {
			s.ended(f)
		}
	}
}

// Report implements node.PortOwner. It does nothing, because unconnected ports get no reports.
func (s *RDTServer) Report(error) {}

// Undelivered implements node.PortOwner. It returns false, because closing a node does not wait for
// clients.
func (s *RDTServer) Undelivered() bool { return false }

// BoundTo implements node.PortOwner.
func (s *RDTServer) BoundTo(addrs map[netip.Addr]bool) []node.Bound {
	if !addrs[s.addr.Addr()] {
		return nil
	}
	return []node.Bound{{
		Text: fmt.Sprintf("rdt %v, serving", s.addr), End: func(clock.Time) { s.shut() },
	}}
}

// Shut implements node.PortOwner. Clients detect the silence.
func (s *RDTServer) Shut() {}

// describe returns the state of the server and its flows for operators. Only the loop calls it.
func (s *RDTServer) describe(now clock.Time) []control.RDTFlow {
	i := s.server.Info()
	list := []control.RDTFlow{{
		Local: s.addr, Remote: netip.AddrPortFrom(netip.IPv4Unspecified(), 0), State: "serving",
		Objects: i.Objects, Bytes: i.Bytes,
	}}
	for _, f := range s.server.Flows(now) {
		state := "sending"
		if f.Done {
			state = "done"
		}
		list = append(list, control.RDTFlow{
			Local: s.addr, Remote: f.Peer, State: state, Objects: f.Objects, Bytes: f.Bytes,
			Sent: f.Sender.Sent, Again: f.Sender.Resent,
			Received: f.Sender.Acks + f.Sender.Requests,
			InFlight: f.Sender.InFlight, SRTT: f.Sender.SRTT,
		})
	}
	return list
}

// openPort opens a port. At the limit it closes a finished flow that lingers, if there is one. Only
// the loop calls it.
func openPort(s *stack.Stack, open func() (*stack.Port, error)) (*stack.Port, error) {
	p, err := open()
	if !errors.Is(err, stack.ErrTooMany) {
		return p, err
	}
	for _, old := range s.Ports().List() {
		if f, ok := old.UDP.Owner.(*flow); ok && f.receiver.Done() {
			f.shut(nil)
			return open()
		}
	}
	return p, err
}
