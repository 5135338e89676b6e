package ip

import (
	"fmt"
	"iter"
	"net/netip"
	"slices"
)

// Origin says who put a route into the table.
type Origin uint8

// The origins in the order of their administrative distance: of two routes to
// one prefix the one of the earlier origin is used.
const (
	Local  Origin = iota // the network of an interface of ours
	Static               // the operator's
	RIP                  // learned
)

// Route is the way to a prefix.
type Route struct {
	Prefix  netip.Prefix
	NextHop netip.Addr // the zero Addr: the destination itself, which is on the link
	Iface   int
	Origin  Origin
	Cost    int // hops for RIP; 0 otherwise
}

// Table is the routing table: longest-prefix match (RFC 1812 §5.2.4.3) over any
// number of routes. For each prefix it keeps one route an origin and uses the
// one with the smallest administrative distance. Equal-cost routes of one
// origin are not kept side by side: the last one inserted stands.
//
// The zero Table is empty and ready for use.
type Table struct {
	root       node
	prefixes   int
	generation uint64
}

// Len returns the number of prefixes.
func (t *Table) Len() int { return t.prefixes }

// Generation changes with every change of the table, so that what was looked
// up can be kept until it does.
func (t *Table) Generation() uint64 { return t.generation }

// Insert adds a route, in place of the one of its origin to the same prefix if
// there is one. Bits of the prefix's address beyond its length are ignored.
func (t *Table) Insert(r Route) {
	r.Prefix = r.Prefix.Masked()
	addr, bits := split(r.Prefix)
	n := &t.root
	for ; bits > stride; bits -= stride {
		n = n.makeChild(addr[0])
		addr = addr[1:]
	}
	i, found := n.find(addr[0], bits)
	if !found {
		n.insert(i, entry{base: addr[0], bits: uint8(bits), routes: []Route{r}})
		t.prefixes++
		t.generation++
		return
	}
	if n.entries[i].set(r) {
		n.paint()
		t.generation++
	}
}

// Remove takes the route of one origin to a prefix out of the table; nothing
// happens if there is none.
func (t *Table) Remove(prefix netip.Prefix, o Origin) {
	addr, bits := split(prefix.Masked())
	if gone, last := t.root.remove(addr, bits, o); gone {
		t.generation++
		if last {
			t.prefixes--
		}
	}
}

// Lookup returns the route to a: of the prefixes that hold it the longest, and
// of that prefix's routes the best. It goes down four nodes at most, however
// many routes there are, and back up to the first that has an answer, which is
// nearly always the one it has just come to.
func (t *Table) Lookup(a Addr) (Route, bool) {
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
		if r := path[depth].match(a[depth]); r != nil {
			return *r, true
		}
	}
	return Route{}, false
}

// All returns the routes in use, one a prefix, sorted by address and then by
// length. The table must not change meanwhile.
func (t *Table) All() iter.Seq[Route] {
	return func(yield func(Route) bool) { t.root.walk(yield) }
}

// split takes a prefix apart. Prefixes are made by our configuration and by
// codecs that read IPv4 only, so another family is a mistake of ours.
func split(p netip.Prefix) (addr []byte, bits int) {
	if !p.IsValid() || !p.Addr().Is4() {
		panic(fmt.Sprintf("BUG: ip: %v is not an IPv4 prefix", p))
	}
	a := p.Addr().As4()
	return a[:], p.Bits()
}

// entry is one prefix of a node: its routes, best origin first.
type entry struct {
	base   uint8 // the byte of the address that this node looks at
	bits   uint8 // how many bits of it count
	routes []Route
}

// set puts r in place of the route of its origin; false: it stood there already.
func (e *entry) set(r Route) bool {
	at, same := e.origin(r.Origin)
	if !same {
		e.routes = slices.Insert(e.routes, at, r)
		return true
	}
	changed := e.routes[at] != r
	e.routes[at] = r
	return changed
}

// origin returns where the route of origin o is, or belongs.
func (e *entry) origin(o Origin) (int, bool) {
	return slices.BinarySearchFunc(e.routes, o, func(r Route, o Origin) int {
		return int(r.Origin) - int(o)
	})
}
