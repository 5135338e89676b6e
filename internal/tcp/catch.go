package tcp

import (
	"slices"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// catch holds SYNs until the owner admits or rejects them: SYNs for ports without a listener, and
// SYNs for listeners with Defer. Tunnels and proxies use it.
//
// A SYN from a source that never answers occupies an entry until the last retransmission of its
// SYN-ACK. So at the listener's backlog, or at maxEager, the host answers SYNs with cookies, and
// the owner admits or rejects the connections that returned cookies establish. To reject such a
// connection, the host resets it. The backlog bounds the SYNs and unanswered SYN-ACKs, and also the
// connections from cookies.
type catch struct {
	fallback *Listener // for SYNs without a listener; nil: answer them with a reset
	held     map[Tuple]caughtSYN
	fresh    []Tuple // keys of held that NextCaught has not returned
	opened   int     // entries of held that a returned cookie established
	admitted int     // connections that were admitted and whose peer has not answered
}

// maxEager bounds the SYNs with unverified sources that the owner handles at a time: a port forward
// connects to its service for each.
const maxEager = 64

type caughtSYN struct {
	segment  Segment
	last     *timeWait // the TIME-WAIT of the tuple, which the SYN ended
	listener *Listener // fallback, or a listener with Defer
	conn     *Conn     // the connection that a cookie established; nil: the SYN waits
}

// Catch holds SYNs for ports without a listener until Admit, Reject or Ignore is called, as Defer
// does for a listener. A limit of zero turns this off and refuses the SYNs that NextCaught has not
// returned.
func (h *Host) Catch(limit int) {
	k := &h.catch
	fallback := k.fallback
	if limit > 0 {
		if fallback == nil {
			k.fallback = &Listener{host: h, deferred: true}
		}
		k.fallback.backlog = limit
		return
	}
	k.fallback = nil
	k.fresh = slices.DeleteFunc(k.fresh, func(t Tuple) bool {
		if k.held[t].listener != fallback {
			return false
		}
		h.Reject(t)
		return true
	})
}

// catchSegment handles a segment without a listener: it catches a SYN, and accepts a cookie. It
// returns false for other segments.
func (h *Host) catchSegment(now clock.Time, s *Segment, tw *timeWait) bool {
	l := h.catch.fallback
	switch {
	case l == nil || s.Flags.Has(RST):
		return false
	case s.Flags&(SYN|ACK|FIN) == SYN:
		l.input(now, s, tw)
		return true
	case s.Flags&(SYN|ACK) == ACK:
		return l.acceptCookie(now, s) || l.dropForRetry(now, s)
	}
	return false
}

// unanswered counts the entries and connections whose peer has sent only a SYN, so its address may
// be forged.
func (k *catch) unanswered() int { return len(k.held) - k.opened + k.admitted }

// hold stores a SYN for a listener with Defer, answers it with a cookie, or drops it.
func (l *Listener) hold(now clock.Time, s *Segment, tw *timeWait, path Path) {
	h, k := l.host, &l.host.catch
	if _, again := k.held[s.Tuple]; again {
		return
	}
	if tw == nil && l.wantsCookie() {
		l.sendCookie(now, s, path)
		return
	}
	if l.full() {
		h.drop(DropBacklog)
		return
	}
	// RFC 9293 §3.10.7.2, third step: the host discards data on the SYN, because the peer
	// retransmits it.
	bare := Segment{Tuple: s.Tuple, Header: s.Header, Count: 1}
	k.keep(caughtSYN{segment: bare, last: tw, listener: l})
}

func (k *catch) keep(caught caughtSYN) {
	if k.held == nil {
		k.held = map[Tuple]caughtSYN{}
	}
	t := caught.segment.Tuple
	k.held[t] = caught
	k.fresh = append(k.fresh, t)
	if caught.conn != nil {
		k.opened++
	}
}

// release removes and returns the entry for a tuple.
func (k *catch) release(t Tuple) (caughtSYN, bool) {
	caught, ok := k.held[t]
	if ok {
		delete(k.held, t)
		if caught.conn != nil {
			k.opened--
		}
	}
	return caught, ok
}

// NextCaught returns the tuple and the listener of the next caught SYN, or of the next connection
// that a cookie established. The listener is nil if the port has none. Each is returned once.
func (h *Host) NextCaught() (Tuple, *Listener, bool) {
	for len(h.catch.fresh) > 0 {
		t := h.catch.fresh[0]
		h.catch.fresh = h.catch.fresh[1:]
		if caught, ok := h.catch.held[t]; ok {
			if l := caught.listener; !l.local.IsValid() {
				return t, nil, true
			}
			return t, caught.listener, true
		}
	}
	return Tuple{}, nil, false
}

// Admit answers a caught SYN as a listener would, or returns the connection that a cookie
// established. It reports false if the SYN is gone, its sender unreachable, or the host full.
func (h *Host) Admit(now clock.Time, t Tuple) (*Conn, bool) {
	caught, ok := h.catch.release(t)
	if c := caught.conn; c != nil {
		c.links.listener = nil
		if c.links.events != 0 {
			h.events.push(c)
		}
		return c, true
	}
	if !ok || h.has(t) {
		return nil, false
	}
	path := h.cfg.Route(t.RemoteAddr)
	if path.Outlet < 0 || h.full() {
		return nil, false
	}
	h.now = now
	// The connection has a temporary listener and leaves it at once: the owner has accepted it.
	l := &Listener{host: h, local: t.Local(), options: caught.listener.options}
	c := l.answer(now, &caught.segment, path)
	c.links.listener = nil
	if caught.last != nil {
		c.snd.beginAfter(caught.last)
	}
	h.insert(c)
	c.flags |= connAdmitted
	h.catch.admitted++
	if c.links.events != 0 {
		h.events.push(c)
	}
	c.sendSYN(now)
	c.host.reschedule(c)
	return c, true
}

// answered records that the peer of an admitted connection has answered, or that the connection is
// over.
func (k *catch) answered(c *Conn) {
	if c.flags.has(connAdmitted) {
		c.flags &^= connAdmitted
		k.admitted--
	}
}

// Reject refuses a caught SYN with a reset.
func (h *Host) Reject(t Tuple) { h.dismiss(t, h.replies.reset) }

// Ignore discards a caught SYN as if it had been lost.
func (h *Host) Ignore(t Tuple) { h.dismiss(t, func(*Segment) { h.drop(DropBacklog) }) }

// dismiss releases an entry and calls f with its SYN. It resets a connection that a cookie
// established.
func (h *Host) dismiss(t Tuple, f func(syn *Segment)) {
	caught, ok := h.catch.release(t)
	if caught.conn != nil {
		caught.conn.Abort(h.now)
	} else if ok {
		f(&caught.segment)
	}
}
