package stack

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/udp"
)

// fewAddrs is the number of addresses up to which comparing them one by one is faster than a map.
const fewAddrs = 8

// v4 is an IPv4 address as a number, for rules that only IPv4 has. 0 also stands for the zero
// netip.Addr.
type v4 uint32

func v4Of(a netip.Addr) v4 {
	if !a.Is4() {
		return 0
	}
	b := a.As4()
	return v4(binary.BigEndian.Uint32(b[:]))
}

// isSpecial reports whether an address cannot be that of another host: multicast, loopback,
// reserved or zero (RFC 1122 §3.2.1.3).
func (a v4) isSpecial() bool { return a>>24 >= 224 || a>>24 == 127 || a>>24 == 0 }

// isGroup reports whether an address is a multicast address (RFC 1112 §4).
func (a v4) isGroup() bool { return a>>28 == 0xe }

// limited is the limited broadcast address.
const limited v4 = 0xffffffff

// IsGroup reports whether an address is multicast, reserved or the limited broadcast (RFC 1122
// §3.2.1.3, RFC 4291 §2.7).
func IsGroup(dst netip.Addr) bool { return dst.IsMulticast() || v4Of(dst)>>24 >= 224 }

// isGroup reports whether an address is multicast or the limited broadcast.
func isGroup(dst netip.Addr) bool {
	if !dst.Is4() {
		return dst.IsMulticast()
	}
	a := v4Of(dst)
	return a.isGroup() || a == limited
}

// isSpecial reports whether an address cannot be that of a host on a network. For IPv4 that is
// v4.isSpecial. For IPv6 it is multicast, loopback, unspecified (RFC 4291 §2.5.2, §2.5.3) and
// IPv4-mapped, which is a form of the socket interface and not an address on the wire (RFC 4291
// §2.5.5.2).
func isSpecial(a netip.Addr) bool {
	if a.Is4() {
		return v4Of(a).isSpecial()
	}
	return a.IsMulticast() || a.IsLoopback() || isUnset(a) || a.Is4In6()
}

// headerLen returns the length of the IP header, without options, of packets to an address.
func headerLen(a netip.Addr) int {
	if a.Is6() {
		return ip.HeaderLen6
	}
	return ip.HeaderLen
}

// isUnset reports whether an address is the zero Addr, 0.0.0.0 or ::.
func isUnset(a netip.Addr) bool { return !a.IsValid() || a.IsUnspecified() }

// addresses contains the node's own addresses and their networks, in a form that can be checked
// quickly for each packet.
type addresses struct {
	hosts    []host
	byAddr   map[v4]int         // interfaces by address; used for more than fewAddrs hosts
	ipv6     map[netip.Addr]int // interfaces by IPv6 address; link-local addresses have their zone
	networks []network
	minHosts v4 // host bits of the smallest network; 0: no network
}

// host is an address of the node.
type host struct {
	addr  v4
	iface int32
}

// network is a network with a broadcast address. The zero network is one without (RFC 3021 §2.1,
// §2.2).
type network struct{ prefix, hosts v4 } // hosts: the bits that distinguish hosts

func networkOf(p netip.Prefix) network {
	if p.Bits() >= 31 {
		return network{}
	}
	hosts := v4(^uint32(0) >> p.Bits())
	return network{v4Of(p.Addr()) &^ hosts, hosts}
}

// isBroadcast reports whether an address is the network's broadcast address, in today's form or
// that of 4.2BSD (all zeros).
func (n network) isBroadcast(a v4) bool {
	host := a & n.hosts
	return a&^n.hosts == n.prefix && (host == 0 || host == n.hosts) && n.hosts != 0
}

func (a *addresses) add(f *iface, i int) {
	for _, p := range f.IPv6 {
		a.ipv6[f.zoned(p.Addr())] = i
	}
	if !f.Addr.IsValid() {
		return
	}
	addr := v4Of(f.addr)
	a.hosts = append(a.hosts, host{addr, int32(i)})
	a.byAddr[addr] = i
	if n := f.ipv4; n.hosts != 0 {
		if len(a.networks) == 0 || n.hosts < a.minHosts {
			a.minHosts = n.hosts
		}
		a.networks = append(a.networks, n)
	}
}

