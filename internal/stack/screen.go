package stack

import (
	"github.com/tidepool-net/tidepool/internal/ip"
)

// screen checks the addresses of a packet that arrived at interface i. It returns DropNone, or the
// reason to drop the packet silently (RFC 1122 §3.2.1.3, RFC 1812 §5.3.7). Packets of the node to
// itself are not checked, because the rules are for links.
func (rt *Routing) screen(i int, h *ip.Header) ip.DropReason {
	if rt.in.self {
		return ip.DropNone
	}
	if special(h.Src) || special(h.Dst) {
		if !rt.exempt(h) {
			return ip.DropMartian
		}
	} else if rt.ifs.isMany(h.Src) {
		return ip.DropMartian // a broadcast address is not a host
	}
	if rt.ifs.isHost(h.Src) {
		// No other node may use this node's address as its source. If it is also the destination,
		// this is a LAND attack.
		return ip.DropOwnSource
	}
	if rt.knobs.IP.ReversePath != ReverseOff && h.Src != (ip.Addr{}) && !rt.comesBack(i, h.Src) {
		return ip.DropReversePath
	}
	return ip.DropNone
}

// exempt reports whether a packet with a special address is valid: one to a multicast group or a
// broadcast address, or one to all from a host that has no address yet (RFC 1122 §3.2.1.3 (a)).
func (rt *Routing) exempt(h *ip.Header) bool {
	if h.Src == (ip.Addr{}) {
		return h.Dst == limited
	}
	return !special(h.Src) && (isGroup(h.Dst) || h.Dst == limited)
}

// comesBack reports whether the source passes the reverse path filter (RFC 3704 §2).
func (rt *Routing) comesBack(i int, src ip.Addr) bool {
	hop, ok := rt.hop(src)
	return ok && (rt.knobs.IP.ReversePath == ReverseLoose || hop.Iface == i)
}
