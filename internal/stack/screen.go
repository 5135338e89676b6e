package stack

import (
	"slices"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/ip"
)

// fewAddrs is up to how many addresses are compared one by one: quicker than a map.
const fewAddrs = 8

// addresses are the node's own, and the networks that they are on, as they are needed for
// each packet.
type addresses struct {
	hosts    []ip.Addr
	networks []network
	few      uint32 // the fewest host bits of a network; none: no network
}

// network is one that has a broadcast address.
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

// isMany reports whether an address is for all on a link of the node's: its broadcast, or
// what 4.2BSD took for that (RFC 1122 §3.3.6).
func (s *Stack) isMany(a ip.Addr) bool {
	v := be32(a)
	// Whatever the network: the last bits are all alike. A router may have a thousand.
	if host := v & s.addrs.few; host != 0 && host != s.addrs.few {
		return false
	}
	for _, n := range s.addrs.networks {
		if host := v & n.hosts; v&^n.hosts == n.prefix && (host == 0 || host == n.hosts) {
			return !s.isHost(a)
		}
	}
	return false
}

// isHost reports whether an address is one of the node's own. Those of 127/8 are, but
// screen lets none in from a link.
func (s *Stack) isHost(a ip.Addr) bool {
	if loopback(a) {
		return true
	}
	if len(s.addrs.hosts) > fewAddrs {
		_, own := s.own[a]
		return own
	}
	return slices.Contains(s.addrs.hosts, a)
}

// screen judges the addresses of a packet that came by interface i: DropNone, or why
// nobody may have it. None of that is told to anybody (RFC 1122 §3.2.1.3, RFC 1812
// §5.3.7). What the node sends to itself was never on a link, where the rules are.
func (s *Stack) screen(i int, h *ip.Header) ip.DropReason {
	if s.in.self {
		return ip.DropNone
	}
	if special(h.Src) || special(h.Dst) {
		if !s.exempt(h) {
			return ip.DropMartian
		}
	} else if s.isMany(h.Src) {
		return ip.DropMartian // all on a link are no host
	}
	if s.isHost(h.Src) {
		// Nobody else has our address. With it as the destination, too, it is the
		// packet that is called LAND.
		return ip.DropOwnSource
	}
	if s.knobs.IP.ReversePath != ReverseOff && h.Src != (ip.Addr{}) && !s.comesBack(i, h.Src) {
		return ip.DropReversePath
	}
	return ip.DropNone
}

// exempt reports whether a packet with a special address is right nevertheless: for a
// group, for all on a link, or for all from a host that has no address yet (RFC 1122
// §3.2.1.3 (a)).
func (s *Stack) exempt(h *ip.Header) bool {
	if h.Src == (ip.Addr{}) {
		return h.Dst == limited
	}
	return !special(h.Src) && (isGroup(h.Dst) || h.Dst == limited)
}

// comesBack reports whether the routes lead back to a source as far as the knob wants
// (RFC 3704 §2).
func (s *Stack) comesBack(i int, src ip.Addr) bool {
	hop, ok := s.hop(src)
	return ok && (s.knobs.IP.ReversePath == ReverseLoose || hop.Iface == i)
}

// directedBroadcast receives what is for all on another link of a router's than it came
// by, and passes it on there if that is asked for (RFC 1812 §5.2.3, RFC 2644 §2).
func (s *Stack) directedBroadcast(now clock.Time, i, out int, h *ip.Header, b []byte) {
	if s.knobs.IP.DirectedBroadcast && h.TTL > 1 && s.interfaces[out].up &&
		len(b) <= s.interfaces[out].MTU {
		copied := append([]byte(nil), b...) // it is queued for each node there
		s.stamp(now, h, copied, s.interfaces[out].addr)
		ip.Forward(copied)
		s.enqueue(now, out, h.Dst, copied)
	}
	s.deliver(now, i, h, b, b[h.IHL:])
}
