package tcp

import "github.com/tidepool-net/tidepool/internal/clock"

// readyConns are the connections that may have something to send, by outlet.
type readyConns struct {
	by   []connList
	turn int // the outlet whose turn it is
}

// push queues a connection behind the others of its outlet, if it has one and is not queued.
func (r *readyConns) push(c *Conn) {
	outlet := c.snd.path.Outlet
	if c.links.isReady || outlet < 0 {
		return
	}
	for len(r.by) <= outlet {
		r.by = append(r.by, connList{which: inReady})
	}
	r.by[outlet].push(c)
	c.links.isReady = true
}

// remove takes a connection out, if it is queued.
func (r *readyConns) remove(c *Conn) {
	if c.links.isReady {
		r.by[c.snd.path.Outlet].remove(c)
		c.links.isReady = false
	}
}

// waits reports whether a connection waits for room at an outlet.
func (r *readyConns) waits(outlet int) bool {
	return outlet < len(r.by) && r.by[outlet].first != nil
}

// Output fills t with the next train to send at now and reports whether there
// was one. Room holds, an outlet, how many segments its link takes now; what
// finds no room stays. Connections take turns, a train each.
func (h *Host) Output(now clock.Time, room []int, t *Train) bool {
	h.now = now
	if h.replies.output(room, t) {
		h.counters.SegmentsOut++
		return true
	}
	for range h.ready.by {
		if h.ready.turn++; h.ready.turn >= len(h.ready.by) {
			h.ready.turn = 0
		}
		turn := h.ready.turn
		if turn < len(room) && room[turn] > 0 && h.outputBy(now, room[turn], t) {
			h.counters.SegmentsOut += uint64(t.Segments())
			return true
		}
	}
	return false
}

// Ready reports whether Output may have something.
func (h *Host) Ready() bool {
	if h.replies.n > 0 {
		return true
	}
	for i := range h.ready.by {
		if h.ready.waits(i) {
			return true
		}
	}
	return false
}

// Waits reports whether a connection waits for room at an outlet.
func (h *Host) Waits(outlet int) bool { return h.ready.waits(outlet) }

// outputBy gives the connections of one outlet their turn until one sends.
func (h *Host) outputBy(now clock.Time, room int, t *Train) bool {
	l := &h.ready.by[h.ready.turn]
	for c := l.first; c != nil; c = l.first {
		h.ready.remove(c)
		if c.output(now, room, t) {
			h.ready.push(c)
			return true
		}
		if c.folds() {
			h.fold(c)
			continue
		}
		c.settle(now)
		h.schedule(c) // what it waits for may be a time
	}
	return false
}

// wake queues a connection for output and files its deadline.
func (h *Host) wake(c *Conn) {
	h.ready.push(c)
	if c.snd.path.Outlet < 0 {
		c.stranded()
	}
	h.schedule(c)
}

// schedule files the connection's deadline if it is earlier than the filed one;
// a later one is found when the earlier comes due.
func (h *Host) schedule(c *Conn) {
	if due := c.deadline(); due != clock.Never &&
		(c.links.heap < 0 || due < h.deadlines.of(c)) {
		h.deadlines.set(c, due)
	}
}
