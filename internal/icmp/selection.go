package icmp

import (
	"cmp"
	"net/netip"
	"slices"
)

// Candidate is a source address that a packet could have.
type Candidate struct {
	Addr       netip.Addr
	Bits       int  // length of the address's prefix
	Deprecated bool // the preferred lifetime has ended
	Outgoing   bool // the address belongs to the outgoing interface
}

// policies is the default policy table (RFC 6724 §2.1), longer prefixes first. IPv4 addresses are
// looked up in their IPv4-mapped form.
var policies = []struct {
	prefix            netip.Prefix
	precedence, label int
}{
	{netip.MustParsePrefix("::1/128"), 50, 0},
	{netip.MustParsePrefix("::ffff:0:0/96"), 35, 4},
	{netip.MustParsePrefix("::/96"), 1, 3},
	{netip.MustParsePrefix("2001::/32"), 5, 5},
	{netip.MustParsePrefix("2002::/16"), 30, 2},
	{netip.MustParsePrefix("3ffe::/16"), 1, 12},
	{netip.MustParsePrefix("fec0::/10"), 1, 11},
	{netip.MustParsePrefix("fc00::/7"), 3, 13},
	{netip.MustParsePrefix("::/0"), 40, 1},
}

func policyOf(a netip.Addr) (precedence, label int) {
	a = netip.AddrFrom16(a.As16())
	for _, p := range policies {
		// Contains never matches a mapped address with a prefix of IPv6.
		if netip.PrefixFrom(a, p.prefix.Bits()).Masked() == p.prefix {
			return p.precedence, p.label
		}
	}
	return 0, 0
}

// scopeOf returns the scope of an address as in multicast addresses (RFC 6724 §3.1 and §3.2).
func scopeOf(a netip.Addr) int {
	const linkLocal, siteLocal, global = 2, 5, 14
	switch b := a.As16(); {
	case a.Is6() && a.IsMulticast():
		return int(b[1] & 0xf)
	case a.IsLinkLocalUnicast(), a.IsLoopback(), a.IsLinkLocalMulticast():
		return linkLocal
	case b[0] == 0xfe && b[1]&0xc0 == 0xc0:
		return siteLocal
	}
	return global
}

// commonBits returns how many bits an address shares with the prefix of a source (RFC 6724 §2.2).
func commonBits(a netip.Addr, source *Candidate) int {
	x, y := a.As16(), source.Addr.As16()
	n := 0
	for n < source.Bits && (x[n/8]^y[n/8])>>(7-n%8)&1 == 0 {
		n++
	}
	return n
}

// first returns -1 if only a is true, and 1 if only b is true.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// SelectSource returns the source for packets to dst by the rules of RFC 6724 §5. It returns false
// if there is no candidate of dst's family. Candidates for a link-local or multicast destination
// must be addresses of the outgoing interface. Of equal candidates, the first is used.
func SelectSource(dst netip.Addr, candidates []Candidate) (best Candidate, ok bool) {
	_, label := policyOf(dst)
	scope := scopeOf(dst)
	better := func(a, b *Candidate) int {
		sa, sb := scopeOf(a.Addr), scopeOf(b.Addr)
		_, la := policyOf(a.Addr)
		_, lb := policyOf(b.Addr)
		nearest := cmp.Compare(sa, sb)
		if sa < scope {
			nearest = -nearest
		}
		return cmp.Or(
			first(a.Addr == dst, b.Addr == dst),
			first(sa >= scope, sb >= scope), nearest,
			first(!a.Deprecated, !b.Deprecated),
			first(a.Outgoing, b.Outgoing),
			first(la == label, lb == label),
			cmp.Compare(commonBits(dst, b), commonBits(dst, a)),
		)
	}
	for k := range candidates {
		c := &candidates[k]
		if c.Addr.Is4() == dst.Is4() && (!ok || better(c, &best) < 0) {
			best, ok = *c, true
		}
	}
	return best, ok
}

// SortDestinations sorts the addresses of one host in the order in which to try them (RFC 6724 §6).
// source returns the source for packets to an address, or false if the address cannot be reached.
// The longest prefix rule applies only to IPv6 addresses: IPv4 addresses were not assigned by
// topology, and the order of a name server's answer spreads load.
func SortDestinations(dsts []netip.Addr, source func(netip.Addr) (Candidate, bool)) {
	type row struct {
		addr                     netip.Addr
		usable, scoped, labelled bool
		fresh                    bool
		precedence, scope, bits  int
	}
	rows := make([]row, len(dsts))
	for k, d := range dsts {
		r := row{addr: d, scope: scopeOf(d)}
		var label int
		r.precedence, label = policyOf(d)
		if s, ok := source(d); ok {
			_, sourceLabel := policyOf(s.Addr)
			r.usable, r.fresh = true, !s.Deprecated
			r.scoped, r.labelled = scopeOf(s.Addr) == r.scope, sourceLabel == label
			if d.Is6() {
				r.bits = commonBits(d, &s)
			}
		}
		rows[k] = r
	}
	slices.SortStableFunc(rows, func(a, b row) int {
		bits := 0
		if a.addr.Is6() == b.addr.Is6() {
			bits = cmp.Compare(b.bits, a.bits)
		}
		return cmp.Or(
			first(a.usable, b.usable), first(a.scoped, b.scoped), first(a.fresh, b.fresh),
			first(a.labelled, b.labelled), cmp.Compare(b.precedence, a.precedence),
			cmp.Compare(a.scope, b.scope), bits,
		)
	})
	for k := range rows {
		dsts[k] = rows[k].addr
	}
}
