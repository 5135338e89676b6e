package ip

import (
	"math/bits"
	"slices"
)

// stride is how many bits of an address one node of the trie looks at.
const stride = 8

// way is a route as the table keeps it: its prefix is where it lies in the trie.
type way struct {
	hop    Addr
	iface  int32
	cost   int32
	origin Origin
	kind   Kind
	direct bool // no next hop
}

// node is one step of the longest-prefix match: the prefixes that end within one byte
// of the address, and the nodes for those that go on behind it.
//
// The prefixes that end with the byte, as three of five in the Internet's table do, are
// a set of its values. The shorter ones are the inner nodes of a binary tree over its
// bits, numbered as in a heap: 1 is every value, 2k and 2k+1 are the halves of k. So the
// ones that hold a byte b are found by shifting 256+b right, the longest first. What
// belongs to a member of a set lies in a slice, in the order of the set: the two make a
// line of the cache, and a step of a look-up takes one or two.
type node struct {
	sons     set256
	children []*node
	whole    set256
	wholes   []way
	short    set256
	shorts   []way
}

// match returns the way of the node's longest prefix that holds b and how many bits of
// b that has; nil: there is none.
func (n *node) match(b uint8) (*way, int) {
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

// place returns the set and the ways that a prefix of up to stride bits belongs to, and
// its number in the set.
func (n *node) place(b uint8, length int) (*set256, *[]way, uint8) {
	if length == stride {
		return &n.whole, &n.wholes, b
	}
	return &n.short, &n.shorts, uint8(1<<length | int(b)>>(stride-length))
}

// get returns the way of exactly that prefix, or nil.
func (n *node) get(b uint8, length int) *way {
	set, ways, at := n.place(b, length)
	if !set.has(at) {
		return nil
	}
	return &(*ways)[set.rank(at)-1]
}

// put gives a prefix that has no way one.
func (n *node) put(b uint8, length int, w way) {
	set, ways, at := n.place(b, length)
	set.add(at)
	*ways = slices.Insert(*ways, set.rank(at)-1, w)
}

// drop takes the way of a prefix that has one.
func (n *node) drop(b uint8, length int) {
	set, ways, at := n.place(b, length)
	i := set.rank(at) - 1
	*ways = slices.Delete(*ways, i, i+1)
	set.drop(at)
}

// child returns the node behind b, or nil.
func (n *node) child(b uint8) *node {
	if !n.sons.has(b) {
		return nil
	}
	return n.children[n.sons.rank(b)-1]
}

func (n *node) makeChild(b uint8) *node {
	if c := n.child(b); c != nil {
		return c
	}
	c := &node{}
	n.sons.add(b)
	n.children = slices.Insert(n.children, n.sons.rank(b)-1, c)
	return c
}

func (n *node) dropChild(b uint8) {
	at := n.sons.rank(b) - 1
	n.children = slices.Delete(n.children, at, at+1)
	n.sons.drop(b)
}

func (n *node) isEmpty() bool {
	return len(n.wholes) == 0 && len(n.shorts) == 0 && len(n.children) == 0
}

// remove takes a prefix that is there out of the node, or of those behind it. Nodes
// without anything in them go with it.
func (n *node) remove(addr []byte, length int) {
	if length <= stride {
		n.drop(addr[0], length)
		return
	}
	c := n.child(addr[0])
	c.remove(addr[1:], length-stride)
	if c.isEmpty() {
		n.dropChild(addr[0])
	}
}

// walk visits each prefix of the node and of those behind it. A prefix precedes all
// that it holds, and those precede the next prefix. Addr is what led to the node, which
// looks at the byte at depth.
func (n *node) walk(addr Addr, depth int, visit func(a Addr, length int, w *way) bool) bool {
	for v := range 1 << stride {
		b := uint8(v)
		addr[depth] = b
		shortest := stride - min(stride, bits.TrailingZeros(uint(v))) // that begins at b
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

// set256 is a set of bytes that can be counted in two loads.
type set256 struct {
	words [4]uint64
	below [4]uint8 // how many members the words before each have
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

// rank returns how many members are not above b.
func (s *set256) rank(b uint8) int {
	return int(s.below[b>>6]) + bits.OnesCount64(s.words[b>>6]<<(63-b&63))
}
