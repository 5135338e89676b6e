package rcp

import (
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/clock"
)

// State is the state of a socket.
type State uint8

// These are the states.
const (
	// Connecting means that the peer has not answered yet.
	Connecting State = iota
	// Open means that both directions can transfer data.
	Open
	// Lingering means that the socket is finished. It still acknowledges packets, because the peer
	// may have missed the last acknowledgment.
	Lingering
	// Closed means that the socket was removed from its router.
	Closed
)

var stateNames = [...]string{"connecting", "open", "lingering", "closed"}

// String returns the state's name.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "unknown"
}

// finWait is how long to wait for the peer's FIN after the caller has closed and everything is
// acknowledged.
const finWait = time.Minute

// Socket is one connection. Only its router's owner may use it. As an exception, the program may
// produce in Tx and consume from Rx.
type Socket struct {
	// Owner belongs to the router's owner. This package does not use it.
	Owner any

	router *Router
	peer   netip.AddrPort
	state  State
	err    error

	in  assembler
	out disassembler

	lastActivity clock.Time // when the peer last proved that it receives or sends
	ending       clock.Time // end of lingering, or of the wait for the peer's FIN

	// These fields describe a round of the send loop: an ACK, and the packets from cursor to limit.
	owed          bool
	cursor, limit uint64

	// unproven is the time at which a packet opened the socket, until the peer sends another
	// packet. Before that, the source may be forged, and the socket gets as many rounds as in the
	// document. Afterwards, unproven is Never.
	unproven clock.Time

	gone    bool // the caller has closed both directions
	queued  bool // the socket waits for Accept
	changed bool // the socket waits for Next
	counts  Counts
}

// Peer returns the peer's address and port.
func (s *Socket) Peer() netip.AddrPort { return s.peer }

// State returns the socket's state.
func (s *Socket) State() State { return s.state }

// Err returns why the socket failed, ErrTimeout or ErrClosed, or nil if it has not failed.
func (s *Socket) Err() error { return s.err }

// Tx returns the ring to which the program writes the stream. The next round sends its data. Data
// after CloseWrite is never sent.
func (s *Socket) Tx() *buffer.Ring { return s.out.tx }

// Rx returns the ring from which the program reads the peer's stream. The program can still read
// the data after the socket has closed.
func (s *Socket) Rx() *buffer.Ring { return s.in.rx }

// Finished reports whether the peer has ended its stream, and all of it is in Rx.
func (s *Socket) Finished() bool { return s.in.finished }

// CloseWrite ends the stream after the written data.
func (s *Socket) CloseWrite() { s.out.finWanted = true }

// Close ends the stream after the written data, and discards further data of the peer. The socket
// stays until the peer has received everything and sent its FIN, or has been silent for too long.
func (s *Socket) Close() {
	s.CloseWrite()
	s.gone = true
	s.in.discard = true
}

// Abort removes the socket. The protocol has no message for this: the peer detects the silence.
func (s *Socket) Abort() {
	if s.state != Closed {
		s.end(ErrClosed)
	}
}

func (s *Socket) end(err error) {
	s.state = Closed
	if s.err == nil {
		s.err = err
	}
	s.in.slots, s.in.held = nil, 0
	s.router.forget(s)
	s.router.notify(s)
}

// input processes a packet of the peer.
func (s *Socket) input(now clock.Time, p *Packet) Verdict {
	var v Verdict
	near := false
	if p.Type == ACK {
		bitmap := p.Bitmap
		if s.router.cfg.Window {
			bitmap = nil
		}
		v = s.out.acknowledge(now, expand(s.out.una, p.Seq), bitmap)
	} else {
		seq := expand(s.in.next, p.Seq)
		v = s.in.assemble(seq, p)
		// A peer that repeats packets from before the last fence does not receive our
		// acknowledgments any more. A new program may use its port; it connects after this socket
		// has timed out.
		near = v == Duplicate && seq+uint64(s.router.cfg.Width) >= s.in.next
	}
	if v == Accepted || near {
		s.lastActivity = now
		if s.state == Connecting {
			s.state = Open
		}
	}
	if v == Accepted {
		s.router.notify(s)
	}
	s.lingerIfDone(now)
	return v
}

// lingerIfDone makes a socket linger when both its directions have ended.
func (s *Socket) lingerIfDone(now clock.Time) {
	if s.state != Open || !s.out.done() {
		return
	}
	switch {
	case s.in.finished:
		s.state = Lingering
		s.ending = now.Add(s.router.cfg.Timeout)
		s.router.notify(s)
	case s.gone && s.ending == clock.Never:
		s.ending = now.Add(max(finWait, s.router.cfg.Timeout))
	}
}

// round starts a round of the send loop, unless the previous one is unfinished because the link was
// full.
func (s *Socket) round(now clock.Time) {
	if s.state == Lingering {
		if s.ending.Due(now) {
			s.end(nil)
		}
		s.owed = true
		return
	}
	if now.Sub(s.lastActivity) >= s.router.cfg.Timeout {
		s.end(ErrTimeout)
		return
	}
	if s.unproven != clock.Never && now.Sub(s.lastActivity) >= timeoutTicks*s.router.cfg.Tick {
		return
	}
	if next := s.in.next; next != s.in.pull() {
		s.router.notify(s)
	}
	s.out.cut()
	if s.lingerIfDone(now); s.ending.Due(now) {
		s.end(nil)
		return
	}
	if s.sending() {
		return
	}
	s.owed = s.state != Connecting // nothing has arrived while connecting
	s.cursor = s.out.una
	s.limit = min(s.out.end, s.out.una+uint64(s.router.cfg.Width))
}

// sending reports whether the round is unfinished.
func (s *Socket) sending() bool { return s.state != Closed && (s.owed || s.cursor < s.limit) }

// output appends the next packet of the round to b. It appends nothing at the end of the round.
func (s *Socket) output(now clock.Time, b []byte) []byte {
	if s.state == Closed {
		return b
	}
	r := s.router
	if s.owed {
		s.owed = false
		s.in.fill(r.bitmap)
		r.count(s, ACK, false)
		p := Packet{Type: ACK, Seq: uint32(s.in.next), Bitmap: r.bitmap}
		return p.Append(b)
	}
	for s.cursor = max(s.cursor, s.out.una); s.cursor < s.limit; {
		seq := s.cursor
		s.cursor++
		rec := s.out.record(seq)
		// The packet that opens a connection is repeated every tick, because no other packet
		// announces the connection to the peer.
		if !s.out.due(now, rec, r.cfg.Timer && s.state != Connecting) {
			continue
		}
		p := Packet{Type: DAT, Seq: uint32(seq)}
		if rec.fin {
			p.Type = FIN
		}
		r.count(s, p.Type, rec.sent != clock.Never)
		s.out.recordSent(now, seq, rec)
		b = p.Append(b)
		r.pieces = s.out.tx.Slices(r.pieces[:0], rec.off, int(rec.size))
		for _, piece := range r.pieces {
			b = append(b, piece...)
		}
		return b
	}
	return b
}