// find returns the interface with the address.
func (a *addresses) find(addr netip.Addr) (int, bool) {
	if !addr.Is4() {
		i, ok := a.ipv6[addr]
		return i, ok
	}
	return a.find4(v4Of(addr))
}

// find4 is like find, for IPv4.
func (a *addresses) find4(addr v4) (int, bool) {
	if len(a.hosts) > fewAddrs {
		i, ok := a.byAddr[addr]
		return i, ok
	}
	for _, h := range a.hosts {
		if h.addr == addr {
			return int(h.iface), true
		}
	}
	return 0, false
}

// isNetBroadcast reports whether an address is the broadcast address of interface i's network, in
// today's form or that of 4.2BSD (all zeros).
func (ifs *Interfaces) isNetBroadcast(i int, a v4) bool { return ifs.list[i].ipv4.isBroadcast(a) }

// broadcast reports whether an address is the broadcast address of interface i's network.
func (ifs *Interfaces) broadcast(i int, a v4) bool {
	n := &ifs.list[i].ipv4
	return a == n.prefix|n.hosts && n.hosts != 0
}

// isBroadcastOrGroup reports whether an address is a broadcast or multicast address on the link of
// interface i.
func (ifs *Interfaces) isBroadcastOrGroup(i int, a netip.Addr) bool {
	return isGroup(a) || ifs.broadcast(i, v4Of(a))
}

// isBroadcastOrGroupAnywhere is like isBroadcastOrGroup, for all links.
func (ifs *Interfaces) isBroadcastOrGroupAnywhere(a netip.Addr) bool {
	for i := range ifs.list {
		if ifs.isBroadcastOrGroup(i, a) {
			return true
		}
	}
	return false
}

// IsBroadcast reports whether an address is a broadcast address of one of the node's links.
func (ifs *Interfaces) IsBroadcast(dst netip.Addr) bool {
	a := v4Of(dst)
	return a == limited || dst.Is4() && ifs.isAnyBroadcast(a)
}

// isNetwork reports whether a prefix is the network of an interface.
func (ifs *Interfaces) isNetwork(p netip.Prefix) bool {
	return slices.ContainsFunc(ifs.list, func(f iface) bool {
		return slices.Contains(f.networks, p)
	})
}

// self reports whether an address is the node's own, and returns its interface. The stack uses the
// weak host model of RFC 1122 §3.3.4.2: an address belongs to the node, so others reach a router at
// any of its addresses over any interface, and it reaches itself there even while the interface is
// down. Addresses of 127/8 and ::1 are the node's too, for its own packets (RFC 1122 §3.2.1.3, RFC
// 4291 §2.5.3). A link-local address belongs to its interface.
func (ifs *Interfaces) self(a netip.Addr) (int, bool) {
	if a.Is4() {
		b := v4Of(a)
		i, own := ifs.addrs.find4(b)
		return i, own || b>>24 == 127
	}
	i, own := ifs.addrs.ipv6[a]
	return i, own || a.IsLoopback()
}

// present reports whether dst can be on the link of interface i, as far as the node knows.
func (ifs *Interfaces) present(i int, dst netip.Addr) bool {
	nodes := ifs.list[i].Neighbors
	return nodes == nil || slices.Contains(nodes, dst.WithZone(""))
}

// loopback returns the index of the loopback interface, which comes after those of the links.
func (ifs *Interfaces) loopback() int { return len(ifs.list) }

// isAnyBroadcast reports whether an address is a broadcast address of one of the node's links, in
// today's form or that of 4.2BSD (RFC 1122 §3.3.6).
func (ifs *Interfaces) isAnyBroadcast(a v4) bool {
	// The host bits of every broadcast address are all zeros or all ones. This check avoids the
	// search, because a router can have a thousand networks.
	if host := a & ifs.addrs.minHosts; host != 0 && host != ifs.addrs.minHosts {
		return false
	}
	for _, n := range ifs.addrs.networks {
		if n.isBroadcast(a) {
			_, own := ifs.addrs.find4(a)
			return !own
		}
	}
	return false
}

