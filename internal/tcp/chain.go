package tcp

// chain is a doubly linked list of objects that embed neighbors, so that any object can be removed
// in constant time. The zero value is empty.
type chain[T any, P chained[T]] struct{ first, last *T }

// chained is a pointer to a type that embeds neighbors.
type chained[T any] interface {
	*T
	links() *neighbors[T]
}

// neighbors holds an object's position in a chain.
type neighbors[T any] struct{ next, prev *T }

func (n *neighbors[T]) links() *neighbors[T] { return n }

// push appends an object, which must be in no chain.
func (c *chain[T, P]) push(e *T) {
	*P(e).links() = neighbors[T]{prev: c.last}
	if c.last == nil {
		c.first = e
	} else {
		P(c.last).links().next = e
	}
	c.last = e
}

func (c *chain[T, P]) remove(e *T) {
	n := P(e).links()
	if n.prev == nil {
		c.first = n.next
	} else {
		P(n.prev).links().next = n.next
	}
	if n.next == nil {
		c.last = n.prev
	} else {
		P(n.next).links().prev = n.prev
	}
	*n = neighbors[T]{}
}
