package stack

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/udp"
)

// ErrNotGroup is an address that is not that of a host group, or an interface that
// does not exist.
var ErrNotGroup = errors.New("not a multicast group on an interface")

// allHosts is the group that every host is in (RFC 1112 §7.2).
var allHosts = ip.Addr{224, 0, 0, 1}

// limited is the broadcast to all on a link, whatever network is on it.
var limited = ip.Addr{255, 255, 255, 255}

// membership is a group on the link of one interface.
type membership struct {
	iface int
	group ip.Addr
}

// Join has the stack take what interface i brings for a group, for whoever reads it
// there: RIP, say. A socket joins by JoinUDP. Nobody on the link is told, for its
// nodes get a copy each of what is sent to a group.
func (s *Stack) Join(i int, group netip.Addr) error {
	if err := s.checkGroup(i, group); err != nil {
		return err
	}
	if s.groups == nil {
		s.groups = map[membership]int{}
	}
	s.groups[membership{i, group.As4()}]++
	return nil
}

// Leave undoes one Join.
func (s *Stack) Leave(i int, group netip.Addr) error {
	if err := s.checkGroup(i, group); err != nil {
		return err
	}
	m := membership{i, group.As4()}
	if s.groups[m] == 0 {
		return fmt.Errorf("%v: %w", group, udp.ErrNotMember)
	}
	if s.groups[m]--; s.groups[m] == 0 {
		delete(s.groups, m)
	}
	return nil
}

// JoinUDP has a socket receive what interface i brings for a group and its port.
func (s *Stack) JoinUDP(u *udp.Socket, i int, group netip.Addr) error {
	if err := s.checkGroup(i, group); err != nil {
		return err
	}
	return u.Join(i, group.As4())
}

// LeaveUDP undoes JoinUDP.
func (s *Stack) LeaveUDP(u *udp.Socket, i int, group netip.Addr) error {
	if err := s.checkGroup(i, group); err != nil {
		return err
	}
	return u.Leave(i, group.As4())
}

func (s *Stack) checkGroup(i int, group netip.Addr) error {
	if i < 0 || i >= len(s.interfaces) || !group.Is4() || !isGroup(group.As4()) {
		return fmt.Errorf("%v on interface %d: %w", group, i, ErrNotGroup)
	}
	return nil
}

// isGroup reports whether an address is that of a host group (RFC 1112 §4).
func isGroup(a ip.Addr) bool { return a[0]&0xf0 == 224 }

// joined reports whether anybody here is in the group on the link of interface i.
func (s *Stack) joined(i int, group ip.Addr) bool {
	return group == allHosts || s.groups[membership{i, group}] > 0 || s.udp.Joined(i, group)
}

// broadcast reports whether an address is the broadcast of interface i's network.
func (s *Stack) broadcast(i int, a ip.Addr) bool {
	in := &s.interfaces[i]
	mask, ok := in.hosts()
	return ok && be32(a) == be32(in.addr)|mask
}

// hosts are the bits that tell the hosts of an interface's network from each other; false: it has
// no broadcast (RFC 3021 §2.1, §2.2), or the interface is no more.
func (in *iface) hosts() (mask uint32, ok bool) {
	bits := in.Addr.Bits()
	if bits < 0 || bits >= 31 {
		return 0, false
	}
	return ^uint32(0) >> bits, true
}

// many reports whether an address is that of all, or of a group, on interface i's link.
func (s *Stack) many(i int, a ip.Addr) bool {
	return a[0] >= 224 && (isGroup(a) || a == limited) || s.broadcast(i, a)
}

// anyMany reports whether an address is that of all, or of a group, on any link.
func (s *Stack) anyMany(a ip.Addr) bool {
	for i := range s.interfaces {
		if s.many(i, a) {
			return true
		}
	}
	return false
}

// outlet is the interface that packets for a group, or the limited broadcast, leave
// by unless somebody chose one: that of the route there, or the first that is up.
func (s *Stack) outlet(dst ip.Addr) (int, bool) {
	if hop, ok := s.hop(dst); ok && s.interfaces[hop.Iface].up {
		return hop.Iface, true
	}
	for i := range s.interfaces {
		if s.interfaces[i].up {
			return i, true
		}
	}
	return 0, false
}

// link finds the interface on whose link all nodes, or those of a group, are to get a
// socket's datagram; many is false when dst is one host.
func (s *Stack) link(u *udp.Socket, dst ip.Addr) (i int, many bool, err error) {
	if !isGroup(dst) && dst != limited {
		hop, ok := s.hop(dst)
		return hop.Iface, ok && hop.OnLink && s.broadcast(hop.Iface, dst), nil
	}
	if i = u.Options().Outlet - 1; i >= 0 && i < len(s.interfaces) {
		return i, true, nil
	}
	if local := u.Local().Addr(); local.Is4() {
		if i, ok := s.own[local.As4()]; ok {
			return i, true, nil
		}
	}
	i, ok := s.outlet(dst)
	if !ok {
		return 0, true, fmt.Errorf("%v: %w", netip.AddrFrom4(dst), ErrNoRoute)
	}
	return i, true, nil
}

// sendMany sends a socket's datagram to all on a link, or to a group there. The node
// itself gets a copy if it is among them, as RFC 1112 §6.1 has it for groups.
func (s *Stack) sendMany(
	now clock.Time, i int, u *udp.Socket, h ip.Header, payload []byte,
) error {
	o := u.Options()
	switch {
	case isGroup(h.Dst):
		h.TTL = max(o.MulticastTTL, 1)
	case !o.Broadcast:
		return fmt.Errorf("%v: %w", netip.AddrFrom4(h.Dst), ErrBroadcast)
	}
	if err := s.sendVia(now, i, h.Dst, h, payload); err != nil {
		return err
	}
	if isGroup(h.Dst) && (o.NoLoop || !s.joined(i, h.Dst)) {
		return nil
	}
	h.TotalLen = h.Size() + len(payload)
	return s.queueLocal(now, i, append(h.Append(nil), payload...))
}

// enqueue queues a packet for its next hop: a copy for each node on the link, if it is
// for all or a group, and it is known who is there. Where it is not, whatever is
// behind the link knows what such an address means.
func (s *Stack) enqueue(now clock.Time, i int, hop ip.Addr, b []byte) {
	nodes := s.interfaces[i].Neighbors
	if nodes == nil || !s.many(i, hop) {
		s.enqueueOne(packet{iface: i, hop: hop, data: b})
		return
	}
	for _, node := range nodes {
		if s.out.bytes+len(b) > maxQueuedBytes {
			s.dropOne(now, i, Outbound, ip.DropQueueFull, b)
			continue
		}
		s.enqueueOne(packet{iface: i, hop: node.As4(), data: b, shared: true})
	}
}

func (s *Stack) enqueueOne(p packet) {
	s.out.bytes += len(p.data)
	p.sound = s.out.sound
	s.out.packets = append(s.out.packets, p)
}
