package ip

import (
	"math/bits"
	"slices"
)

// stride is how many bits of an address one node of the trie looks at.
const stride = 8

// node is one step of the longest-prefix match: the prefixes that end within
// one byte of the address, and the nodes for those that go on behind it.
//
// Looking up costs two population counts. The 256 values of the byte are cut
// into runs that have the same longest prefix; starts marks the first value of
// each run, and longest holds one route a run. The entries are what the runs
// are painted from, anew after each change: a change costs a walk over 256
// values, so that a look-up costs nothing.
type node struct {
	sons     set256
	children []*node // one for each member of sons, in order
	starts   set256
	longest  []*Route // one a run; nil where no prefix of this node matches
	entries  []entry  // sorted by base, then bits
}

// match returns the route of the node's longest prefix that holds b, or nil.
func (n *node) match(b uint8) *Route {
	if len(n.longest) == 0 {
		return nil
	}
	return n.longest[n.starts.rank(b)-1]
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

func (n *node) isEmpty() bool { return len(n.entries) == 0 && len(n.children) == 0 }

// find returns where the prefix of the given base and length is among the
// entries, or belongs.
func (n *node) find(base uint8, length int) (int, bool) {
	return slices.BinarySearchFunc(n.entries, int(base)<<4|length, func(e entry, key int) int {
		return int(e.base)<<4 | int(e.bits) - key
	})
}

// insert puts an entry at its place i and paints the node anew.
func (n *node) insert(i int, e entry) {
	n.entries = slices.Insert(n.entries, i, e)
	n.paint()
}

// remove takes one origin's route out of the node, or out of the one behind it
// that has the prefix. Last says that no route of the prefix is left; nodes
// without anything in them go with it.
func (n *node) remove(addr []byte, length int, o Origin) (gone, last bool) {
	if length > stride {
		c := n.child(addr[0])
		if c == nil {
			return false, false
		}
		gone, last = c.remove(addr[1:], length-stride, o)
		if c.isEmpty() {
			n.dropChild(addr[0])
		}
		return gone, last
	}
	i, found := n.find(addr[0], length)
	if !found {
		return false, false
	}
	e := &n.entries[i]
	at, same := e.origin(o)
	if !same {
		return false, false
	}
	e.routes = slices.Delete(e.routes, at, at+1)
	if len(e.routes) == 0 {
		n.entries = slices.Delete(n.entries, i, i+1)
		last = true
	}
	n.paint()
	return true, last
}

// paint computes the runs from the entries. A prefix that holds another comes
// before it in their order, so the longer one is painted over it.
func (n *node) paint() {
	n.starts, n.longest = set256{}, nil
	if len(n.entries) == 0 {
		return
	}
	var row [1 << stride]*Route
	for i := range n.entries {
		e := &n.entries[i]
		for b := range 1 << (stride - e.bits) {
			row[int(e.base)+b] = &e.routes[0]
		}
	}
	for b, r := range row {
		if b == 0 || r != row[b-1] {
			n.starts.add(uint8(b))
			n.longest = append(n.longest, r)
		}
	}
}

// walk visits the best route of each prefix of the node and of those behind it.
// A prefix precedes all that it holds, and those precede the next prefix.
func (n *node) walk(yield func(Route) bool) bool {
	at := 0
	for b := range 1 << stride {
		for ; at < len(n.entries) && int(n.entries[at].base) == b; at++ {
			if !yield(n.entries[at].routes[0]) {
				return false
			}
		}
		if c := n.child(uint8(b)); c != nil && !c.walk(yield) {
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
