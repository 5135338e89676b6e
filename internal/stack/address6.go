package stack

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/icmp"
)

// required reports whether each node with the addresses of interface i must be in an IPv6 group
// (RFC 4291 §2.7.1 and §2.8).
func (ifs *Interfaces) required(i int, group netip.Addr) bool {
	return group == netip.IPv6LinkLocalAllNodes() ||
		ifs.router && group == netip.IPv6LinkLocalAllRouters() ||
		slices.ContainsFunc(ifs.list[i].IPv6, func(p netip.Prefix) bool {
			return icmp.SolicitedNode(p.Addr()) == group
		})
}

// isAnycast reports whether an address is the subnet-router anycast address of one of this router's
// networks (RFC 4291 §2.6.1). A /127 has no such address (RFC 6164 §5).
func (ifs *Interfaces) isAnycast(a netip.Addr) bool {
	if !a.Is6() || !ifs.router {
		return false
	}
	for i := range ifs.list {
		for _, p := range ifs.list[i].networks {
			if p.Addr() == a && p.Bits() < 127 {
				return true
			}
		}
	}
	return false
}

// Source returns the source address for packets to dst over interface i (RFC 6724 §5). If there is
// none, it returns an unspecified or invalid address. Only a global IPv6 destination may get the
// address of another interface.
func (ifs *Interfaces) Source(i int, dst netip.Addr) netip.Addr {
	f := &ifs.list[i]
	if !dst.Is6() {
		return f.addr
	}
	if dst.IsLinkLocalUnicast() || dst.IsLinkLocalMulticast() {
		return f.link
	}
	list := ifs.candidates[:0]
	for k := range ifs.list {
		for _, c := range ifs.list[k].sources {
			c.Outgoing = k == i
			list = append(list, c)
		}
	}
	ifs.candidates = list
	if best, ok := icmp.SelectSource(dst, list); ok {
		return best.Addr
	}
	return netip.IPv6Unspecified()
}

// SortDestinations orders the addresses of one host: the first is to be tried first (RFC 6724 §6).
func (rt *Routing) SortDestinations(list []netip.Addr) {
	icmp.SortDestinations(list, func(dst netip.Addr) (c icmp.Candidate, ok bool) {
		source, err := rt.sourceTo(dst)
		if err != nil || isUnset(source) {
			return c, false
		}
		c.Addr, c.Bits = source, source.BitLen()
		if i, own := rt.ifs.addrs.find(source); own {
			for _, s := range rt.ifs.list[i].sources {
				if s.Addr == source {
					c = s
				}
			}
		}
		return c, true
	})
}

// Discovered adds the addresses that neighbor discovery knows to an interface's snapshot, and
// returns the neighbors on its link.
func (ifs *Interfaces) Discovered(now clock.Time, c *control.Interface) []control.Neighbor {
	d := ifs.discovery.on(c.Index)
	if d == nil || d.six == nil {
		return nil
	}
	left := func(t clock.Time) time.Duration {
		if t == clock.Never {
			return 0
		}
		return t.Sub(now)
	}
	for _, a := range d.six.Addresses() {
		c.Addresses = append(c.Addresses, control.Address{
			Prefix: a.Prefix, State: a.State.String(), Preferred: left(a.Preferred),
			Valid: left(a.Valid),
		})
	}
	var list []control.Neighbor
	for _, n := range d.six.Neighbors(now) {
		list = append(list, control.Neighbor{
			Iface: c.Name, Addr: n.Addr, Heard: -1,
			State: control.NeighborState(strings.ToLower(n.State.String())),
		})
	}
	return list
}
