package ip

import (
	"fmt"
	"iter"
	"net/netip"
	"slices"
)

// Origin is the source of a route.
type Origin uint8

// These are the origins in the order of their administrative distance. Of two routes to one prefix,
// the one with the lower origin is used.
const (
	Local  Origin = iota // the network of one of the node's interfaces
	Static               // configured by the operator
	RIP                  // learned from other routers
)

// Kind is what a route does with packets.
type Kind uint8

// These are the kinds of routes.
const (
	Forwarded   Kind = iota // forwards packets
	Blackhole               // drops packets silently
	Unreachable             // drops packets and sends the sender an ICMP error
	Prohibited              // drops packets and sends the sender an ICMP "prohibited" error
)

// String returns the kind's name.
func (k Kind) String() string {
	return [...]string{
		Forwarded: "", Blackhole: "blackhole", Unreachable: "unreachable", Prohibited: "prohibit",
	}[k]
}

// Route is a route to a prefix.
type Route struct {
	Prefix  netip.Prefix
	NextHop netip.Addr // next hop; the zero Addr: the destination is on the link
	Iface   int
	Origin  Origin
	Kind    Kind
	Cost    int // hops for RIP; the metric of a static route; 0 for a local route
}

// Table is the routing table of both families: longest-prefix match (RFC 1812 §5.2.4.3, and RFC
// 4291 §2.3 for the prefixes of IPv6, of any length up to 128). For each prefix it keeps one route
// of each origin and uses the one with the lowest administrative distance. If that route is
// removed, the next best one is used. It does not keep several equal-cost routes of one origin,
// because packets of one connection would be reordered: the last inserted route replaces the
// previous one.
//
// The zero Table is empty and ready for use.
type Table struct {
	v4, v6     node                     // roots of the two tries
	hidden     map[netip.Prefix][]Route // routes that are not in use, best origin first
	prefixes   int
	generation uint64 // incremented by every change
	cache      [cacheSize]recent
}

// cacheSize is the number of cached results. Consecutive packets have few destinations.
const cacheSize = 16

// recent is a cached result of Hop.
type recent struct {
	addr  netip.Addr
	ok    bool
	until uint64 // valid while the table's generation is below this; zero is never valid
	hop   Hop
}

// Len returns the number of prefixes.
func (t *Table) Len() int { return t.prefixes }

// Insert adds a route, or replaces the one of the same origin to the same prefix. It ignores host
// bits of the prefix.
func (t *Table) Insert(r Route) {
	r.Prefix = r.Prefix.Masked()
	root, addr := t.split(r.Prefix)
	w, is := entryOf(&r), root.find(addr, r.Prefix.Bits())
	switch {
	case is == nil:
		root.put(addr, r.Prefix.Bits(), w)
		t.prefixes++
	case *is == w:
		return
	case is.origin < w.origin:
		t.hide(r)
		return
	case is.origin > w.origin:
		t.hide(is.route(r.Prefix))
		t.unhide(r.Prefix, r.Origin)
		*is = w
	default:
		*is = w
	}
	t.generation++
}

// Remove removes the route of one origin to a prefix, if there is one.
func (t *Table) Remove(prefix netip.Prefix, o Origin) {
	prefix = prefix.Masked()
	root, addr := t.split(prefix)
	w := root.find(addr, prefix.Bits())
	switch {
	case w == nil:
		return
	case w.origin != o:
		t.unhide(prefix, o)
		return
	}
	if next := t.hidden[prefix]; len(next) > 0 {
		*w = entryOf(&next[0])
		t.unhide(prefix, next[0].Origin)
	} else {
		root.remove(addr, prefix.Bits())
		t.prefixes--
	}
	t.generation++
}

// hide stores a route until the better ones to its prefix are removed.
func (t *Table) hide(r Route) {
	if t.hidden == nil {
		t.hidden = map[netip.Prefix][]Route{}
	}
	list := t.hidden[r.Prefix]
	at, same := slices.BinarySearchFunc(list, r.Origin, compareOrigin)
	if same {
		list[at] = r
		return
	}
	t.hidden[r.Prefix] = slices.Insert(list, at, r)
}

