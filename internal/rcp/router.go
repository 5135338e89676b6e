package rcp

import (
	"fmt"
	"iter"
	"net/netip"
	"slices"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Router is the RCP of one UDP port: a socket for each peer, and one send loop. Only one owner may
// call the router and its sockets.
type Router struct {
	cfg      Config
	sessions map[netip.AddrPort]*Socket // sockets by peer, at most MaxSessions
	backlog  int                        // limit of sockets that wait; 0: the router does not listen
	queue    []*Socket                  // sockets that wait for Accept, at most backlog
	unproven []*Socket                  // sockets with one packet from the peer, oldest first
	ahead    func() int                 // function of CountAhead; nil: none
	closed   bool

	// These fields belong to the send loop. It serves the sockets in the order of opening, and
	// continues with the socket at which the link was full.
	order []*Socket
	turn  int
	busy  bool       // a round is running
	next  clock.Time // time of the next round; Never: there are no sockets

	notified []*Socket
	counts   Counts

	// These are reusable buffers for Output's result, an ACK's bitmap, and the pieces of a packet.
	scratch []byte
	bitmap  Bitmap
	pieces  [][]byte
}

// NewRouter returns a router without sockets, or ErrConfig.
func NewRouter(cfg Config) (*Router, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	bitmap := make(Bitmap, bitmapLen(cfg.Width))
	return &Router{
		cfg: cfg, sessions: map[netip.AddrPort]*Socket{}, bitmap: bitmap,
		scratch: make([]byte, 0, HeaderLen+max(cfg.PacketSize, len(bitmap))),
	}, nil
}

// Listen makes packets of new peers open sockets. At most backlog of them, and at least one, wait
// for Accept.
func (r *Router) Listen(backlog int) error {
	switch {
	case r.closed:
		return ErrClosed
	case r.backlog > 0:
		return ErrListening
	}
	r.backlog = max(backlog, 1)
	return nil
}

// CountAhead adds the result of f to the number of sockets that wait for Accept. f counts sockets
// that the owner has accepted and the program has not.
func (r *Router) CountAhead(f func() int) { r.ahead = f }

// waiting returns how many sockets wait until a program accepts them.
func (r *Router) waiting() int {
	if r.ahead == nil {
		return len(r.queue)
	}
	return len(r.queue) + r.ahead()
}

// Unlisten reverses Listen, and aborts the sockets that wait for Accept.
func (r *Router) Unlisten() {
	r.backlog = 0
	for len(r.queue) > 0 {
		r.queue[0].Abort()
	}
}

// Accept returns the socket that has waited longest. It returns false if none waits.
func (r *Router) Accept() (*Socket, bool) {
	if len(r.queue) == 0 {
		return nil, false
	}
	s := r.queue[0]
	r.queue = slices.Delete(r.queue, 0, 1)
	s.queued = false
	return s, true
}

// Connect opens a socket to a peer. The socket is Open when the peer has answered, and fails with
// ErrTimeout if it does not.
func (r *Router) Connect(now clock.Time, peer netip.AddrPort) (*Socket, error) {
	switch {
	case r.closed:
		return nil, ErrClosed
	case !peer.IsValid() || peer.Port() == 0 || peer.Addr().IsUnspecified():
		return nil, fmt.Errorf("%v: %w", peer, ErrAddress)
	case r.sessions[peer] != nil:
		return nil, fmt.Errorf("%v: %w", peer, ErrInUse)
	case !r.room(now):
		return nil, ErrTooMany
	}
	s := r.open(now, peer)
	s.out.open()
	if r.next == clock.Never {
		r.next = now
	}
	return s, nil
}

// Close closes the router and all its sockets with ErrClosed.
func (r *Router) Close() {
	r.closed, r.backlog = true, 0
	for _, s := range r.order {
		s.Abort()
	}
	r.order, r.turn, r.next = nil, 0, clock.Never
}

// Sockets returns the sockets that are not closed, in the order of opening.
func (r *Router) Sockets() iter.Seq[*Socket] {
	return func(yield func(*Socket) bool) {
		for _, s := range r.order {
			if s.state != Closed && !yield(s) {
				return
			}
		}
	}
}

func (r *Router) open(now clock.Time, peer netip.AddrPort) *Socket {
	s := &Socket{
		router: r, peer: peer, lastActivity: now,
		in: newAssembler(&r.cfg), out: newDisassembler(&r.cfg),
	}
	r.sessions[peer] = s
	r.order = append(r.order, s)
	return s
}

// room reports whether another socket fits. If there are MaxSessions, it ends the oldest unproven
// socket, provided that the socket had time for a round trip. A client repeats its opening packet
// every tick, so one of these packets arrives when a socket is free.
func (r *Router) room(now clock.Time) bool {
	if len(r.sessions) < r.cfg.MaxSessions {
		return true
	}
	if len(r.unproven) == 0 || now.Sub(r.unproven[0].unproven) < r.cfg.Timeout/timeoutTicks {
		return false
	}
	s := r.unproven[0]
	i := slices.Index(r.order, s) // removes the socket now, because the next round may be far off
	r.order = slices.Delete(r.order, i, i+1)
	if i < r.turn {
		r.turn--
	}
	s.end(ErrTimeout)
	return true
}

// proven removes a socket from the unproven sockets.
func (r *Router) proven(s *Socket) {
	if s.unproven != clock.Never {
		s.unproven = clock.Never
		r.unproven = slices.DeleteFunc(r.unproven, func(u *Socket) bool { return u == s })
	}
}

// forget removes a closed socket. The send loop's next round removes it from order.
func (r *Router) forget(s *Socket) {
	delete(r.sessions, s.peer)
	r.proven(s)
	if s.queued {
		s.queued = false
		r.queue = slices.DeleteFunc(r.queue, func(q *Socket) bool { return q == s })
	}
}

// Input processes a datagram from a peer. It does not keep b.
func (r *Router) Input(now clock.Time, from netip.AddrPort, b []byte) Verdict {
	p, v := Parse(b)
	if v == Accepted && len(p.Data) > r.cfg.MaxPayload {
		v = LongData
	}
	s := r.sessions[from]
	if v == Accepted && s == nil {
		s, v = r.openForPeer(now, from, &p)
	}
	if v == Accepted {
		v = s.input(now, &p)
	}
	r.counts.input(v)
	if s != nil {
		if s.counts.input(v); s.counts.Received > 1 {
			r.proven(s)
		}
	}
	return v
}

// openForPeer opens a socket for a packet of a new peer.
func (r *Router) openForPeer(now clock.Time, from netip.AddrPort, p *Packet) (*Socket, Verdict) {
	switch {
	case p.Type != DAT || p.Seq >= uint32(r.cfg.Width):
		return nil, NoSession // the packet belongs to a former connection
	case r.backlog == 0:
		return nil, NotListening
	case r.waiting() >= r.backlog:
		return nil, BacklogFull
	case !r.room(now):
		return nil, TooManySessions
	}
	s := r.open(now, from)
	s.state, s.queued, s.unproven = Open, true, now
	r.queue, r.unproven = append(r.queue, s), append(r.unproven, s)
	if r.next == clock.Never {
		r.next = now
		if r.cfg.Rand != nil {
			r.next = now.Add(r.cfg.phase())
		}
	}
	return s, Accepted
}

// notify queues the socket for Next.
func (r *Router) notify(s *Socket) {
	if !s.changed {
		s.changed = true
		r.notified = append(r.notified, s)
	}
}

// Next returns a socket with new data, acknowledgments or state since Next last returned it.
func (r *Router) Next() (*Socket, bool) {
	if len(r.notified) == 0 {
		return nil, false
	}
	last := len(r.notified) - 1
	s := r.notified[last]
	r.notified[last] = nil
	r.notified = r.notified[:last]
	s.changed = false
	return s, true
}
