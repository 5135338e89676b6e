package stack

import (
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/ip"
)

// screen checks the addresses of a packet that arrived at interface i. It returns DropNone, or the
// reason to drop the packet silently (RFC 1122 §3.2.1.3, RFC 1812 §5.3.7). Packets of the node to
// itself are not checked, because the rules are for links.
func (rt *Routing) screen(i int, h *ip.Header) ip.DropReason {
	if rt.in.self {
		return ip.DropNone
	}
	var valid, own bool
	if h.Is6() {
		if len(rt.ifs.list[i].IPv6) == 0 {
			return ip.DropVersion // the interface has no IPv6 address
		}
		valid = !isSpecial(h.Src) && !isSpecial(h.Dst) || exempt6(h.Src, h.Dst)
		own = rt.ifs.isOwn(h.Src)
	} else {
		src, dst := v4Of(h.Src), v4Of(h.Dst)
		if src.isSpecial() || dst.isSpecial() {
			valid = exempt(src, dst)
		} else {
			valid = !rt.ifs.isAnyBroadcast(src) // a broadcast address is not a host's
		}
		_, own = rt.ifs.addrs.find4(src)
	}
	if !valid {
		return ip.DropMartian
	}
	if own {
		// No other node may use this node's address as its source. If it is also the destination,
		// this is a LAND attack.
		return ip.DropOwnSource
	}
	if rt.knobs.IP.ReversePath != ReverseOff && !isUnset(h.Src) && !rt.passesReversePath(i, h.Src) {
		return ip.DropReversePath
	}
	return ip.DropNone
}

// exempt reports whether a packet with a special address is valid. This is so for a multicast group
// or a broadcast address as its destination, and for a packet to all nodes from a host that has no
// address yet (RFC 1122 §3.2.1.3 (a)).
func exempt(src, dst v4) bool {
	if src == 0 {
		return dst == limited
	}
	return !src.isSpecial() && (dst.isGroup() || dst == limited)
}

// exempt6 is like exempt, for IPv6 (RFC 4291 §2.5.2). A group of interface-local or reserved scope
// is not on a link (RFC 4291 §2.7).
func exempt6(src, dst netip.Addr) bool {
	const scope, link = 1, 2
	return dst.IsMulticast() && dst.As16()[scope]&0x0f >= link &&
		(src.IsUnspecified() || !isSpecial(src))
}

// passesReversePath reports whether the source passes the reverse path filter (RFC 3704 §2).
func (rt *Routing) passesReversePath(i int, src netip.Addr) bool {
	hop, ok := rt.hop(src)
	return ok && (rt.knobs.IP.ReversePath == ReverseLoose || hop.Iface == i)
}

// isOurs reports whether dst is an address of the node (also an anycast one), or a broadcast
// address or joined group of the link on which the packet arrived (RFC 1122 §3.2.1.3).
func (ifs *Interfaces) isOurs(i int, dst netip.Addr) bool {
	if !dst.Is4() {
		return ifs.isOwn(dst) || dst.IsMulticast() && ifs.joined(i, dst) || ifs.isAnycast(dst)
	}
	a := v4Of(dst)
	_, own := ifs.addrs.find4(a)
	return own || a>>24 == 127 || a.isGroup() && ifs.joined(i, dst) || a == limited ||
		ifs.broadcast(i, a)
}

// isPeer reports whether an address in a packet from interface i can be one end of a connection.
func (ifs *Interfaces) isPeer(i int, a netip.Addr) bool {
	if !isSpecial(a) && !ifs.isNetBroadcast(i, v4Of(a)) {
		return true // the common case needs no lookup
	}
	_, own := ifs.addrs.find(a)
	return own || ifs.in.self && a.IsLoopback()
}
