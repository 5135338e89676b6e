package stack

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/tidepool-net/tidepool/internal/clock"
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

// ports are the UDP ports of engines.
type ports struct {
	list  []*Port // maxPorts at most
	turn  int     // whose datagrams leave first
	waits bool    // somebody had more than the stack's queue took
	now   clock.Time
}

// openPort gives an engine a port on one of the node's addresses, or on all, as BindUDP;
// with a valid remote for that peer alone, as DialUDPFrom.
func (s *Stack) openPort(local, remote netip.AddrPort, e engine) (*Port, error) {
	if len(s.ports.list) >= maxPorts {
		return nil, fmt.Errorf("%d ports of RCP and RDT: %w", maxPorts, ErrTooMany)
	}
	var u *udp.Socket
	var err error
	if remote.IsValid() {
		u, err = s.DialUDPFrom(local, remote)
	} else if u, err = s.BindUDP(local); err == nil && !local.Addr().IsUnspecified() &&
		!s.isHost(local.Addr().As4()) {
		u.Close() // a group has no connections
		err = fmt.Errorf("%v: %w", local.Addr(), ErrNotOurs)
	}
	if err != nil {
		return nil, err
	}
	u.Hear = func(from netip.AddrPort, payload []byte) { e.Input(s.ports.now, from, payload) }
	p := &Port{UDP: u, engine: e}
	s.ports.list = append(s.ports.list, p)
	return p, nil
}

// ClosePort frees a port's number. Its engine is asked for nothing more.
func (s *Stack) ClosePort(p *Port) {
	p.UDP.Close()
	s.ports.list = slices.DeleteFunc(s.ports.list, func(q *Port) bool { return q == p })
}

// Ports returns the ports that are engines'. The slice is lent until one is opened or closed.
func (s *Stack) Ports() []*Port { return s.ports.list }

func (c *ports) deadline() (t clock.Time) {
	for _, p := range c.list {
		t = clock.Earliest(t, p.engine.Deadline())
	}
	return t
}

func (c *ports) advance(now clock.Time) {
	for _, p := range c.list {
		if p.engine.Deadline().Due(now) {
			p.engine.Advance(now)
		}
	}
}

// maxPortQueue is how many bytes of the stack's queue may wait before engines do. It is
// little, for what waits there is repeated behind itself when it is late.
const maxPortQueue = 64 << 10

// roomForPorts reports whether the queue takes another datagram of an engine.
func (s *Stack) roomForPorts() bool { return s.out.bytes < maxPortQueue }

// outputPorts sends what engines have to send, as far as the stack's queue has room: what an
// engine gave is gone. What has no way is as good as lost, and repeated later.
func (s *Stack) outputPorts(now clock.Time) {
	c := &s.ports
	if c.waits = len(c.list) > 0 && !s.roomForPorts(); c.waits {
		return
	}
	for range c.list {
		c.turn %= len(c.list)
		p := c.list[c.turn]
		c.turn++ // whoever fills the queue now lets the next begin with it
		for to, data, ok := p.engine.output(now); ok; to, data, ok = p.engine.output(now) {
			_ = s.sendUDP(now, p.UDP, to, data)
			if c.waits = !s.roomForPorts(); c.waits {
				return
			}
		}
	}
}
