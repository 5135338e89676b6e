package rcp

import (
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Datagram is a datagram to send. Its bytes are valid until the owner's next call.
type Datagram struct {
	Peer netip.AddrPort
	Data []byte
}

// phase draws the delay of the first round of a loop that a peer's packet starts.
func (c *Config) phase() time.Duration { return time.Duration(c.Rand.Int64N(int64(c.Tick))) }

// Deadline returns when the next round of the send loop is due; Never: there are no sockets.
func (r *Router) Deadline() clock.Time { return r.next }

// Advance starts the round that is due. A late call starts one round, not several.
func (r *Router) Advance(now clock.Time) {
	if !r.next.Due(now) {
		return
	}
	kept := r.order[:0]
	turn := r.turn
	for i, s := range r.order {
		if s.state != Closed {
			s.round(now)
		}
		if s.state != Closed {
			kept = append(kept, s)
		} else if i < r.turn {
			turn--
		}
	}
	clear(r.order[len(kept):])
	r.order, r.turn = kept, turn
	if len(kept) == 0 {
		r.next = clock.Never
		return
	}
	r.busy = true
	if r.next = r.next.Add(r.cfg.Tick); r.next.Due(now) {
		r.next = now.Add(r.cfg.Tick)
	}
}

// Output fills in the next datagram of the round. It returns false at the end of the round.
func (r *Router) Output(now clock.Time, d *Datagram) bool {
	if !r.busy {
		return false
	}
	for range r.order {
		if r.turn >= len(r.order) {
			r.turn = 0
		}
		s := r.order[r.turn]
		if r.scratch = s.output(now, r.scratch[:0]); len(r.scratch) > 0 {
			*d = Datagram{Peer: s.peer, Data: r.scratch}
			if !s.sending() {
				r.turn++ // in the next round the other sockets send first
			}
			return true
		}
		r.turn++
	}
	r.busy = false
	return false
}

// count counts a sent packet.
func (r *Router) count(s *Socket, t Type, again bool) {
	r.counts.output(t, again)
	s.counts.output(t, again)
}
