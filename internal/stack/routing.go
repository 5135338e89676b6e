package stack

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// startRouting installs the local and static routes and starts RIP.
func (s *Stack) startRouting(now clock.Time) error {
	for i := range s.interfaces {
		s.routes.Insert(s.localRoute(i))
	}
	for _, r := range s.cfg.Routes {
		if err := s.AddRoute(now, r); err != nil {
			return fmt.Errorf("stack: route: %w", err)
		}
	}
	return s.startRIP(now, nil)
}

func (s *Stack) localRoute(i int) ip.Route {
	return ip.Route{Prefix: s.interfaces[i].Addr.Masked(), Iface: i, Origin: ip.Local}
}

// isNetwork reports whether a prefix is that of an interface: RIP knows it anyway.
func (s *Stack) isNetwork(p netip.Prefix) bool {
	return slices.ContainsFunc(s.interfaces, func(f iface) bool { return f.Addr.Masked() == p })
}

// hop finds the way of a packet of the node's own.
func (s *Stack) hop(dst ip.Addr) (ip.Hop, bool) {
	hop, ok := s.routes.Hop(dst)
	return hop, ok && hop.Kind == ip.Forwarded
}

// self reports whether an address is the node's own, and whose network it is of. An
// address is the node's and not its interface's, the weak model of RFC 1122 §3.3.4.2: a
// router is reached by any of its addresses over any interface, and by itself although
// the interface is down. Those of 127/8 are the node's too, from within (RFC 1122
// §3.2.1.3).
func (s *Stack) self(a ip.Addr) (int, bool) {
	i, own := s.own[a]
	return i, own || loopback(a)
}

func loopback(a ip.Addr) bool { return a[0] == 127 }

// present reports whether dst is on the link of interface i, as far as is known.
func (s *Stack) present(i int, dst ip.Addr) bool {
	nodes := s.interfaces[i].Neighbors
	return nodes == nil || slices.Contains(nodes, netip.AddrFrom4(dst))
}

// path is TCP's question which way leads to remote.
func (s *Stack) path(remote [4]byte) tcp.Path {
	if i, self := s.self(remote); self {
		return tcp.Path{Outlet: s.loopback(), MTU: s.interfaces[i].MTU, Local: remote}
	}
	hop, ok := s.hop(remote)
	if special(remote) || ok && hop.OnLink && s.all(hop.Iface, remote) {
		return tcp.Path{Outlet: -1, NotHost: true} // RFC 1122 §4.2.3.10
	}
	if !ok || hop.OnLink && !s.present(hop.Iface, remote) {
		return tcp.Path{Outlet: -1}
	}
	out := &s.interfaces[hop.Iface]
	return tcp.Path{
		Outlet: hop.Iface, MTU: out.MTU, Local: out.addr, DefaultMSS: out.DefaultMSS,
	}
}

// loopback is the outlet to the node itself, behind those of the interfaces.
func (s *Stack) loopback() int { return len(s.interfaces) }

// SetUp takes interface i up or down. Down, it drops what arrives, sends
// nothing, and its network is withdrawn at once.
func (s *Stack) SetUp(now clock.Time, i int, up bool) {
	in := &s.interfaces[i]
	if in.up == up {
		return
	}
	if s.rip != nil && !up {
		s.rip.Farewell(i)
		s.outputRIP(now)
		for k := range s.out.packets {
			s.out.packets[k].last = true // it leaves although its interface is down by then
		}
	}
	in.up = up
	if up {
		s.routes.Insert(s.localRoute(i))
	} else {
		s.routes.Remove(in.Addr.Masked(), ip.Local)
	}
	s.reinstall(now, i)
	if s.rip != nil {
		s.rip.SetLocal(now, in.Addr.Masked(), i, up)
		s.learn()
	}
	s.rerouted()
}

// rerouted has what was decided about packets and paths decided anew.
func (s *Stack) rerouted() {
	s.flows = flows{}
	s.tcp.Rerouted()
}

// SetLoss has the share p (0 to 1) of the packets that are forwarded over
// interface i, in either direction, dropped.
func (s *Stack) SetLoss(i int, p float64) {
	s.interfaces[i].loss = p
	s.rerouted()
}

// SetForwarding makes a host a router, which passes on what is for others, or a router a host.
func (s *Stack) SetForwarding(on bool) {
	s.cfg.Forwarding = on
	s.rerouted()
}

// Route returns the way that a packet to dst would take now.
func (s *Stack) Route(dst netip.Addr) (ip.Route, bool) { return s.routes.Lookup(dst.As4()) }
