package stack

import (
	"github.com/tidepool-net/tidepool/internal/ip"
)

// screen judges the addresses of a packet that came by interface i: DropNone, or why
// nobody may have it. None of that is told to anybody (RFC 1122 §3.2.1.3, RFC 1812
// §5.3.7). What the node sends to itself was never on a link, where the rules are.
func (rt *Routing) screen(i int, h *ip.Header) ip.DropReason {
	if rt.in.self {
		return ip.DropNone
	}
	if special(h.Src) || special(h.Dst) {
		if !rt.exempt(h) {
			return ip.DropMartian
		}
	} else if rt.ifs.isMany(h.Src) {
		return ip.DropMartian // all on a link are no host
	}
	if rt.ifs.isHost(h.Src) {
		// Nobody else has our address. With it as the destination, too, it is the
		// packet that is called LAND.
		return ip.DropOwnSource
	}
	if rt.knobs.IP.ReversePath != ReverseOff && h.Src != (ip.Addr{}) && !rt.comesBack(i, h.Src) {
		return ip.DropReversePath
	}
	return ip.DropNone
}

// exempt reports whether a packet with a special address is right nevertheless: for a
// group, for all on a link, or for all from a host that has no address yet (RFC 1122
// §3.2.1.3 (a)).
func (rt *Routing) exempt(h *ip.Header) bool {
	if h.Src == (ip.Addr{}) {
		return h.Dst == limited
	}
	return !special(h.Src) && (isGroup(h.Dst) || h.Dst == limited)
}

// comesBack reports whether the routes lead back to a source as far as the knob wants
// (RFC 3704 §2).
func (rt *Routing) comesBack(i int, src ip.Addr) bool {
	hop, ok := rt.hop(src)
	return ok && (rt.knobs.IP.ReversePath == ReverseLoose || hop.Iface == i)
}
