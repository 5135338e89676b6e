package ip

import (
	"math/bits"
	"net/netip"
	"slices"
)

// stride is the number of address bits in one node of the trie.
const stride = 8

// entry is a route in the table. Its position in the trie determines its prefix.
type entry struct {
	hop    netip.Addr // next hop; the zero Addr: the destination is on the link
	iface  int32
	cost   int32
	origin Origin
	kind   Kind
}

// node is one step of the longest-prefix match: the prefixes that end within one byte of the
// address, and the nodes of longer prefixes.
//
// Prefixes that end with the byte, three of five in the Internet's table, are a set of its values.
// The shorter ones are the inner nodes of a binary tree over its bits, numbered as in a heap: 1 is
// every value, 2k and 2k+1 are the halves of k. So the prefixes that contain a byte b are found by
// shifting 256+b right, the longest first. The routes of a set's members are in a slice, in the
// order of the set. The two fit in a cache line, and one step of a lookup reads one or two.
type node struct {
	childBytes set256
	children   []*node
	whole      set256  // values of the byte with which prefixes end
	wholes     []entry // their routes
	short      set256  // tree nodes of shorter prefixes
	shorts     []entry // their routes
}

// longest returns the route of the longest prefix that contains the address, and its length; nil:
// none. The deepest node on the path of the address nearly always has that route. If not, longest
// searches again and returns the last match.
func (n *node) longest(addr []byte) (w *entry, length int) {
	deepest, depth := n, 0
	for c := n.child(addr[0]); c != nil; c = deepest.child(addr[depth]) {
		deepest, depth = c, depth+1
	}
	if w, length = deepest.match(addr[depth]); w != nil {
		return w, depth*stride + length
	}
	for at := range depth {
		if m, bits := n.match(addr[at]); m != nil {
			w, length = m, at*stride+bits
		}
		n = n.child(addr[at])
	}
	return w, length
}

// find returns the route of exactly that prefix, or nil.
func (n *node) find(addr []byte, length int) *entry {
	if length <= stride {
		return n.get(addr[0], length)
	}
	if c := n.child(addr[0]); c != nil {
		return c.find(addr[1:], length-stride)
	}
	return nil
}

// match returns the route of the node's longest prefix that contains b, and the length of that
// prefix within b; nil: none.
func (n *node) match(b uint8) (*entry, int) {
	if n.whole.has(b) {
		return &n.wholes[n.whole.rank(b)-1], stride
	}
	if len(n.shorts) == 0 {
		return nil, 0
	}
	at := b>>1 | 1<<(stride-1)
	for length := stride - 1; length >= 0; length-- {
		if n.short.has(at) {
			return &n.shorts[n.short.rank(at)-1], length
		}
		at >>= 1
	}
	return nil, 0
}

// place returns the set and the routes for a prefix of up to stride bits, and its number there.
func (n *node) place(b uint8, length int) (*set256, *[]entry, uint8) {
	if length == stride {
		return &n.whole, &n.wholes, b
	}
	return &n.short, &n.shorts, uint8(1<<length | int(b)>>(stride-length))
}

// get returns the route of exactly that prefix, or nil.
func (n *node) get(b uint8, length int) *entry {
	set, entries, at := n.place(b, length)
	if !set.has(at) {
		return nil
	}
	return &(*entries)[set.rank(at)-1]
}

// put adds the route of a new prefix.
func (n *node) put(addr []byte, length int, w entry) {
	b := addr[0]
	if length <= stride {
		set, entries, at := n.place(b, length)
		set.add(at)
		*entries = slices.Insert(*entries, set.rank(at)-1, w)
		return
	}
	c := n.child(b)
	if c == nil {
		c = &node{}
		n.childBytes.add(b)
		n.children = slices.Insert(n.children, n.childBytes.rank(b)-1, c)
	}
	c.put(addr[1:], length-stride, w)
}

// child returns the node after b, or nil.
func (n *node) child(b uint8) *node {
	if !n.childBytes.has(b) {
		return nil
	}
	return n.children[n.childBytes.rank(b)-1]
}

// remove removes an existing prefix from the node or its children, and removes empty nodes.
func (n *node) remove(addr []byte, length int) {
	b := addr[0]
	if length <= stride {
		set, entries, at := n.place(b, length)
		i := set.rank(at) - 1
		*entries = slices.Delete(*entries, i, i+1)
		set.drop(at)
		return
	}
	c := n.child(b)
	c.remove(addr[1:], length-stride)
	if len(c.wholes)+len(c.shorts)+len(c.children) == 0 {
		at := n.childBytes.rank(b) - 1
		n.children = slices.Delete(n.children, at, at+1)
		n.childBytes.drop(b)
	}
}

// walk visits each prefix of the node and its children. A prefix precedes those that it contains,
// and they precede the next prefix. addr is the path to the node, whose byte is at depth.
func (n *node) walk(
	addr [16]byte, depth int, visit func(a [16]byte, length int, w *entry) bool,
) bool {
	for v := range 1 << stride {
		b := uint8(v)
		addr[depth] = b
		shortest := stride - min(stride, bits.TrailingZeros(uint(v))) // the shortest prefix at b
		for length := shortest; length <= stride; length++ {
			if w := n.get(b, length); w != nil && !visit(addr, depth*stride+length, w) {
				return false
			}
		}
		if c := n.child(b); c != nil && !c.walk(addr, depth+1, visit) {
			return false
		}
	}
	return true
}

// set256 is a set of bytes that can be counted with two loads.
type set256 struct {
	words [4]uint64
	below [4]uint8 // number of members in the words before each word
}

func (s *set256) has(b uint8) bool { return s.words[b>>6]>>(b&63)&1 != 0 }

func (s *set256) add(b uint8) {
	s.words[b>>6] |= 1 << (b & 63)
	s.count()
}

func (s *set256) drop(b uint8) {
	s.words[b>>6] &^= 1 << (b & 63)
	s.count()
}

func (s *set256) count() {
	for i := range 3 {
		s.below[i+1] = s.below[i] + uint8(bits.OnesCount64(s.words[i]))
	}
}

// rank returns how many members are at most b.
func (s *set256) rank(b uint8) int {
	return int(s.below[b>>6]) + bits.OnesCount64(s.words[b>>6]<<(63-b&63))
}
