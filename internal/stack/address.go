package stack

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/udp"
)

// fewAddrs is the number of addresses up to which comparing them one by one is faster than a map.
const fewAddrs = 8

// addresses are the node's own addresses and their networks, in the form that each packet's check
// needs.
type addresses struct {
	hosts    []ip.Addr
	networks []network
	few      uint32 // the host bits of the smallest network; 0: no network
}

// network is a network with a broadcast address.
type network struct{ prefix, hosts uint32 } // hosts: the bits that tell nodes apart

func (a *addresses) add(addr ip.Addr, bits int) {
	a.hosts = append(a.hosts, addr)
	if bits < 31 { // RFC 3021 §2.2
		hosts := ^uint32(0) >> bits
		if len(a.networks) == 0 || hosts < a.few {
			a.few = hosts
		}
		a.networks = append(a.networks, network{be32(addr) &^ hosts, hosts})
	}
}

// special reports whether an address is not that of another host: multicast, loopback, reserved or
// zero (RFC 1122 §3.2.1.3).
func special(a ip.Addr) bool { return a[0] >= 224 || a[0] == 127 || a[0] == 0 }

// loopback reports whether an address is in 127/8.
func loopback(a ip.Addr) bool { return a[0] == 127 }

// Group reports whether an address is multicast, reserved or the limited broadcast (RFC 1122
// §3.2.1.3).
func Group(dst netip.Addr) bool { return dst.As4()[0] >= 224 }

func be32(a ip.Addr) uint32 {
	return uint32(a[0])<<24 | uint32(a[1])<<16 | uint32(a[2])<<8 | uint32(a[3])
}

// hosts returns the mask of the host bits of an interface's network. It returns false if the
// network has no broadcast address (RFC 3021 §2.1, §2.2) or the interface was removed.
func (in *iface) hosts() (mask uint32, ok bool) {
	bits := in.Addr.Bits()
	if bits < 0 || bits >= 31 {
		return 0, false
	}
	return ^uint32(0) >> bits, true
}

// all reports whether an address is the broadcast address of interface i's network, in today's form
// or that of 4.2BSD (all zeros).
func (ifs *Interfaces) all(i int, a ip.Addr) bool {
	in := &ifs.list[i]
	mask, ok := in.hosts()
	host := be32(a) & mask
	return ok && be32(a)&^mask == be32(in.addr)&^mask && (host == 0 || host == mask)
}

// isPeer reports whether an address that arrived at interface i can be one end of a connection.
func (ifs *Interfaces) isPeer(i int, a ip.Addr) bool {
	if !special(a) && !ifs.all(i, a) {
		return true // the common case needs no lookup
	}
	_, self := ifs.own[a]
	return self || ifs.in.self && loopback(a)
}

// broadcast reports whether an address is the broadcast address of interface i's network.
func (ifs *Interfaces) broadcast(i int, a ip.Addr) bool {
	in := &ifs.list[i]
	mask, ok := in.hosts()
	return ok && be32(a) == be32(in.addr)|mask
}

// many reports whether an address is a broadcast or multicast address on interface i's link.
func (ifs *Interfaces) many(i int, a ip.Addr) bool {
	return a[0] >= 224 && (isGroup(a) || a == limited) || ifs.broadcast(i, a)
}

// anyMany reports whether an address is a broadcast or multicast address on any link.
func (ifs *Interfaces) anyMany(a ip.Addr) bool {
	for i := range ifs.list {
		if ifs.many(i, a) {
			return true
		}
	}
	return false
}

// isOurs reports whether dst is one of the node's addresses, a broadcast address of the link on
// which the packet arrived, or a group that the node has joined there (RFC 1122 §3.2.1.3).
func (ifs *Interfaces) isOurs(i int, dst ip.Addr) bool {
	if ifs.isHost(dst) {
		return true
	}
	if isGroup(dst) {
		return ifs.joined(i, dst)
	}
	return dst == limited || ifs.broadcast(i, dst)
}

// IsBroadcast reports whether an address is a broadcast address of one of the node's links.
func (ifs *Interfaces) IsBroadcast(dst netip.Addr) bool {
	a := dst.As4()
	if a == [4]byte{255, 255, 255, 255} {
		return true
	}
	for i := range ifs.list {
		if ifs.all(i, a) {
			_, self := ifs.own[a]
			return !self
		}
	}
	return false
}

// isNetwork reports whether a prefix is that of an interface, which RIP does not have to learn.
func (ifs *Interfaces) isNetwork(p netip.Prefix) bool {
	return slices.ContainsFunc(ifs.list, func(f iface) bool { return f.Addr.Masked() == p })
}

// self reports whether an address is the node's own, and returns its interface. The stack uses the
// weak host model of RFC 1122 §3.3.4.2: an address belongs to the node, so a router can be reached
// by any of its addresses over any interface, and by itself even while the interface is down.
// Addresses of 127/8 are the node's too, for its own packets (RFC 1122 §3.2.1.3).
func (ifs *Interfaces) self(a ip.Addr) (int, bool) {
	i, own := ifs.own[a]
	return i, own || loopback(a)
}

