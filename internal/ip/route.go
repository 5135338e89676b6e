package ip

import (
	"fmt"
	"iter"
	"net/netip"
	"slices"
)

// Origin is the source of a route.
type Origin uint8

// The origins in the order of their administrative distance: of two routes to one prefix the one
// with the lower origin is used.
const (
	Local  Origin = iota // the network of one of our interfaces
	Static               // configured by the operator
	RIP                  // learned
)

// Kind is what a route does with packets.
type Kind uint8

// The kinds of routes.
const (
	Forwarded   Kind = iota // forwards packets
	Blackhole               // drops packets silently
	Unreachable             // drops packets and tells the sender
	Prohibited              // drops packets and tells the sender that they are prohibited
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
	NextHop netip.Addr // the zero Addr: the destination is on the link
	Iface   int
	Origin  Origin
	Kind    Kind
	Cost    int // hops for RIP, the metric of a static route; 0 for a local one
}

// Table is the routing table: longest-prefix match (RFC 1812 §5.2.4.3). For each prefix it keeps
// one route of each origin and uses the one with the lowest administrative distance. If that is
// removed, the next is used. It does not keep several equal-cost routes of one origin, because
// packets of one connection would be reordered: the last inserted route replaces the previous one.
//
// The zero Table is empty and ready for use.
type Table struct {
	root       node
	hidden     map[netip.Prefix][]Route // routes not in use, best origin first
	prefixes   int
	generation uint64 // incremented by every change
	memo       [memoSize]recent
}

// memoSize is the number of cached results, by the last bits of the address, because consecutive
// packets have few destinations.
const memoSize = 16

// recent is a cached result of Hop.
type recent struct {
	addr  netip.Addr
	ok    bool
	until uint64 // the table's generation plus one; zero is never valid
	hop   Hop
}

// Len returns the number of prefixes.
func (t *Table) Len() int { return t.prefixes }

// Insert adds a route, or replaces that of its origin to the same prefix. It ignores host bits of
// the prefix.
func (t *Table) Insert(r Route) {
	r.Prefix = r.Prefix.Masked()
	addr, length := split(r.Prefix)
	n, at := &t.root, addr[:]
	for ; length > stride; length -= stride {
		n = n.makeChild(at[0])
		at = at[1:]
	}
	w, is := wayOf(&r), n.get(at[0], length)
	switch {
	case is == nil:
		n.put(at[0], length, w)
		t.prefixes++
	case *is == w:
		return
	case is.origin < w.origin:
		t.hide(r)
		return
	case is.origin > w.origin:
		t.hide(is.route(addr, r.Prefix.Bits()))
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
	addr, length := split(prefix)
	w := t.get(addr, length)
	switch {
	case w == nil:
		return
	case w.origin != o:
		t.unhide(prefix, o)
		return
	}
	if next := t.hidden[prefix]; len(next) > 0 {
		*w = wayOf(&next[0])
		t.unhide(prefix, next[0].Origin)
	} else {
		t.root.remove(addr[:], length)
		t.prefixes--
	}
	t.generation++
}

// get returns the route in use for exactly that prefix, or nil.
func (t *Table) get(addr [4]byte, length int) *way {
	n, at := &t.root, 0
	for ; length > stride; length -= stride {
		if n = n.child(addr[at]); n == nil {
			return nil
		}
		at++
	}
	return n.get(addr[at], length)
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
	return w.route(a.As4(), length), true
}

// Hop is the part of a route that forwarding needs.
type Hop struct {
	Next   netip.Addr // the destination itself if it is on the link
	Iface  int
	OnLink bool
	Kind   Kind
}

// Hop is Lookup for forwarding, with a cache.
func (t *Table) Hop(a netip.Addr) (h Hop, ok bool) {
	b := as4(a)
	r := &t.memo[(b[3]^b[2]^b[1])%memoSize]
	if r.addr != a || r.until != t.generation+1 {
		r.addr, r.until, r.ok = a, t.generation+1, t.hop(a, &r.hop)
	}
	return r.hop, r.ok
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

// match returns the route to a and the length of its prefix. It visits at most four nodes,
// regardless of the number of routes, and then goes back to the last one with a match, which is
// nearly always the deepest.
func (t *Table) match(addr netip.Addr) (*way, int) {
	a := addr.As4()
	var path [len(a)]*node
	depth := 0
	for n := &t.root; ; depth++ {
		path[depth] = n
		if depth == len(a)-1 {
			break
		}
		if n = n.child(a[depth]); n == nil {
			break
		}
	}
	for ; depth >= 0; depth-- {
		if w, length := path[depth].match(a[depth]); w != nil {
			return w, depth*stride + length
		}
	}
	return nil, 0
}

// All returns the routes in use, one for each prefix, sorted by address and then by length. The
// table must not change meanwhile.
func (t *Table) All() iter.Seq[Route] {
	return func(yield func(Route) bool) {
		t.root.walk([4]byte{}, 0, func(a [4]byte, length int, w *way) bool {
			return yield(w.route(a, length))
		})
	}
}

// split splits a prefix. All prefixes come from our configuration and IPv4 codecs, so another
// address family is a bug.
func split(p netip.Prefix) (addr [4]byte, length int) {
	if !p.IsValid() || !p.Addr().Is4() {
		panic(fmt.Sprintf("BUG: ip: %v is not an IPv4 prefix", p))
	}
	return p.Addr().As4(), p.Bits()
}

// wayOf converts a route for the table.
func wayOf(r *Route) way {
	return way{
		hop: r.NextHop, iface: int32(r.Iface), cost: int32(r.Cost), origin: r.Origin, kind: r.Kind,
	}
}

// route returns the route to the prefix of that length that contains a.
func (w *way) route(a [4]byte, length int) Route {
	return Route{
		Prefix:  netip.PrefixFrom(netip.AddrFrom4(a), length).Masked(),
		NextHop: w.hop, Iface: int(w.iface), Origin: w.origin, Kind: w.kind, Cost: int(w.cost),
	}
}
