package stack

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/rcp"
	"github.com/tidepool-net/tidepool/internal/udp"
)

// RCP is one UDP port whose datagrams are RCP's, and the router that they are for.
type RCP struct {
	// Router is the port's. Its owner is the stack's owner.
	Router *rcp.Router
	// UDP is the port itself. It is connected where OpenRCP was given a peer, so that it
	// hears nobody else, and what ICMP reports is told.
	UDP *udp.Socket
}

// maxRCP bounds the ports of a stack that are RCP's.
const maxRCP = 256

// rcpPorts are the ports whose datagrams are RCP's.
type rcpPorts struct {
	ports []*RCP // maxRCP at most
	turn  int    // whose datagrams leave first
	waits bool   // somebody had more than the stack's queue took
	now   clock.Time
}

// OpenRCP opens a port for RCP on one of the node's addresses, or on all, as BindUDP; with
// a valid remote for that peer alone, as DialUDPFrom. The stack fills in the Config's Rand.
// What rcp.NewRouter has against the Config is its error, too.
func (s *Stack) OpenRCP(local, remote netip.AddrPort, cfg rcp.Config) (*RCP, error) {
	if len(s.rcp.ports) >= maxRCP {
		return nil, fmt.Errorf("%d RCP ports: %w", maxRCP, ErrTooMany)
	}
	cfg.Rand = s.rng
	r, err := rcp.NewRouter(cfg)
	if err != nil {
		return nil, err
	}
	var u *udp.Socket
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
	u.Hear = func(from netip.AddrPort, payload []byte) { r.Input(s.rcp.now, from, payload) }
	p := &RCP{Router: r, UDP: u}
	s.rcp.ports = append(s.rcp.ports, p)
	return p, nil
}

// CloseRCP ends a port and its sockets, and frees its number.
func (s *Stack) CloseRCP(p *RCP) {
	p.Router.Close()
	p.UDP.Close()
	s.rcp.ports = slices.DeleteFunc(s.rcp.ports, func(q *RCP) bool { return q == p })
}

// RCPPorts returns the ports that are RCP's, in the order in which they were opened. The
// slice is lent until one is opened or closed.
func (s *Stack) RCPPorts() []*RCP { return s.rcp.ports }

func (c *rcpPorts) deadline() (t clock.Time) {
	for _, p := range c.ports {
		t = clock.Earliest(t, p.Router.Deadline())
	}
	return t
}

func (c *rcpPorts) advance(now clock.Time) {
	for _, p := range c.ports {
		p.Router.Advance(now)
	}
}

// maxRCPQueue is how many bytes of the stack's queue may wait before routers do. It is
// little, for what waits there is repeated behind itself a Tick later.
const maxRCPQueue = 64 << 10

// roomForRCP reports whether the queue takes another datagram of a router.
func (s *Stack) roomForRCP() bool { return s.out.bytes < maxRCPQueue }

// outputRCP sends what routers have to send, as far as the stack's queue has room: what
// Router.Output took is gone. What has no way is as good as lost, and repeated a Tick later.
func (s *Stack) outputRCP(now clock.Time) {
	c := &s.rcp
	if c.waits = len(c.ports) > 0 && !s.roomForRCP(); c.waits {
		return
	}
	var d rcp.Datagram
	for range c.ports {
		c.turn %= len(c.ports)
		p := c.ports[c.turn]
		for p.Router.Output(now, &d) {
			_ = s.sendUDP(now, p.UDP, d.Peer, d.Data)
			if c.waits = !s.roomForRCP(); c.waits {
				return
			}
		}
		c.turn++
	}
}