// present reports whether dst can be on the link of interface i, as far as the node knows.
func (ifs *Interfaces) present(i int, dst ip.Addr) bool {
	nodes := ifs.list[i].Neighbors
	return nodes == nil || slices.Contains(nodes, netip.AddrFrom4(dst))
}

// loopback returns the index of the loopback interface, which follows those of the links.
func (ifs *Interfaces) loopback() int { return len(ifs.list) }

// isMany reports whether an address is a broadcast address of one of the node's links, in today's
// form or that of 4.2BSD (RFC 1122 §3.3.6).
func (ifs *Interfaces) isMany(a ip.Addr) bool {
	v := be32(a)
	// The last bits of every broadcast address are all zeros or all ones. This check avoids the
	// search: a router can have a thousand networks.
	if host := v & ifs.addrs.few; host != 0 && host != ifs.addrs.few {
		return false
	}
	for _, n := range ifs.addrs.networks {
		if host := v & n.hosts; v&^n.hosts == n.prefix && (host == 0 || host == n.hosts) {
			return !ifs.isHost(a)
		}
	}
	return false
}

// isHost reports whether an address is one of the node's own. Those of 127/8 count; screen drops
// packets from links that use them.
func (ifs *Interfaces) isHost(a ip.Addr) bool {
	if loopback(a) {
		return true
	}
	if len(ifs.addrs.hosts) > fewAddrs {
		_, own := ifs.own[a]
		return own
	}
	return slices.Contains(ifs.addrs.hosts, a)
}

// ours returns an error for a socket address that is neither the node's nor the zero address.
func (ifs *Interfaces) ours(a netip.Addr) error {
	a = a.Unmap()
	if !a.IsValid() || a.IsUnspecified() {
		return nil
	}
	if a.Is4() && ifs.isHost(a.As4()) {
		return nil
	}
	return fmt.Errorf("%v: %w", a, ErrNotOurs)
}

// onLink returns the interface whose network contains an address. If several do, it returns that of
// the longest prefix. A point-to-point link has a network of one address, and its neighbor is the
// other end.
func (ifs *Interfaces) onLink(a netip.Addr) (int, bool) {
	best, bits := 0, -1
	for i := range ifs.list {
		if slices.Contains(ifs.list[i].Neighbors, a) {
			return i, true
		}
		if p := ifs.list[i].Addr; p.Masked().Contains(a) && p.Bits() > bits {
			best, bits = i, p.Bits()
		}
	}
	return best, bits >= 0
}

// ErrNotGroup is returned for an address that is not multicast, or an interface that does not
// exist.
var ErrNotGroup = errors.New("not a multicast group on an interface")

// allHosts is the group of all hosts (RFC 1112 §7.2).
var allHosts = ip.Addr{224, 0, 0, 1}

// limited is the limited broadcast address.
var limited = ip.Addr{255, 255, 255, 255}

// membership is a group on the link of one interface.
type membership struct {
	iface int
	group ip.Addr
}

// Join makes the stack accept packets to a group at interface i, for a protocol such as RIP.
// Sockets join with Datagrams.Join. No IGMP is sent: links deliver each multicast packet to all of
// their nodes.
func (ifs *Interfaces) Join(i int, group netip.Addr) error {
	if err := ifs.checkGroup(i, group); err != nil {
		return err
	}
	if ifs.groups == nil {
		ifs.groups = map[membership]int{}
	}
	ifs.groups[membership{i, group.As4()}]++
	return nil
}

// Leave undoes one Join.
func (ifs *Interfaces) Leave(i int, group netip.Addr) error {
	if err := ifs.checkGroup(i, group); err != nil {
		return err
	}
	m := membership{i, group.As4()}
	if ifs.groups[m] == 0 {
		return fmt.Errorf("%v: %w", group, udp.ErrNotMember)
	}
	if ifs.groups[m]--; ifs.groups[m] == 0 {
		delete(ifs.groups, m)
	}
	return nil
}

func (ifs *Interfaces) checkGroup(i int, group netip.Addr) error {
	if i < 0 || i >= len(ifs.list) || !group.Is4() || !isGroup(group.As4()) {
		return fmt.Errorf("%v on interface %d: %w", group, i, ErrNotGroup)
	}
	return nil
}

// isGroup reports whether an address is a multicast address (RFC 1112 §4).
func isGroup(a ip.Addr) bool { return a[0]&0xf0 == 224 }

// joined reports whether a protocol or socket of this node has joined the group at interface i.
func (ifs *Interfaces) joined(i int, group ip.Addr) bool {
	return group == allHosts || ifs.groups[membership{i, group}] > 0 || ifs.udp.Joined(i, group)
}
