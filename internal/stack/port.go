package stack

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/rcp"
	"github.com/tidepool-net/tidepool/internal/rdt"
	"github.com/tidepool-net/tidepool/internal/udp"
)

// engine is a protocol over UDP with a port of its own. Its methods are those of the other engines,
// but Input and output also pass the peer's address.
type engine interface {
	Input(now clock.Time, from netip.AddrPort, payload []byte)
	// output returns the next datagram, which is valid until the next call. A zero address means
	// the peer that the port is connected to.
	output(now clock.Time) (to netip.AddrPort, payload []byte, ok bool)
	Deadline() clock.Time
	Advance(now clock.Time)
}

// Port is a UDP port whose datagrams go to an engine directly, without a receive buffer.
type Port struct {
	// UDP is the port's socket. If the engine has a single peer, the socket is connected, so it
	// receives only from that peer and reports ICMP errors.
	UDP    *udp.Socket
	engine engine
}

// maxPorts is the largest number of ports with engines in a stack.
const maxPorts = 256

// Ports are the UDP ports with engines.
type Ports struct {
	ifs       *Interfaces
	out       *sender
	datagrams *Datagrams
	rng       *rand.Rand

	list  []*Port // ports with engines, at most maxPorts
	turn  int     // index of the engine that sends first
	waits bool    // an engine has more data than the queue had room for
	now   clock.Time
}

// open gives an engine a port on one of the node's addresses, or on all addresses, like
// Datagrams.Bind. If remote is valid, the port is for that peer only, like Datagrams.Dial.
func (ps *Ports) open(local, remote netip.AddrPort, e engine) (*Port, error) {
	if len(ps.list) >= maxPorts {
		return nil, fmt.Errorf("%d ports of RCP and RDT: %w", maxPorts, ErrTooMany)
	}
	var u *udp.Socket
	var err error
	if remote.IsValid() {
		u, err = ps.datagrams.Dial(local, remote)
	} else if u, err = ps.datagrams.Bind(local); err == nil && !local.Addr().IsUnspecified() &&
		!ps.ifs.isOwn(local.Addr()) {
		u.Close() // a multicast group cannot be connected
		err = fmt.Errorf("%v: %w", local.Addr(), ErrNotOurs)
	}
	if err != nil {
		return nil, err
	}
	u.Receive = func(from netip.AddrPort, payload []byte) { e.Input(ps.now, from, payload) }
	p := &Port{UDP: u, engine: e}
	ps.list = append(ps.list, p)
	return p, nil
}

// Close frees a port. Its engine is not called again.
func (ps *Ports) Close(p *Port) {
	p.UDP.Close()
	ps.list = slices.DeleteFunc(ps.list, func(q *Port) bool { return q == p })
	ps.waits = ps.waits && len(ps.list) > 0
}

// List returns the ports with engines. The slice is valid until one is opened or closed.
func (ps *Ports) List() []*Port { return ps.list }

func (ps *Ports) deadline() (t clock.Time) {
	for _, p := range ps.list {
		t = clock.Earliest(t, p.engine.Deadline())
	}
	return t
}

func (ps *Ports) advance(now clock.Time) {
	for _, p := range ps.list {
		if p.engine.Deadline().Due(now) {
			p.engine.Advance(now)
		}
	}
}

// maxPortQueue is the number of bytes in the stack's queue above which engines wait. It is small
// because an engine retransmits a packet that waits there too long.
const maxPortQueue = 64 << 10

// hasRoom reports whether the queue has room for another datagram of an engine.
func (ps *Ports) hasRoom() bool { return ps.out.bytes < maxPortQueue }

// output sends the engines' datagrams while the stack's queue has room. A datagram without a route
// is lost, and its engine retransmits it.
func (ps *Ports) output(now clock.Time) {
	if len(ps.list) == 0 {
		return
	}
	if ps.waits = !ps.hasRoom(); ps.waits {
		return
	}
	for range ps.list {
		ps.turn %= len(ps.list)
		p := ps.list[ps.turn]
		ps.turn++ // if this engine fills the queue, the next engine is first next time
		for to, data, ok := p.engine.output(now); ok; to, data, ok = p.engine.output(now) {
			_ = ps.datagrams.send(now, p.UDP, to, data)
			if ps.waits = !ps.hasRoom(); ps.waits {
				return
			}
		}
	}
}

// RCP is a UDP port that carries RCP, and the router of that port.
type RCP struct {
	*Port
	// Router handles the port's connections. Only the stack's owner may call it.
	Router *rcp.Router
}

// OpenRCP opens a port for RCP on one of the node's addresses, or on all addresses, like
// Datagrams.Bind. If remote is valid, the port is for that peer only, like Datagrams.Dial. The
// stack sets the Config's Rand. Errors: those of Datagrams, and rcp.NewRouter's for an invalid
// Config.
func (ps *Ports) OpenRCP(local, remote netip.AddrPort, cfg rcp.Config) (*RCP, error) {
	cfg.Rand = ps.rng
	r, err := rcp.NewRouter(cfg)
	if err != nil {
		return nil, err
	}
	p, err := ps.open(local, remote, rcpRouter{r})
	if err != nil {
		return nil, err
	}
	return &RCP{Port: p, Router: r}, nil
}

// CloseRCP closes a port and its connections.
func (ps *Ports) CloseRCP(p *RCP) {
	p.Router.Close()
	ps.Close(p.Port)
}

// rcpRouter makes an rcp.Router an engine.
type rcpRouter struct{ *rcp.Router }

// Input implements engine. The router counts invalid packets.
func (r rcpRouter) Input(now clock.Time, from netip.AddrPort, payload []byte) {
	r.Router.Input(now, from, payload)
}

func (r rcpRouter) output(now clock.Time) (to netip.AddrPort, payload []byte, ok bool) {
	var d rcp.Datagram
	ok = r.Output(now, &d)
	return d.Peer, d.Data, ok
}

// OpenRDTServer opens a port at which an RDT server serves its objects, on one of the node's
// addresses, or on all addresses, like Datagrams.Bind. The stack owns the server from then on.
func (ps *Ports) OpenRDTServer(local netip.AddrPort, server *rdt.Server) (*Port, error) {
	return ps.open(local, netip.AddrPort{}, &rdtServer{Server: server})
}

// OpenRDTReceiver opens a port at which an RDT receiver requests objects from one server, like
// Datagrams.Dial. The stack owns the receiver from then on.
func (ps *Ports) OpenRDTReceiver(
	local, server netip.AddrPort, receiver *rdt.Receiver,
) (*Port, error) {
	return ps.open(local, server, &rdtReceiver{Receiver: receiver})
}

// rdtServer makes an rdt.Server an engine.
type rdtServer struct {
	*rdt.Server
	packet []byte
}

func (e *rdtServer) output(now clock.Time) (to netip.AddrPort, payload []byte, ok bool) {
	to, e.packet, ok = e.Output(now, e.packet[:0])
	return to, e.packet, ok
}

// rdtReceiver makes an rdt.Receiver an engine.
type rdtReceiver struct {
	*rdt.Receiver
	packet []byte
}

// Input implements engine. The socket is connected, so the packet is from the server.
func (e *rdtReceiver) Input(now clock.Time, _ netip.AddrPort, payload []byte) {
	e.Receiver.Input(now, payload)
}

func (e *rdtReceiver) output(now clock.Time) (to netip.AddrPort, payload []byte, ok bool) {
	e.packet, ok = e.Output(now, e.packet[:0])
	return to, e.packet, ok
}
