package tcp

import "github.com/tidepool-net/tidepool/internal/clock"

// Input takes one segment or train that arrived at now. It borrows s and its
// payload for the call.
func (h *Host) Input(now clock.Time, s *Segment) {
	h.now = now
	if s.Count == 0 {
		s.Count = 1
	}
	h.counters.SegmentsIn += uint64(s.Count)
	if c := h.recent; c != nil && c.tuple == s.Tuple {
		c.input(now, s)
		return
	}
	if c := h.lookup(now, s.Tuple); c != nil {
		h.recent = c
		c.input(now, s)
		return
	}
	last := h.waits.byTuple[s.Tuple]
	l := h.listeners.find(s.Tuple)
	if last != nil && !h.waits.input(now, last, s, l != nil) {
		return
	}
	if l != nil && !s.Foreign {
		l.input(now, s, last)
		return
	}
	if h.take(now, s, last) {
		return
	}
	h.drop(DropNoConnection)
	h.replies.refuse(s)
}

// lookup returns the connection of a tuple, whole; nil: there is none, but perhaps a TIME-WAIT.
func (h *Host) lookup(now clock.Time, t Tuple) *Conn {
	if c := h.conns[t]; c != nil {
		return c
	}
	if o := h.half.byTuple[t]; o != nil {
		return h.unfold(now, o)
	}
	return nil
}
