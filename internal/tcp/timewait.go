package tcp

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// timeWait is the state of a connection in TIME-WAIT. The host needs it to acknowledge a
// retransmitted FIN, and to decide whether a new SYN may open a connection (RFC 9293 §3.6.1).
type timeWait struct {
	tuple          Tuple
	sndNxt, rcvNxt uint32
	window         uint16
	edge           uint32 // right edge of the receive window, relative to rcvNxt
	gone           bool   // TIME-WAIT is over
	plain          bool   // the peer sent no TCP options
	stamped        bool   // both ends sent timestamps
	stamps         stamps
	since          clock.Time
	expires        clock.Time
	answered       clock.Time // when the host last repeated the acknowledgment
	neighbors[timeWait]
}

// timeWaits holds the connections in TIME-WAIT by tuple, and in the order in which they expire.
type timeWaits struct {
	cfg     *Config
	drops   *Drops
	replies *replies
	byTuple map[Tuple]*timeWait
	chain[timeWait, *timeWait]
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

// add starts a connection's TIME-WAIT, unless MSL is negative. Beyond MaxTimeWait it removes the
// oldest connection.
func (w *timeWaits) add(now clock.Time, e *timeWait) {
	if e.gone = w.cfg.MSL < 0; e.gone {
		return
	}
	if len(w.byTuple) >= w.cfg.Limits.MaxTimeWait {
		w.remove(w.first)
	}
	e.expires = now.Add(2 * w.cfg.MSL)
	w.byTuple[e.tuple] = e
	w.push(e)
}

// input processes a segment in TIME-WAIT (RFC 9293 §3.10.7.4, SEGMENT ARRIVES). It reports whether
// the segment is a SYN that may open a new connection with the listener.
func (w *timeWaits) input(now clock.Time, e *timeWait, s *Segment, listener bool) bool {
	stamped := e.stamped && s.Options.HasTimestamps
	old := stamped && e.stamps.old(now, s.Options.TSVal)
	switch {
	case s.Flags.Has(RST):
		// RFC 1337 §4 (a): a reset must not end TIME-WAIT early.
		w.drops[DropTimeWait]++
		return false
	case s.Flags&(SYN|ACK|FIN) == SYN && listener && e.admits(&w.cfg.Knobs, s):
		return true
	case s.Flags.Has(SYN):
		// Fourth step: a SYN gets a challenge ACK.
	case !s.Flags.Has(ACK) && !(e.plain && e.repeatsFIN(s)):
		// Fifth step, performed before the first: drop a segment without ACK. Peers without TCP
		// options may retransmit a FIN without ACK.
		w.drops[DropNoAck]++
		return false
	case e.stamped && !stamped:
		w.drops[DropNoStamp]++ // RFC 7323 §3.2
		return false
	case old:
		// RFC 7323 §5.3 R1: acknowledge a segment with an old timestamp.
	case e.repeatsFIN(s) && s.Flags.Has(ACK) && !after(s.Ack, e.sndNxt):
		// Eighth step: the peer's FIN restarts the 2 MSL timeout.
		if stamped {
			e.stamps.recent, e.stamps.recentAt = s.Options.TSVal, now
		}
		w.chain.remove(e)
		e.expires = now.Add(2 * w.cfg.MSL)
		w.push(e)
	case s.segLen() == 0 && s.Seq-e.rcvNxt <= e.edge:
		w.drops[DropTimeWait]++ // an acceptable segment without news needs no answer
		return false
	}
	w.answer(now, e)
	return false
}

// repeatsFIN reports whether a segment ends with the FIN that the host has already received.
func (e *timeWait) repeatsFIN(s *Segment) bool {
	return s.Flags.Has(FIN) && s.Seq+uint32(s.Len)+1 == e.rcvNxt
}

// admits reports whether a SYN may end the TIME-WAIT (RFC 6191 §2). It compares timestamps, and
// sequence numbers if a timestamp is missing or equal. It admits a timestamp after a connection
// without them.
func (e *timeWait) admits(k *Knobs, s *Segment) bool {
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

// reuseAfter is how long a TIME-WAIT must have lasted before an active OPEN may use its tuple. Any
// timestamp clock that RFC 7323 §5.4 allows has ticked by then.
const reuseAfter = time.Second

// reusable reports whether an active OPEN may use a tuple in TIME-WAIT. The peer accepts it if its
// timestamp is newer (RFC 6191 §2). Without timestamps, TIME-WAIT must have ended.
func (w *timeWaits) reusable(now clock.Time, t Tuple) bool {
	e := w.byTuple[t]
	return e == nil || e.stamped && !w.cfg.NoTimestamps && !w.cfg.OptionsOff &&
		now.Sub(e.since) >= reuseAfter
}

// answer repeats the last acknowledgment, at most once per half an RTOMin.
func (w *timeWaits) answer(now clock.Time, e *timeWait) {
	w.drops[DropTimeWait]++
	if e.answered != clock.Never && now.Sub(e.answered) < w.cfg.Recovery.RTOMin/2 {
		return
	}
	e.answered = now
	w.replies.ack(now, e)
}
