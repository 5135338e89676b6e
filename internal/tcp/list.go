package tcp

import "github.com/tidepool-net/tidepool/internal/clock"

// link is a connection's place in one intrusive list.
type link struct{ next, prev *Conn }

// readyList is a queue of the connections that may have something to send by
// one outlet.
type readyList struct{ first, last *Conn }

func (l *readyList) push(c *Conn) {
	n := &c.links.ready
	n.next, n.prev = nil, l.last
	c.links.isReady = true
	if l.last == nil {
		l.first = c
	} else {
		l.last.links.ready.next = c
	}
	l.last = c
}

func (l *readyList) remove(c *Conn) {
	n := &c.links.ready
	if n.prev == nil {
		l.first = n.next
	} else {
		n.prev.links.ready.next = n.next
	}
	if n.next == nil {
		l.last = n.prev
	} else {
		n.next.links.ready.prev = n.prev
	}
	*n, c.links.isReady = link{}, false
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

// deadlines is a binary heap of connections by links.due. A connection's key
// may be earlier than its true deadline, never later: a time-out that moves
// away with every acknowledgment costs nothing until the old one comes due.
type deadlines struct{ heap []*Conn }

func (d *deadlines) first() clock.Time {
	if len(d.heap) == 0 {
		return clock.Never
	}
	return d.heap[0].links.due
}

// set files c under due, or takes it out when due is never.
func (d *deadlines) set(c *Conn, due clock.Time) {
	i := int(c.links.heap)
	switch {
	case due == clock.Never && i < 0:
		return
	case due == clock.Never:
		d.remove(c)
		return
	case i < 0:
		i = len(d.heap)
		c.links.heap = int32(i)
		d.heap = append(d.heap, c)
	case due == c.links.due:
		return
	}
	c.links.due = due
	if !d.up(i) {
		d.down(i)
	}
}

func (d *deadlines) remove(c *Conn) {
	i, n := int(c.links.heap), len(d.heap)-1
	if i < 0 {
		return
	}
	c.links.heap, c.links.due = -1, clock.Never
	last := d.heap[n]
	d.heap[n] = nil
	d.heap = d.heap[:n]
	if i == n {
		return
	}
	d.place(i, last)
	if !d.up(i) {
		d.down(i)
	}
}

func (d *deadlines) place(i int, c *Conn) {
	d.heap[i] = c
	c.links.heap = int32(i)
}

func (d *deadlines) up(i int) bool {
	c, moved := d.heap[i], false
	for i > 0 {
		parent := (i - 1) / 2
		if d.heap[parent].links.due <= c.links.due {
			break
		}
		d.place(i, d.heap[parent])
		i, moved = parent, true
	}
	d.place(i, c)
	return moved
}

func (d *deadlines) down(i int) {
	c := d.heap[i]
	for {
		child := 2*i + 1
		if child >= len(d.heap) {
			break
		}
		if r := child + 1; r < len(d.heap) && d.heap[r].links.due < d.heap[child].links.due {
			child = r
		}
		if c.links.due <= d.heap[child].links.due {
			break
		}
		d.place(i, d.heap[child])
		i = child
	}
	d.place(i, c)
}
