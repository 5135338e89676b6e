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

// engine is a protocol above UDP that has a port to itself: the four verbs, with the
// addresses of its peers.
type engine interface {
	Input(now clock.Time, from netip.AddrPort, payload []byte)
	// output returns the next datagram, lent until the next call. One without a peer is
	// for the port's own.
	output(now clock.Time) (to netip.AddrPort, payload []byte, ok bool)
	Deadline() clock.Time
	Advance(now clock.Time)
}

// Port is one UDP port whose datagrams are an engine's. They wait in no receive buffer: the
// engine has them as they arrive.
type Port struct {
	// UDP is the port itself. It is connected where there is one peer, so that it hears
	// nobody else, and what ICMP reports is told.
	UDP    *udp.Socket
	engine engine
}

// maxPorts bounds the ports of a stack that are engines'.
const maxPorts = 256

// Ports are the UDP ports of engines.
type Ports struct {
	ifs       *Interfaces
	out       *sender
	datagrams *Datagrams
	rng       *rand.Rand

	list  []*Port // maxPorts at most
	turn  int     // whose datagrams leave first
	waits bool    // somebody had more than the stack's queue took
	now   clock.Time
}

// open gives an engine a port on one of the node's addresses, or on all, as Datagrams.Bind;
// with a valid remote for that peer alone, as Datagrams.Dial.
func (ps *Ports) open(local, remote netip.AddrPort, e engine) (*Port, error) {
	if len(ps.list) >= maxPorts {
		return nil, fmt.Errorf("%d ports of RCP and RDT: %w", maxPorts, ErrTooMany)
	}
	var u *udp.Socket
	var err error
	if remote.IsValid() {
		u, err = ps.datagrams.Dial(local, remote)
	} else if u, err = ps.datagrams.Bind(local); err == nil && !local.Addr().IsUnspecified() &&
		!ps.ifs.isHost(local.Addr().As4()) {
		u.Close() // a group has no connections
		err = fmt.Errorf("%v: %w", local.Addr(), ErrNotOurs)
	}
	if err != nil {
		return nil, err
	}
	u.Hear = func(from netip.AddrPort, payload []byte) { e.Input(ps.now, from, payload) }
	p := &Port{UDP: u, engine: e}
	ps.list = append(ps.list, p)
	return p, nil
}

// Close frees a port's number. Its engine is asked for nothing more.
func (ps *Ports) Close(p *Port) {
	p.UDP.Close()
	ps.list = slices.DeleteFunc(ps.list, func(q *Port) bool { return q == p })
	ps.waits = ps.waits && len(ps.list) > 0
}

// List returns the ports that are engines'. The slice is lent until one is opened or closed.
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

// maxPortQueue is how many bytes of the stack's queue may wait before engines do. It is
// little, for what waits there is repeated behind itself when it is late.
const maxPortQueue = 64 << 10

// roomy reports whether the queue takes another datagram of an engine.
func (ps *Ports) roomy() bool { return ps.out.bytes < maxPortQueue }

// output sends what engines have to send, as far as the stack's queue has room: what an
// engine gave is gone. What has no way is as good as lost, and repeated later.
func (ps *Ports) output(now clock.Time) {
	if len(ps.list) == 0 {
		return
	}
	if ps.waits = !ps.roomy(); ps.waits {
		return
	}
	for range ps.list {
		ps.turn %= len(ps.list)
		p := ps.list[ps.turn]
		ps.turn++ // whoever fills the queue now lets the next begin with it
		for to, data, ok := p.engine.output(now); ok; to, data, ok = p.engine.output(now) {
			_ = ps.datagrams.send(now, p.UDP, to, data)
			if ps.waits = !ps.roomy(); ps.waits {
				return
			}
		}
	}
}

// RCP is one UDP port whose datagrams are RCP's, and the router that they are for.
type RCP struct {
	*Port
	// Router is the port's. Its owner is the stack's owner.
	Router *rcp.Router
}

// OpenRCP opens a port for RCP on one of the node's addresses, or on all, as Datagrams.Bind; with
// a valid remote for that peer alone, as Datagrams.Dial. The stack fills in the Config's Rand.
// What rcp.NewRouter has against the Config is its error, too.
func (ps *Ports) OpenRCP(local, remote netip.AddrPort, cfg rcp.Config) (*RCP, error) {
	cfg.Rand = ps.rng
	r, err := rcp.NewRouter(cfg)
	if err != nil {
		return nil, err
	}
	p, err := ps.open(local, remote, routing{r})
	if err != nil {
		return nil, err
	}
	return &RCP{Port: p, Router: r}, nil
}

// CloseRCP ends a port and its sockets, and frees its number.
func (ps *Ports) CloseRCP(p *RCP) {
	p.Router.Close()
	ps.Close(p.Port)
}

// routing is a router of RCP as an engine.
type routing struct{ *rcp.Router }

// Input implements engine. The router counts what it thinks of a packet.
func (r routing) Input(now clock.Time, from netip.AddrPort, payload []byte) {
	r.Router.Input(now, from, payload)
}

func (r routing) output(now clock.Time) (to netip.AddrPort, payload []byte, ok bool) {
	var d rcp.Datagram
	ok = r.Output(now, &d)
	return d.Peer, d.Data, ok
}

// OpenRDTServer opens a port where a server of RDT gives its objects to everybody who asks,
// on one of the node's addresses, or on all, as Datagrams.Bind. The stack owns the server then.
func (ps *Ports) OpenRDTServer(local netip.AddrPort, server *rdt.Server) (*Port, error) {
	return ps.open(local, netip.AddrPort{}, &serving{Server: server})
}

// OpenRDTReceiver opens a port where a receiver of RDT asks one server, as Datagrams.Dial. The
// stack owns the receiver then.
func (ps *Ports) OpenRDTReceiver(
	local, server netip.AddrPort, receiver *rdt.Receiver,
) (*Port, error) {
	return ps.open(local, server, &receiving{Receiver: receiver})
}

// serving is a server of RDT as an engine.
type serving struct {
	*rdt.Server
	packet []byte
}

func (e *serving) output(now clock.Time) (to netip.AddrPort, payload []byte, ok bool) {
	to, e.packet, ok = e.Output(now, e.packet[:0])
	return to, e.packet, ok
}

// receiving is a receiver of RDT as an engine.
type receiving struct {
	*rdt.Receiver
	packet []byte
}

// Input implements engine. The socket is connected, so it can only be from the server.
func (e *receiving) Input(now clock.Time, _ netip.AddrPort, payload []byte) {
	e.Receiver.Input(now, payload)
}

func (e *receiving) output(now clock.Time) (to netip.AddrPort, payload []byte, ok bool) {
	e.packet, ok = e.Output(now, e.packet[:0])
	return to, e.packet, ok
}
