package tcp

import "github.com/tidepool-net/tidepool/internal/clock"

// reschedule updates the connection's positions in the host's lists. It must be called after a
// change of the data to send or of a timer.
func (h *Host) reschedule(c *Conn) {
	if c.state.over() {
		c.freeState()
		return
	}
	h.ready.push(c)
	if c.snd.path.Outlet < 0 && c.state.synchronized() && c.state != StateFinWait2 &&
		c.snd.rec.At.RTO == clock.Never && (c.snd.unsent() > 0 || c.snd.closed) {
		// The connection has something to send but no route: start a timeout.
		c.err, c.flags = ErrUnreachable, c.flags|connSoft
		c.snd.rec.ArmRTO(h.now)
	}
	h.schedule(c)
}

// readyConns are the connections that may have something to send, by outlet.
type readyConns struct {
	by   []connList
	turn int // the outlet that sends next
}

// push appends a connection to the list of its outlet, if it has an outlet and is in no list.
func (r *readyConns) push(c *Conn) {
	outlet := int(c.snd.path.Outlet)
	if c.links.isReady || outlet < 0 {
		return
	}
	for len(r.by) <= outlet {
		r.by = append(r.by, connList{which: inReady})
	}
	r.by[outlet].push(c)
	c.links.isReady = true
}

func (r *readyConns) remove(c *Conn) {
	if c.links.isReady {
		r.by[c.snd.path.Outlet].remove(c)
		c.links.isReady = false
	}
}

func (r *readyConns) waits(outlet int) bool {
	return outlet < len(r.by) && r.by[outlet].first != nil
}

// schedule moves the connection in the heap if its deadline is now earlier. If the deadline is
// later, Advance finds that when the earlier one comes due.
func (h *Host) schedule(c *Conn) {
	if due := c.deadline(); due != clock.Never &&
		(c.links.heap < 0 || due < h.deadlines.of(c)) {
		h.deadlines.set(c, due)
	}
}

// deadlines is a heap of connections ordered by deadline, with four children for each node. The
// heap contains the times themselves, so that a search among 100,000 connections reads few cache
// lines and no connection. A key may be earlier than the true deadline, but never later. So an
// acknowledgment that postpones a timeout does not change the heap.
type deadlines struct{ heap []deadlineEntry }

// deadlineEntry is an entry of the heap: a connection and its key.
type deadlineEntry struct {
	due  clock.Time
	conn *Conn
}

// children is the number of children of a node.
const children = 4

func (d *deadlines) first() clock.Time {
	if len(d.heap) == 0 {
		return clock.Never
	}
	return d.heap[0].due
}

// of returns the key of c, or clock.Never if c is not in the heap.
func (d *deadlines) of(c *Conn) clock.Time {
	if c.links.heap < 0 {
		return clock.Never
	}
	return d.heap[c.links.heap].due
}

// earliest returns the first connection and its key. The heap must not be empty.
func (d *deadlines) earliest() (*Conn, clock.Time) { return d.heap[0].conn, d.heap[0].due }

// set changes the key of c to due, or removes c if due is clock.Never.
func (d *deadlines) set(c *Conn, due clock.Time) {
	i := int(c.links.heap)
	switch {
	case due == clock.Never:
		d.remove(c)
		return
	case i < 0:
		i = len(d.heap)
		d.heap = append(d.heap, deadlineEntry{})
	case due == d.heap[i].due:
		return
	}
	d.settle(i, deadlineEntry{due, c})
}

func (d *deadlines) remove(c *Conn) {
	i, n := int(c.links.heap), len(d.heap)-1
	if i < 0 {
		return
	}
	c.links.heap = -1
	last := d.heap[n]
	d.heap[n] = deadlineEntry{}
	d.heap = d.heap[:n]
	if i < n {
		d.settle(i, last)
	}
}

func (d *deadlines) place(i int, f deadlineEntry) {
	d.heap[i] = f
	f.conn.links.heap = int32(i)
}

// settle stores f at i, or above or below it if the order of the heap requires that.
func (d *deadlines) settle(i int, f deadlineEntry) {
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

// link holds a connection's neighbors in a connList.
type link struct{ next, prev *Conn }

// The connLists that a connection can be in.
const (
	inAll   = iota // every connection of the host, oldest first
	inReady        // connections that may have something to send by one outlet
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

// NextEvent returns a connection or a listener with its events, and clears them. It reports false
// if no events are left.
func (h *Host) NextEvent() (*Conn, *Listener, Event, bool) {
	if c := h.events.pop(); c != nil {
		e := c.links.events
		c.links.events = 0
		return c, nil, e, true
	}
	if n := len(h.acceptable); n > 0 {
		l := h.acceptable[n-1]
		h.acceptable = h.acceptable[:n-1]
		l.event = false
		return nil, l, Acceptable, true
	}
	return nil, nil, 0, false
}