// isOwn reports whether an address is one of the node's own, including 127/8. Packets that arrive
// from a link with an address of 127/8 do not get here, because screen drops them.
func (ifs *Interfaces) isOwn(a netip.Addr) bool {
	_, self := ifs.self(a)
	return self
}

// ours returns an error for a socket address that is neither the node's nor the zero address.
func (ifs *Interfaces) ours(a netip.Addr) error {
	a = a.Unmap()
	if !a.IsValid() || a.IsUnspecified() {
		return nil
	}
	if ifs.isOwn(a) {
		return nil
	}
	return fmt.Errorf("%v: %w", a, ErrNotOurs)
}

// onLink returns the interface over which an address is reached directly: the address's zone, or
// the interface with this neighbor (for example, the other end of a point-to-point link), or the
// one whose network contains the address. If there are several networks, the longest prefix wins.
func (ifs *Interfaces) onLink(a netip.Addr) (int, bool) {
	if a.Zone() != "" {
		return ifs.zone(a)
	}
	best, bits := 0, -1
	for i := range ifs.list {
		if slices.Contains(ifs.list[i].Neighbors, a) {
			return i, true
		}
		for _, p := range ifs.list[i].networks {
			if p.Contains(a) && p.Bits() > bits {
				best, bits = i, p.Bits()
			}
		}
	}
	return best, bits >= 0
}

// ErrNotGroup means that an address is not multicast, or that the interface cannot join it.
var ErrNotGroup = errors.New("not a multicast group on an interface")

// allHosts is the group of all hosts (RFC 1112 §7.2).
var allHosts = ip.V4(224, 0, 0, 1)

// membership is a group on the link of one interface.
type membership struct {
	iface int
	group netip.Addr
}

// Join makes the stack accept packets to a group at interface i, for a protocol such as RIP.
// Sockets join with Datagrams.Join. On interfaces with Discovery, the node reports the group. Other
// links deliver each multicast packet to all of their nodes.
func (ifs *Interfaces) Join(i int, group netip.Addr) error {
	if err := ifs.checkGroup(i, group); err != nil {
		return err
	}
	if ifs.groups == nil {
		ifs.groups = map[membership]int{}
	}
	ifs.groups[membership{i, group}]++
	ifs.joins++
	return nil
}

// Leave undoes one Join.
func (ifs *Interfaces) Leave(i int, group netip.Addr) error {
	if err := ifs.checkGroup(i, group); err != nil {
		return err
	}
	m := membership{i, group}
	if ifs.groups[m] == 0 {
		return fmt.Errorf("%v: %w", group, udp.ErrNotMember)
	}
	ifs.joins++
	if ifs.groups[m]--; ifs.groups[m] == 0 {
		delete(ifs.groups, m)
	}
	return nil
}

func (ifs *Interfaces) checkGroup(i int, group netip.Addr) error {
	if i < 0 || i >= len(ifs.list) || !group.IsMulticast() || !ifs.list[i].hasFamily(group) {
		return fmt.Errorf("%v on interface %d: %w", group, i, ErrNotGroup)
	}
	return nil
}

// joined reports whether a protocol or socket of this node has joined the group at interface i.
func (ifs *Interfaces) joined(i int, group netip.Addr) bool {
	return group == allHosts || ifs.groups[membership{i, group}] > 0 ||
		ifs.udp.Joined(i, group) || ifs.required(i, group) || ifs.discovery.isMember(i, group)
}

// groupChanges returns a number that changes with the memberships.
func (ifs *Interfaces) groupChanges() int { return ifs.joins + ifs.udp.GroupChanges() }

// groupsOf returns the groups that protocols and sockets have joined at interface i.
func (ifs *Interfaces) groupsOf(i int) []netip.Addr {
	list := ifs.udp.Groups(nil, i)
	for m := range ifs.groups {
		if m.iface == i {
			list = append(list, m.group)
		}
	}
	slices.SortFunc(list, netip.Addr.Compare)
	return slices.Compact(list)
}
