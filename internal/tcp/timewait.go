package tcp

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// timeWait is what remains of a connection in TIME-WAIT: enough to acknowledge
// a repeated FIN and to judge a new SYN (RFC 9293 §3.6.1).
type timeWait struct {
	tuple          Tuple
	sndNxt, rcvNxt uint32
	window         uint16
	edge           uint32 // of the receive window, beyond rcvNxt
	gone           bool
	plain          bool // the peer sent no TCP options
	stamped        bool // it had agreed on timestamps
	stamps         stamps
	since          clock.Time
	expires        clock.Time
	answered       clock.Time
	neighbors[timeWait]
}

// timeWaits holds them by tuple and, because all wait equally long, in the
// order of their expiry.
type timeWaits struct {
	limit   int
	byTuple map[Tuple]*timeWait
	chain[timeWait, *timeWait]
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

func (w *timeWaits) remove(e *timeWait) {
	w.chain.remove(e)
	delete(w.byTuple, e.tuple)
	e.gone = true
}

// park reduces a connection to its TIME-WAIT. Beyond the limit the oldest goes:
// memory is promised, the quiet time is a precaution.
func (h *Host) park(now clock.Time, c *Conn) {
	e := &timeWait{
		tuple: c.tuple, sndNxt: uint32(c.snd.Nxt), rcvNxt: uint32(c.rcv.nxt),
		window: c.rcv.windowField(false), gone: h.cfg.MSL < 0, plain: c.has(flagPlain), since: now,
		stamped: c.has(flagStamps), stamps: c.stamps,
	}
	e.edge = uint32(c.rcv.window())
	c.parked = e
	owed := c.rcv.ack.owed > 0 || c.rcv.ack.pending > 0
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

// inputTimeWait handles a segment for a connection in TIME-WAIT (RFC 9293 §3.10.7.4). It
// reports true when the segment is a SYN that may open a new connection, if the listener can
// take one.
func (h *Host) inputTimeWait(now clock.Time, e *timeWait, s *Segment) bool {
	stamped := e.stamped && s.Options.HasTimestamps
	old := stamped && e.stamps.old(now, s.Options.TSVal)
	switch {
	case s.Flags.Has(RST):
		// RFC 1337 §4 (a): a reset must not end TIME-WAIT early.
		h.drop(DropTimeWait)
		return false
	case s.Flags&(SYN|ACK|FIN) == SYN && e.yields(h, s) && h.listener(s.Tuple) != nil:
		return true
	case s.Flags.Has(SYN):
		// fourth step: it draws a challenge ACK
	case !s.Flags.Has(ACK) && !(e.plain && e.repeatsFIN(s)):
		// Fifth step, before the first: no TCP sends this. Peers without TCP options repeat a FIN
		// without ACK until it is acknowledged.
		h.drop(DropNoAck)
		return false
	case e.stamped && !stamped:
		h.drop(DropNoStamp) // RFC 7323 §3.2
		return false
	case old:
		// not acceptable: RFC 7323 §5.3 R1
	case e.repeatsFIN(s) && s.Flags.Has(ACK) && !after(s.Ack, e.sndNxt):
		// Eighth step: the peer's FIN restarts the 2 MSL timeout.
		if stamped {
			e.stamps.recent, e.stamps.recentAt = s.Options.TSVal, now
		}
		h.waits.chain.remove(e)
		e.expires = now.Add(2 * h.cfg.MSL)
		h.waits.push(e)
	case s.space() == 0 && s.Seq-e.rcvNxt <= e.edge:
		h.drop(DropTimeWait) // acceptable, and says nothing new
		return false
	}
	h.answerTimeWait(now, e)
	return false
}

// repeatsFIN reports whether a segment ends with the FIN that the connection has received.
func (e *timeWait) repeatsFIN(s *Segment) bool {
	return s.Flags.Has(FIN) && s.Seq+uint32(s.Len)+1 == e.rcvNxt
}

// yields reports whether a SYN may end the TIME-WAIT: RFC 6191 §2. Stamps tell
// the incarnations apart where both use them, else sequence numbers do.
func (e *timeWait) yields(h *Host, s *Segment) bool {
	k := &h.cfg.Knobs
	later := after(s.Seq, e.rcvNxt)
	stamped := s.Options.HasTimestamps && !k.NoTimestamps && !k.OptionsOff
	switch {
	case !e.stamped:
		return stamped || later
	case !stamped, s.Options.TSVal == e.stamps.recent:
		return later
	}
	return after(s.Options.TSVal, e.stamps.recent)
}

// reuseAfter is how long a TIME-WAIT must have lasted before we ourselves open
// its connection anew: any peer's clock of RFC 7323 §5.4 has ticked by then.
const reuseAfter = time.Second

// reusable reports whether an active OPEN may take a tuple that may be in
// TIME-WAIT. RFC 6191 §2 asks the peer to accept it for its newer stamp; without
// stamps nothing vouches for it but the full wait.
func (h *Host) reusable(now clock.Time, t Tuple) bool {
	e := h.waits.find(t)
	return e == nil || e.stamped && !h.cfg.NoTimestamps && !h.cfg.OptionsOff &&
		now.Sub(e.since) >= reuseAfter
}

// answerTimeWait acknowledges again, at most once in half an RTOMin.
func (h *Host) answerTimeWait(now clock.Time, e *timeWait) {
	h.drop(DropTimeWait)
	if e.answered != clock.Never && now.Sub(e.answered) < h.cfg.Recovery.RTOMin/2 {
		return
	}
	e.answered = now
	h.replies.ack(h, e)
}
