package tcp

import "github.com/tidepool-net/tidepool/internal/clock"

// timeWait is what remains of a connection in TIME-WAIT: enough to acknowledge
// a repeated FIN and to judge a new SYN (RFC 9293 §3.6.1).
type timeWait struct {
	tuple          Tuple
	sndNxt, rcvNxt uint32
	window         uint16
	gone           bool
	stamped        bool // it had agreed on timestamps
	stamps         stamps
	expires        clock.Time
	answered       clock.Time
	next, prev     *timeWait
}

// timeWaits holds them by tuple and, because all wait equally long, in the
// order of their expiry.
type timeWaits struct {
	limit       int
	byTuple     map[Tuple]*timeWait
	first, last *timeWait
}

func (w *timeWaits) init(limit int) {
	w.limit = limit
	w.byTuple = map[Tuple]*timeWait{}
}

func (w *timeWaits) find(t Tuple) *timeWait {
	if len(w.byTuple) == 0 {
		return nil
	}
	return w.byTuple[t]
}

func (w *timeWaits) deadline() clock.Time {
	if w.first == nil {
		return clock.Never
	}
	return w.first.expires
}

func (w *timeWaits) expire(now clock.Time) {
	for w.first != nil && w.first.expires.Due(now) {
		w.remove(w.first)
	}
}

func (w *timeWaits) push(e *timeWait) {
	e.next, e.prev = nil, w.last
	if w.last == nil {
		w.first = e
	} else {
		w.last.next = e
	}
	w.last = e
}

func (w *timeWaits) unlink(e *timeWait) {
	if e.prev == nil {
		w.first = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next == nil {
		w.last = e.prev
	} else {
		e.next.prev = e.prev
	}
}

func (w *timeWaits) remove(e *timeWait) {
	w.unlink(e)
	delete(w.byTuple, e.tuple)
	e.gone = true
}

// park reduces a connection to its TIME-WAIT. Beyond the limit the oldest goes:
// memory is promised, the quiet time is a precaution.
func (h *Host) park(now clock.Time, c *Conn) {
	e := &timeWait{
		tuple: c.tuple, sndNxt: uint32(c.snd.nxt), rcvNxt: uint32(c.rcv.nxt),
		window: c.windowField(), gone: h.cfg.MSL < 0,
		stamped: c.has(flagStamps), stamps: c.stamps,
	}
	c.parked = e
	owed := c.rcv.acks > 0 || c.rcv.pending > 0
	h.remove(c)
	if owed {
		h.replies.ack(h, e)
	}
	if e.gone {
		return
	}
	if len(h.waits.byTuple) >= h.waits.limit {
		h.waits.remove(h.waits.first)
	}
	e.expires = now.Add(2 * h.cfg.MSL)
	h.waits.byTuple[e.tuple] = e
	h.waits.push(e)
}

// TimeWaits returns how many connections are in TIME-WAIT.
func (h *Host) TimeWaits() int { return len(h.waits.byTuple) }

// inputTimeWait handles a segment for a connection in TIME-WAIT. It reports
// true when the segment is a SYN that may open the connection anew.
func (h *Host) inputTimeWait(now clock.Time, e *timeWait, s *Segment) bool {
	switch {
	case s.Flags.Has(RST):
		// RFC 1337: a reset must not end TIME-WAIT early.
		h.drop(DropTimeWait)
		return false
	case s.Flags.Has(SYN) && !s.Flags.Has(ACK):
		// RFC 9293 §3.6.1: MAY accept a new SYN whose number is beyond the last incarnation's.
		if after(s.Seq, e.rcvNxt) && h.listener(s.Tuple) != nil {
			h.waits.remove(e)
			return true
		}
		h.answerTimeWait(now, e)
		return false
	case s.Flags.Has(FIN):
		// RFC 9293 §3.10.7.4, eighth step: restart the 2 MSL time-out.
		h.waits.unlink(e)
		e.expires = now.Add(2 * h.cfg.MSL)
		h.waits.push(e)
		h.answerTimeWait(now, e)
		return false
	case s.space() > 0:
		h.answerTimeWait(now, e)
		return false
	}
	h.drop(DropTimeWait) // an empty ACK deserves no answer
	return false
}

// answerTimeWait acknowledges again, at most once in half an RTOMin.
func (h *Host) answerTimeWait(now clock.Time, e *timeWait) {
	h.drop(DropTimeWait)
	if e.answered != clock.Never && now.Sub(e.answered) < h.cfg.RTOMin/2 {
		return
	}
	e.answered = now
	h.replies.ack(h, e)
}
