package tcp

import (
	"net/netip"
	"slices"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// catch keeps SYNs until the owner has decided about each: those that nobody listens for, and
// those of listeners that Defer. Tunnels and proxies are built on it. Beyond a limit a SYN is left
// unanswered, and its sender tries again.
type catch struct {
	limit int // zero: SYNs that nobody listens for are refused
	held  map[Tuple]caughtSYN
	fresh []Tuple // of held, what NextCaught has not told
}

type caughtSYN struct {
	segment  Segment
	last     *timeWait // of the same tuple, which the SYN ended
	listener *Listener // nil: nobody's
}

// Catch has up to limit SYNs for ports without a listener wait for Admit, Reject
// or Ignore. Zero ends it: what NextCaught has not told yet is refused.
func (h *Host) Catch(limit int) {
	h.catch.limit = limit
	if limit > 0 {
		return
	}
	h.catch.fresh = slices.DeleteFunc(h.catch.fresh, func(t Tuple) bool {
		if h.catch.held[t].listener != nil {
			return false
		}
		h.Reject(t)
		return true
	})
}

// passive is who answers a SYN: listeners, what catches the rest, and what waits for the answer.
type passive struct {
	listeners map[netip.AddrPort]*Listener
	listening map[uint16]int // how many of them have a port
	catch     catch
	half      halfOpens
}

// take keeps a segment if it is a SYN to be caught, or the repetition of one.
func (h *Host) take(s *Segment, last *timeWait) bool {
	k := &h.catch
	if k.limit == 0 || s.Flags&(SYN|ACK|RST|FIN) != SYN {
		return false
	}
	h.hold(s, last, nil, k.limit)
	return true
}

// hold keeps a SYN, or its repetition, if no more than limit are held.
func (h *Host) hold(s *Segment, last *timeWait, l *Listener, limit int) {
	k := &h.catch
	if _, again := k.held[s.Tuple]; again {
		return
	}
	if len(k.held) >= limit {
		h.drop(DropBacklog)
		return
	}
	if k.held == nil {
		k.held = map[Tuple]caughtSYN{}
	}
	// RFC 9293 §3.10.7.2, third: text on the SYN may be left to be sent again.
	bare := Segment{Tuple: s.Tuple, Header: s.Header, Count: 1}
	k.held[s.Tuple] = caughtSYN{bare, last, l}
	k.fresh = append(k.fresh, s.Tuple)
}

// Knows reports whether there is a connection of that tuple, in TIME-WAIT too.
func (h *Host) Knows(t Tuple) bool { return h.has(t) || h.waits.find(t) != nil }

// NextCaught returns a caught SYN's tuple, once, and whose listener it is for; nil: nobody's.
func (h *Host) NextCaught() (Tuple, *Listener, bool) {
	for len(h.catch.fresh) > 0 {
		t := h.catch.fresh[0]
		h.catch.fresh = h.catch.fresh[1:]
		if caught, ok := h.catch.held[t]; ok {
			return t, caught.listener, true
		}
	}
	return Tuple{}, nil, false
}

// Admit answers a caught SYN as a listener would. It reports false when the SYN
// is no longer held, or there is no way back to its sender.
func (h *Host) Admit(now clock.Time, t Tuple) (*Conn, bool) {
	caught, ok := h.catch.held[t]
	delete(h.catch.held, t)
	if !ok || h.has(t) {
		return nil, false
	}
	path := h.cfg.Route(t.RemoteAddr)
	if path.Outlet < 0 || h.full() {
		return nil, false
	}
	h.now = now
	// A listener of its own, which it leaves at once: whoever admits it has accepted it.
	l := &Listener{host: h, local: t.Local()}
	if caught.listener != nil {
		l.options = caught.listener.options
	}
	c := l.answer(now, &caught.segment, path)
	c.links.listener = nil
	if caught.last != nil {
		c.succeed(caught.last)
	}
	h.insert(c)
	if c.links.events != 0 {
		h.events.push(c)
	}
	c.sendSYN(now)
	c.touch()
	return c, true
}

// Reject refuses a caught SYN with a reset.
func (h *Host) Reject(t Tuple) {
	if caught, ok := h.catch.held[t]; ok {
		delete(h.catch.held, t)
		h.refuse(&caught.segment)
	}
}

// Ignore forgets a caught SYN, as if it had been lost.
func (h *Host) Ignore(t Tuple) {
	if _, ok := h.catch.held[t]; ok {
		delete(h.catch.held, t)
		h.drop(DropBacklog)
	}
}
