package tcp

import "github.com/tidepool-net/tidepool/internal/clock"

// link is a connection's place in a connList.
type link struct{ next, prev *Conn }

// The connLists that a connection can be in.
const (
	inAll   = iota // every connection of the host, oldest first
	inReady        // those that may have something to send by one outlet
	numLists
)

// connList is a list of connections, linked by their links.in[which].
type connList struct {
	first, last *Conn
	which       int
}

func (l *connList) push(c *Conn) {
	c.links.in[l.which] = link{prev: l.last}
	if l.last == nil {
		l.first = c
	} else {
		l.last.links.in[l.which].next = c
	}
	l.last = c
}

func (l *connList) remove(c *Conn) {
	n := &c.links.in[l.which]
	if n.prev == nil {
		l.first = n.next
	} else {
		n.prev.links.in[l.which].next = n.next
	}
	if n.next == nil {
		l.last = n.prev
	} else {
		n.next.links.in[l.which].prev = n.prev
	}
	*n = link{}
}

// eventList is a queue of the connections that have events for the owner.
type eventList struct{ first, last *Conn }

func (l *eventList) push(c *Conn) {
	c.links.event = nil
	if l.last == nil {
		l.first = c
	} else {
		l.last.links.event = c
	}
	l.last = c
}

func (l *eventList) pop() *Conn {
	c := l.first
	if c == nil {
		return nil
	}
	l.first = c.links.event
	if l.first == nil {
		l.last = nil
	}
	c.links.event = nil
	return c
}

// deadlines is a heap of connections by when they are due, with four children to a node and the
// instants beside the connections, so that a path through 100,000 of them looks into few cache
// lines and no connection. A connection's key may be earlier than its true deadline, never later:
// a time-out that moves away with every acknowledgment costs nothing until the old one comes due.
type deadlines struct{ heap []filed }

// filed is a connection and what it is filed under.
type filed struct {
	due  clock.Time
	conn *Conn
}

// children is how many a node of the heap has.
const children = 4

func (d *deadlines) first() clock.Time {
	if len(d.heap) == 0 {
		return clock.Never
	}
	return d.heap[0].due
}

// of returns what c is filed under, never if it is not.
func (d *deadlines) of(c *Conn) clock.Time {
	if c.links.heap < 0 {
		return clock.Never
	}
	return d.heap[c.links.heap].due
}

// earliest returns the connection that is due first, and when; there is one.
func (d *deadlines) earliest() (*Conn, clock.Time) { return d.heap[0].conn, d.heap[0].due }

// set files c under due, or takes it out when due is never.
func (d *deadlines) set(c *Conn, due clock.Time) {
	i := int(c.links.heap)
	switch {
	case due == clock.Never:
		d.remove(c)
		return
	case i < 0:
		i = len(d.heap)
		d.heap = append(d.heap, filed{})
	case due == d.heap[i].due:
		return
	}
	d.settle(i, filed{due, c})
}

func (d *deadlines) remove(c *Conn) {
	i, n := int(c.links.heap), len(d.heap)-1
	if i < 0 {
		return
	}
	c.links.heap = -1
	last := d.heap[n]
	d.heap[n] = filed{}
	d.heap = d.heap[:n]
	if i < n {
		d.settle(i, last)
	}
}

func (d *deadlines) place(i int, f filed) {
	d.heap[i] = f
	f.conn.links.heap = int32(i)
}

// settle places f at i, or where it belongs above or below.
func (d *deadlines) settle(i int, f filed) {
	for i > 0 {
		parent := (i - 1) / children
		if d.heap[parent].due <= f.due {
			break
		}
		d.place(i, d.heap[parent])
		i = parent
	}
	for {
		first := i*children + 1
		if first >= len(d.heap) {
			break
		}
		least := first
		for k := first + 1; k < min(first+children, len(d.heap)); k++ {
			if d.heap[k].due < d.heap[least].due {
				least = k
			}
		}
		if f.due <= d.heap[least].due {
			break
		}
		d.place(i, d.heap[least])
		i = least
	}
	d.place(i, f)
}

// pool keeps objects that nobody has for those that need one next, at most maxPool.
type pool[T any] struct{ free []*T }

const maxPool = 64

func (p *pool[T]) take() *T {
	n := len(p.free) - 1
	if n < 0 {
		return new(T)
	}
	v := p.free[n]
	p.free[n], p.free = nil, p.free[:n]
	return v
}

func (p *pool[T]) put(v *T) {
	if len(p.free) < maxPool {
		p.free = append(p.free, v)
	}
}
