package stack

import (
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/ip"
)

// screen checks the addresses of a packet that arrived at interface i: src and dst of h. It returns
// DropNone, or the reason to drop the packet silently (RFC 1122 §3.2.1.3, RFC 1812 §5.3.7). Packets
// of the node to itself are not checked, because the rules are for links.
func (rt *Routing) screen(i int, h *ip.Header, src, dst v4) ip.DropReason {
	if rt.in.self {
		return ip.DropNone
	}
	if src.isSpecial() || dst.isSpecial() {
		if !exempt(src, dst) {
			return ip.DropMartian
		}
	} else if rt.ifs.isMany(src) {
		return ip.DropMartian // a broadcast address is not a host
	}
	if rt.ifs.isHost(src) {
		// No other node may use this node's address as its source. If it is also the destination,
		// this is a LAND attack.
		return ip.DropOwnSource
	}
	if rt.knobs.IP.ReversePath != ReverseOff && src != 0 && !rt.comesBack(i, h.Src) {
		return ip.DropReversePath
	}
	return ip.DropNone
}

// exempt reports whether a packet with a special address is valid: one to a multicast group or a
// broadcast address, or one to all from a host that has no address yet (RFC 1122 §3.2.1.3 (a)).
func exempt(src, dst v4) bool {
	if src == 0 {
		return dst == limited
	}
	return !src.isSpecial() && (dst.isGroup() || dst == limited)
}

// comesBack reports whether the source passes the reverse path filter (RFC 3704 §2).
func (rt *Routing) comesBack(i int, src netip.Addr) bool {
	hop, ok := rt.hop(src)
	return ok && (rt.knobs.IP.ReversePath == ReverseLoose || hop.Iface == i)
}
