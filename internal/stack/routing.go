package stack

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/rip"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// startRouting installs the local and static routes and starts RIP.
func (s *Stack) startRouting(now clock.Time) error {
	for i := range s.interfaces {
		s.routes.Insert(s.localRoute(i))
	}
	for _, r := range s.cfg.Routes {
		route, ok := s.staticRoute(r)
		if !ok {
			return fmt.Errorf("stack: route %v: next hop %v is on no interface's network",
				r.Prefix, r.Via)
		}
		s.routes.Insert(route)
	}
	if s.cfg.RIP == nil {
		return nil
	}
	speaker, err := rip.NewSpeaker(*s.cfg.RIP)
	if err != nil {
		return fmt.Errorf("stack: %w", err)
	}
	s.rip = speaker
	for i := range s.interfaces {
		s.rip.SetLocal(now, s.interfaces[i].Addr.Masked(), i, true)
	}
	for _, p := range s.cfg.Originate {
		s.rip.SetLocal(now, p.Masked(), -1, true)
	}
	s.rip.Start(now)
	return nil
}

func (s *Stack) localRoute(i int) ip.Route {
	return ip.Route{Prefix: s.interfaces[i].Addr.Masked(), Iface: i, Origin: ip.Local}
}

func (s *Stack) staticRoute(r Route) (ip.Route, bool) {
	for i := range s.interfaces {
		if s.interfaces[i].Addr.Masked().Contains(r.Via) {
			return ip.Route{
				Prefix: r.Prefix, NextHop: r.Via, Iface: i, Origin: ip.Static,
			}, true
		}
	}
	return ip.Route{}, false
}

// present reports whether dst is on the link of interface i, as far as is known.
func (s *Stack) present(i int, dst ip.Addr) bool {
	nodes := s.interfaces[i].Neighbors
	return nodes == nil || slices.Contains(nodes, netip.AddrFrom4(dst))
}

// path is TCP's question which way leads to remote.
func (s *Stack) path(remote [4]byte) tcp.Path {
	if i, self := s.own[remote]; self {
		return tcp.Path{Outlet: s.loopback(), MTU: s.interfaces[i].MTU, Local: remote}
	}
	route, ok := s.routes.Lookup(remote)
	if special(remote) || ok && !route.NextHop.IsValid() && s.all(route.Iface, remote) {
		return tcp.Path{Outlet: -1, NotHost: true} // RFC 1122 §4.2.3.10
	}
	if !ok || !route.NextHop.IsValid() && !s.present(route.Iface, remote) {
		return tcp.Path{Outlet: -1}
	}
	out := &s.interfaces[route.Iface]
	return tcp.Path{Outlet: route.Iface, MTU: out.MTU, Local: out.addr}
}

// loopback is the outlet to the node itself, behind those of the interfaces.
func (s *Stack) loopback() int { return len(s.interfaces) }

// learn brings what RIP has found out into the route table.
func (s *Stack) learn() {
	changed := false
	for {
		c, ok := s.rip.NextChange()
		if !ok {
			break
		}
		changed = true
		if c.Gone {
			s.routes.Remove(c.Prefix, ip.RIP)
			continue
		}
		s.routes.Insert(ip.Route{
			Prefix: c.Prefix, NextHop: c.NextHop, Iface: c.Iface, Origin: ip.RIP, Cost: c.Cost,
		})
	}
	if changed {
		s.tcp.Rerouted()
	}
}

// courseRIP takes a message of the course's dialect.
func (s *Stack) courseRIP(now clock.Time, i int, h *ip.Header, payload []byte) ip.DropReason {
	from := netip.AddrPortFrom(netip.AddrFrom4(h.Src), 0)
	if s.rip == nil || s.cfg.RIP.Dialect != rip.Course ||
		s.rip.Input(now, from, i, payload) != rip.Taken {
		return ip.DropRIP
	}
	s.learn()
	return ip.DropNone
}

// outputRIP queues the messages that RIP wants to send.
func (s *Stack) outputRIP(now clock.Time) {
	if s.rip == nil {
		return
	}
	for s.out.bytes < maxQueuedBytes/2 {
		var m rip.Message
		if !s.rip.Output(now, &m) {
			return
		}
		h := ip.Header{Protocol: ip.ProtoRIP, TTL: courseTTL, Dst: m.To.As4()}
		// An interface that went down in the meantime counts the drop itself.
		_ = s.sendVia(now, m.Iface, h.Dst, h, m.Payload)
	}
}

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
	for _, r := range s.cfg.Routes {
		route, ok := s.staticRoute(r)
		if !ok || route.Iface != i {
			continue
		}
		if up {
			s.routes.Insert(route)
		} else {
			s.routes.Remove(route.Prefix, ip.Static)
		}
	}
	if s.rip != nil {
		s.rip.SetLocal(now, in.Addr.Masked(), i, up)
		s.learn()
	}
	s.tcp.Rerouted()
}

// SetLoss has the share p (0 to 1) of the packets that are forwarded over
// interface i, in either direction, dropped.
func (s *Stack) SetLoss(i int, p float64) { s.interfaces[i].loss = p }

// Route returns the way that a packet to dst would take now.
func (s *Stack) Route(dst netip.Addr) (ip.Route, bool) { return s.routes.Lookup(dst.As4()) }
