package tcp

import (
	"slices"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// catch keeps SYNs until the owner has decided about each: those that nobody listens for, and
// those of listeners that Defer. Tunnels and proxies are built on it.
//
// A source that never answers holds a place until its SYN-ACK has been retransmitted for the last
// time. So beyond a limit a SYN is answered by a cookie, and the connection that the cookie opens
// waits for the owner's decision in the SYN's place: to refuse it then takes a reset. At most limit
// SYNs and unanswered SYN-ACKs are kept, and as many connections that cookies opened.
type catch struct {
	rest     *Listener // has the SYNs that nobody listens for; nil: they are refused
	held     map[Tuple]caughtSYN
	fresh    []Tuple // of held, what NextCaught has not told
	opened   int     // of held, those that a cookie opened
	admitted int     // connections that were admitted and whose peer has not answered
}

type caughtSYN struct {
	segment  Segment
	last     *timeWait // of the same tuple, which the SYN ended
	listener *Listener // rest, or one that defers
	conn     *Conn     // that a cookie opened; nil: the SYN waits
}

// Catch has SYNs for ports without a listener wait for Admit, Reject or Ignore, as Defer does.
// Zero ends it: what NextCaught has not told yet is refused.
func (h *Host) Catch(limit int) {
	k := &h.catch
	rest := k.rest
	if limit > 0 {
		if rest == nil {
			k.rest = &Listener{host: h, deferred: true}
		}
		k.rest.backlog = limit
		return
	}
	k.rest = nil
	k.fresh = slices.DeleteFunc(k.fresh, func(t Tuple) bool {
		if k.held[t].listener != rest {
			return false
		}
		h.Reject(t)
		return true
	})
}

// take reports whether a segment that no listener is for is a SYN to be caught, or brings a cookie
// back.
func (h *Host) take(now clock.Time, s *Segment, last *timeWait) bool {
	l := h.catch.rest
	switch {
	case l == nil || s.Flags.Has(RST):
		return false
	case s.Flags&(SYN|ACK|FIN) == SYN:
		l.input(now, s, last)
		return true
	case s.Flags&(SYN|ACK) == ACK:
		return l.acceptCookie(now, s) || l.mayReturn(now, s)
	}
	return false
}

// unanswered is how many places are taken by peers that may not exist.
func (k *catch) unanswered() int { return len(k.held) - k.opened + k.admitted }

// hold keeps a SYN for a listener that defers.
func (l *Listener) hold(now clock.Time, s *Segment, last *timeWait, path Path) {
	h, k := l.host, &l.host.catch
	if _, again := k.held[s.Tuple]; again {
		return
	}
	if last == nil && l.wantsCookie() {
		l.sendCookie(now, s, path)
		return
	}
	if l.full() {
		h.drop(DropBacklog)
		return
	}
	// RFC 9293 §3.10.7.2, third: text on the SYN may be left to be sent again.
	bare := Segment{Tuple: s.Tuple, Header: s.Header, Count: 1}
	k.keep(caughtSYN{segment: bare, last: last, listener: l})
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

// release returns what was kept for a tuple, and keeps it no longer.
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

// NextCaught returns the tuple of a caught SYN, or of a connection that a cookie opened, once, and
// whose listener it is for; nil: nobody's.
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

// Admit answers a caught SYN as a listener would, or returns the connection that a cookie opened.
// It reports false when neither is held any longer, or there is no route to the SYN's sender.
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
	// A listener of its own, which it leaves at once: whoever admits it has accepted it.
	l := &Listener{host: h, local: t.Local(), options: caught.listener.options}
	c := l.answer(now, &caught.segment, path)
	c.links.listener = nil
	if caught.last != nil {
		c.snd.succeed(caught.last)
	}
	h.insert(c)
	c.flags |= flagAdmitted
	h.catch.admitted++
	if c.links.events != 0 {
		h.events.push(c)
	}
	c.sendSYN(now)
	c.touch()
	return c, true
}

// answered notes that the peer of an admitted connection has answered, or that it is over.
func (k *catch) answered(c *Conn) {
	if c.flags.has(flagAdmitted) {
		c.flags &^= flagAdmitted
		k.admitted--
	}
}

// Reject refuses a caught SYN with a reset.
func (h *Host) Reject(t Tuple) { h.dismiss(t, h.replies.refuse) }

// Ignore forgets a caught SYN, as if it had been lost.
func (h *Host) Ignore(t Tuple) { h.dismiss(t, func(*Segment) { h.drop(DropBacklog) }) }

// dismiss releases what was caught: a SYN to f. A connection that a cookie opened is reset, for its
// peer has been answered.
func (h *Host) dismiss(t Tuple, f func(syn *Segment)) {
	caught, ok := h.catch.release(t)
	if caught.conn != nil {
		caught.conn.Abort(h.now)
	} else if ok {
		f(&caught.segment)
	}
}
