package stack

import (
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/icmp"
	"github.com/tidepool-net/tidepool/internal/ip"
)

// forward passes on a packet that is for somebody else (RFC 1812 §5.2.1).
func (s *Stack) forward(now clock.Time, i int, h *ip.Header, b []byte) {
	if !s.cfg.Forwarding {
		// RFC 1122 §3.2.1.3: a host discards it, and says nothing about it.
		s.dropOne(now, i, Inbound, ip.DropNotForUs, b)
		return
	}
	route, ok := s.routes.Hop(h.Dst)
	if !ok || route.Kind != ip.Forwarded {
		s.noWay(now, i, route.Kind, b)
		return
	}
	out := &s.interfaces[route.Iface]
	if route.OnLink && s.broadcast(route.Iface, h.Dst) {
		s.directedBroadcast(now, i, route.Iface, h, b)
		return
	}
	if h.TTL <= 1 {
		s.dropOne(now, i, Inbound, ip.DropTTL, b)
		s.reportError(now, icmp.TypeTimeExceeded, icmp.CodeTTL, b)
		return
	}
	s.interfaces[i].rx.forwarded++ // what befalls it from here on is counted at the way out
	switch {
	case route.OnLink && !s.present(route.Iface, h.Dst):
		s.dropOne(now, route.Iface, Outbound, ip.DropUnknownNeighbor, b)
		s.reportError(now, icmp.TypeUnreachable, icmp.CodeHost, b)
	case !out.up:
		s.dropOne(now, route.Iface, Outbound, ip.DropInterfaceDown, b)
		s.reportError(now, icmp.TypeUnreachable, icmp.CodeHost, b)
	case len(b) > out.MTU && h.DF:
		s.dropOne(now, route.Iface, Outbound, ip.DropTooBig, b)
		s.reportTooBig(now, out.MTU, b)
	case s.loses(i, route.Iface):
		s.dropOne(now, route.Iface, Outbound, ip.DropLossy, b)
	default:
		s.stamp(now, h, b, out.addr)
		ip.Forward(b)
		s.out.forward = append(s.out.forward, run{
			iface: route.Iface, hop: route.Next, data: b, size: len(b), sound: s.in.checked,
		})
		ends := ip.Ends(b)
		*s.flows.of(ends) = flow{
			ends: ends, in: i, out: route.Iface, hop: route.Next, mtu: out.MTU,
			lossy: s.interfaces[i].loss > 0 || out.loss > 0,
		}
	}
}

// noWay drops a packet that no route leads on, or one that leads nowhere on purpose.
func (s *Stack) noWay(now clock.Time, i int, kind ip.Kind, b []byte) {
	switch kind {
	case ip.Forwarded:
		s.dropOne(now, i, Inbound, ip.DropNoRoute, b)
		s.reportError(now, icmp.TypeUnreachable, icmp.CodeNet, b)
	case ip.Unreachable:
		s.dropOne(now, i, Inbound, ip.DropBlackhole, b)
		s.reportError(now, icmp.TypeUnreachable, icmp.CodeHost, b)
	case ip.Prohibited:
		// RFC 1812 §5.2.7.1: of the three codes for that, 9 and 10 are others' to use.
		s.dropOne(now, i, Inbound, ip.DropProhibited, b)
		s.reportError(now, icmp.TypeUnreachable, icmp.CodeAdminProhibited, b)
	case ip.Blackhole:
		s.dropOne(now, i, Inbound, ip.DropBlackhole, b)
	}
}

// loses draws whether lossyforward drops a packet that came by interface in and
// leaves by out: once, with the larger share of the two, so that a share set on
// one interface is for both directions there, and one set on all is not doubled.
func (s *Stack) loses(in, out int) bool {
	p := max(s.interfaces[in].loss, s.interfaces[out].loss)
	return p > 0 && s.rng.Float64() < p
}
