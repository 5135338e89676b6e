package stack

import (
	"net/netip"
	"slices"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/icmp"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/tcp"
	"github.com/tidepool-net/tidepool/internal/udp"
)

// SetGuest shares the node's addresses with another host, the guest: the kernel whose programs run
// as this host. The guest gets the TCP and UDP packets to the node's addresses that none of the
// node's own connections, listeners and sockets receives, and a copy of each echo reply and ICMP
// error. SetGuest makes the stack call deliver with each of them. The packet is valid until the
// next Output; checked says that its transport checksum is correct. A nil deliver ends the sharing.
func (s *Stack) SetGuest(deliver func(checked bool, packet []byte)) { s.local.guest = deliver }

// InputGuest sends packets of the guest. Their sources must be addresses of this node. It borrows
// the packets until Output is drained, as Input does. The node is not a hop on their path: it does
// not decrement the TTL.
func (s *Stack) InputGuest(now clock.Time, checked bool, packets [][]byte) {
	s.out.memory.reuse()
	s.in.checked = checked
	for _, b := range packets {
		s.fwd.sendForGuest(now, b)
	}
	s.in.checked = false
}

// sendForGuest sends a packet of the guest.
func (fw *forwarder) sendForGuest(now clock.Time, b []byte) {
	h, _, reason := ip.ParseHeader(b)
	if reason != ip.DropNone || !fw.ifs.isOwn(h.Src) || isSpecial(h.Dst) {
		return // drops the packet uncounted, because no interface has received it
	}
	b = b[:h.TotalLen]
	from, _ := fw.ifs.self(h.Src)
	route, ok := fw.routing.table.Hop(h.Dst)
	if !ok || route.Kind != ip.Forwarded {
		fw.dropUnroutable(now, from, route.Kind, b)
		return
	}
	if !fw.blocked(now, from, &route, &h, b) {
		fw.enqueue(route.Iface, route.Next, b)
	}
}

// forGuest passes a packet for one of this node's addresses to the guest, unless the node itself
// uses the packet. ICMP errors and echo replies are for both.
func (l *local) forGuest(now clock.Time, i int, h *ip.Header, b, payload []byte) (taken bool) {
	if !l.ifs.isOwn(h.Dst) || len(payload) < icmp.HeaderLen {
		return false
	}
	port := func(at int) uint16 { return uint16(payload[at])<<8 | uint16(payload[at+1]) }
	from, to := netip.AddrPort{}, netip.AddrPort{}
	switch h.Protocol {
	case ip.ProtoTCP, ip.ProtoUDP:
		from = netip.AddrPortFrom(h.Src, port(0))
		to = netip.AddrPortFrom(h.Dst, port(2))
	}
	switch {
	case h.Protocol == ip.ProtoTCP:
		t := tcp.Tuple{
			LocalAddr: to.Addr(), LocalPort: to.Port(),
			RemoteAddr: from.Addr(), RemotePort: from.Port(),
		}
		taken = !l.in.self && !l.catching.tcp && !l.tcp.Knows(t) && !l.tcp.Accepts(to)
	case h.Protocol == ip.ProtoUDP:
		taken = !l.in.self && !l.catching.udp && !l.isRIPPort(to.Port()) &&
			!l.udp.Receives(udp.Flow{Local: to, Remote: from})
	case h.Protocol == icmpOf(h.Dst):
		request, reply := icmp.EchoTypes(h.Dst)
		m, ok := icmp.Parse(payload, h.Src, h.Dst)
		if ok && (m.Type == reply && !l.in.self || m.Type != request && isError(m.Type)) {
			l.passToGuest(now, h, b)
		}
		return false
	}
	if taken {
		l.passToGuest(now, h, b)
		l.ifs.list[i].rx.delivered++
	}
	return taken
}

// passToGuest passes a packet to the guest. It copies a packet if the stack reuses the packet's
// memory before Output.
func (l *local) passToGuest(now clock.Time, h *ip.Header, b []byte) {
	l.flushTrain(now) // keeps the order of packets
	if h.FragmentHeader || l.in.self {
		b = slices.Clone(b)
	}
	l.guest(l.in.checked, b)
}

func isError(t icmp.Type) bool {
	switch t {
	case icmp.TypeUnreachable, icmp.TypeTimeExceeded, icmp.TypeParameterProblem,
		icmp.TypeUnreachable6, icmp.TypeTooBig, icmp.TypeTimeExceeded6,
		icmp.TypeParameterProblem6:
		return true
	}
	return false
}

// isRIPPort reports whether a UDP port belongs to a routing protocol of this node.
func (l *local) isRIPPort(port uint16) bool {
	for _, rp := range l.rips {
		if rp.port != 0 && rp.port == port {
			return true
		}
	}
	return false
}