// unhide removes the hidden route of one origin, if there is one.
func (t *Table) unhide(prefix netip.Prefix, o Origin) {
	list := t.hidden[prefix]
	at, there := slices.BinarySearchFunc(list, o, compareOrigin)
	switch {
	case !there:
	case len(list) == 1:
		delete(t.hidden, prefix)
	default:
		t.hidden[prefix] = slices.Delete(list, at, at+1)
	}
}

func compareOrigin(r Route, o Origin) int { return int(r.Origin) - int(o) }

// Lookup returns the best route of the longest prefix that contains a.
func (t *Table) Lookup(a netip.Addr) (Route, bool) {
	w, length := t.match(a)
	if w == nil {
		return Route{}, false
	}
	prefix, _ := a.Prefix(length)
	return w.route(prefix), true
}

// Hop is the part of a route that forwarding needs.
type Hop struct {
	Next   netip.Addr // next hop, or the destination itself if it is on the link
	Iface  int
	OnLink bool
	Kind   Kind
}

// Hop is like Lookup, for forwarding, with a cache.
func (t *Table) Hop(a netip.Addr) (h Hop, ok bool) {
	r := &t.cache[slot(a)]
	if r.addr != a || r.until != t.generation+1 {
		r.addr, r.until, r.ok = a, t.generation+1, t.hop(a, &r.hop)
	}
	return r.hop, r.ok
}

// slot returns the index of an address in the cache.
func slot(a netip.Addr) byte {
	b := a.As16()
	return (b[15] ^ b[14] ^ b[13] ^ b[7] ^ b[6] ^ b[5]) % cacheSize
}

func (t *Table) hop(a netip.Addr, h *Hop) bool {
	w, _ := t.match(a)
	if w == nil {
		*h = Hop{}
		return false
	}
	h.Next, h.Iface, h.OnLink, h.Kind = w.hop, int(w.iface), !w.hop.IsValid(), w.kind
	if h.OnLink {
		h.Next = a
	}
	return true
}

// match returns the route to a and the length of its prefix.
func (t *Table) match(a netip.Addr) (*entry, int) {
	if a.Is4() {
		b := a.As4()
		return t.v4.longest(b[:])
	}
	b := a.As16()
	return t.v6.longest(b[:])
}

// All returns the routes in use, one for each prefix, IPv4 first, sorted by address and then by
// length. The table must not change meanwhile.
func (t *Table) All() iter.Seq[Route] {
	return func(yield func(Route) bool) {
		_ = t.v4.walk([16]byte{}, 0, func(a [16]byte, length int, w *entry) bool {
			addr := netip.AddrFrom4([4]byte(a[:4]))
			return yield(w.route(netip.PrefixFrom(addr, length)))
		}) && t.v6.walk([16]byte{}, 0, func(a [16]byte, length int, w *entry) bool {
			return yield(w.route(netip.PrefixFrom(netip.AddrFrom16(a), length)))
		})
	}
}

// split returns the root of a prefix's family, and the bytes of its address.
func (t *Table) split(p netip.Prefix) (root *node, addr []byte) {
	if !p.IsValid() {
		panic(fmt.Sprintf("BUG: ip: %v is not a prefix", p))
	}
	root = &t.v4
	if p.Addr().Is6() {
		root = &t.v6
	}
	return root, p.Addr().AsSlice()
}

// entryOf converts a route for the table.
func entryOf(r *Route) entry {
	return entry{
		hop: r.NextHop, iface: int32(r.Iface), cost: int32(r.Cost), origin: r.Origin, kind: r.Kind,
	}
}

func (w *entry) route(p netip.Prefix) Route {
	return Route{
		Prefix: p, NextHop: w.hop, Iface: int(w.iface), Origin: w.origin, Kind: w.kind,
		Cost: int(w.cost),
	}
}
