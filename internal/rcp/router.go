package rcp

import (
	"fmt"
	"iter"
	"net/netip"
	"slices"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Router is the RCP of one UDP port: many sockets, one for each peer, and one send loop.
// One owner calls it and its sockets.
type Router struct {
	cfg      Config
	sessions map[netip.AddrPort]*Socket // MaxSessions at most
	backlog  int                        // 0: nobody listens
	queue    []*Socket                  // for Accept, backlog at most
	ahead    func() int                 // see CountAhead; nil: none
	closed   bool

	// The send loop. It takes the sockets in the order in which they were opened, and
	// goes on where the link was full.
	order []*Socket
	turn  int
	busy  bool       // a round is not over
	next  clock.Time // the next round; Never: there is no socket

	news   []*Socket
	counts Counts

	// Scratch memory: what Output lends, an ACK's bitmap, where a packet's bytes are.
	scratch []byte
	bitmap  Bitmap
	pieces  [][]byte
}

// NewRouter returns a router without sockets. Its error is ErrConfig.
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

// Listen has packets from new peers open sockets, of which backlog wait for Accept at the
// most, and at least one.
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

// CountAhead adds f's result to the sockets that wait for Accept: those that the owner has accepted
// before a program has asked for them.
func (r *Router) CountAhead(f func() int) { r.ahead = f }

// waiting is how many sockets wait for a program to accept them.
func (r *Router) waiting() int {
	if r.ahead == nil {
		return len(r.queue)
	}
	return len(r.queue) + r.ahead()
}

// Unlisten undoes Listen, and aborts the sockets that wait for Accept.
func (r *Router) Unlisten() {
	r.backlog = 0
	for len(r.queue) > 0 {
		r.queue[0].Abort()
	}
}

// Accept returns the socket that has waited longest; false: there is none.
func (r *Router) Accept() (*Socket, bool) {
	if len(r.queue) == 0 {
		return nil, false
	}
	s := r.queue[0]
	r.queue = slices.Delete(r.queue, 0, 1)
	s.queued = false
	return s, true
}

// Connect opens a socket to a peer. It is Open when the peer has answered, and ends with
// ErrTimeout when he does not.
func (r *Router) Connect(now clock.Time, peer netip.AddrPort) (*Socket, error) {
	switch {
	case r.closed:
		return nil, ErrClosed
	case !peer.IsValid() || peer.Port() == 0 || peer.Addr().IsUnspecified():
		return nil, fmt.Errorf("%v: %w", peer, ErrAddress)
	case r.sessions[peer] != nil:
		return nil, fmt.Errorf("%v: %w", peer, ErrInUse)
	case len(r.sessions) == r.cfg.MaxSessions:
		return nil, ErrTooMany
	}
	s := r.open(now, peer)
	s.out.open()
	if r.next == clock.Never {
		r.next = now
	}
	return s, nil
}

// Close ends the router and all of its sockets with ErrClosed.
func (r *Router) Close() {
	r.closed, r.backlog = true, 0
	for _, s := range r.order {
		s.Abort()
	}
	r.order, r.turn, r.next = nil, 0, clock.Never
}

// Sockets are those that are not closed, in the order in which they were opened.
func (r *Router) Sockets() iter.Seq[*Socket] {
	return func(yield func(*Socket) bool) {
		for _, s := range r.order {
			if s.state != Closed && !yield(s) {
				return
			}
		}
	}
}

// open adds a socket.
func (r *Router) open(now clock.Time, peer netip.AddrPort) *Socket {
	s := &Socket{
		router: r, peer: peer, heard: now,
		in: newAssembler(&r.cfg), out: newDisassembler(&r.cfg),
	}
	r.sessions[peer] = s
	r.order = append(r.order, s)
	return s
}

// forget removes a socket that has ended; the send loop's next round drops it from order.
func (r *Router) forget(s *Socket) {
	delete(r.sessions, s.peer)
	if s.queued {
		s.queued = false
		r.queue = slices.DeleteFunc(r.queue, func(q *Socket) bool { return q == s })
	}
}

// Input takes a datagram from a peer. It borrows b for the call.
func (r *Router) Input(now clock.Time, from netip.AddrPort, b []byte) Verdict {
	p, v := Parse(b)
	if v == Accepted && len(p.Data) > r.cfg.MaxPayload {
		v = LongData
	}
	s := r.sessions[from]
	if v == Accepted && s == nil {
		s, v = r.welcome(now, from, &p)
	}
	if v == Accepted {
		v = s.input(now, &p)
	}
	r.counts.input(v)
	if s != nil {
		s.counts.input(v)
	}
	return v
}

// welcome opens a socket for a packet from somebody new.
func (r *Router) welcome(now clock.Time, from netip.AddrPort, p *Packet) (*Socket, Verdict) {
	switch {
	case p.Type != DAT || p.Seq >= uint32(r.cfg.Width):
		return nil, NoSession // what is left of a connection that was
	case r.backlog == 0:
		return nil, NotListening
	case r.waiting() >= r.backlog:
		return nil, BacklogFull
	case len(r.sessions) == r.cfg.MaxSessions:
		return nil, TooManySessions
	}
	s := r.open(now, from)
	s.state, s.queued, s.passive = Open, true, true
	r.queue = append(r.queue, s)
	if r.next == clock.Never {
		r.next = now
		if r.cfg.Rand != nil {
			r.next = now.Add(r.cfg.phase())
		}
	}
	return s, Accepted
}

// tell notes that the socket has something new for its owner.
func (r *Router) tell(s *Socket) {
	if !s.told {
		s.told = true
		r.news = append(r.news, s)
	}
}

// Next returns a socket that the peer has told something new, or that has changed its
// state, since it was last returned here.
func (r *Router) Next() (*Socket, bool) {
	if len(r.news) == 0 {
		return nil, false
	}
	last := len(r.news) - 1
	s := r.news[last]
	r.news[last] = nil
	r.news = r.news[:last]
	s.told = false
	return s, true
}
