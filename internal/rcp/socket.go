package rcp

import (
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/clock"
)

// State is where a socket is in its life.
type State uint8

// The states.
const (
	// Connecting is a socket that has heard nothing from the peer it asked.
	Connecting State = iota
	// Open is one whose two directions may carry bytes.
	Open
	// Lingering is one that is done, and goes on to acknowledge, for the peer may wait for
	// nothing else and have nothing to repeat.
	Lingering
	// Closed is one that its router has forgotten.
	Closed
)

// String returns the state's name.
func (s State) String() string {
	switch s {
	case Connecting:
		return "connecting"
	case Open:
		return "open"
	case Lingering:
		return "lingering"
	case Closed:
		return "closed"
	}
	return "unknown"
}

// finWait is how long the peer may take for its FIN, once the caller has closed and everything
// is acknowledged.
const finWait = time.Minute

// Socket is one connection. Its router's owner owns it, but for the producer's side of
// Tx and the consumer's of Rx.
type Socket struct {
	// Owner is whatever the router's owner keeps with it.
	Owner any

	router *Router
	peer   netip.AddrPort
	state  State
	err    error

	in  assembler
	out disassembler

	heard  clock.Time // when the peer last said something that he could not say before
	ending clock.Time // when lingering, or the wait for the peer's FIN, is over

	// A round of the send loop: an ACK, and the packets from cursor to limit.
	owed          bool
	cursor, limit uint64

	passive bool // a packet of the peer opened it

	gone   bool // the caller has closed both directions
	queued bool // for Accept
	told   bool // in the router's list of sockets with news
	counts Counts
}

// Peer returns the other end's address and port.
func (s *Socket) Peer() netip.AddrPort { return s.peer }

// State returns where the socket is in its life.
func (s *Socket) State() State { return s.state }

// Err returns what ended the socket before both directions were at their end: ErrTimeout
// or ErrClosed; nil: nothing has.
func (s *Socket) Err() error { return s.err }

// Tx returns the ring that the program writes the stream to. What is in it leaves with
// the next round. What is written behind the FIN that CloseWrite asks for never leaves.
func (s *Socket) Tx() *buffer.Ring { return s.out.tx }

// Rx returns the ring that the program reads the peer's stream from. It also holds the
// rest of it behind the end of the socket.
func (s *Socket) Rx() *buffer.Ring { return s.in.rx }

// Finished reports whether the peer has ended his stream, and all of it is in Rx.
func (s *Socket) Finished() bool { return s.in.finished }

// CloseWrite ends the stream behind what was written.
func (s *Socket) CloseWrite() { s.out.finWanted = true }

// Close ends the stream behind what was written, and discards what the peer still sends.
// The socket lives on until everything is delivered, or the peer is silent.
func (s *Socket) Close() {
	s.CloseWrite()
	s.gone = true
	s.in.discard = true
}

// Abort forgets the socket. The protocol has no word for that: the peer will notice the
// silence.
func (s *Socket) Abort() {
	if s.state != Closed {
		s.end(ErrClosed)
	}
}

// end takes the socket out of its router.
func (s *Socket) end(err error) {
	s.state = Closed
	if s.err == nil {
		s.err = err
	}
	s.in.slots, s.in.held = nil, 0
	s.router.forget(s)
	s.router.tell(s)
}

// input takes a packet from the peer.
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
		// Who repeats what arrived a fence ago is not there any more: perhaps somebody
		// with his port begins anew, and will be heard when this socket has timed out.
		near = v == Duplicate && seq+uint64(s.router.cfg.Width) >= s.in.next
	}
	if v == Accepted || near {
		s.heard = now
		if s.state == Connecting {
			s.state = Open
		}
	}
	if v == Accepted {
		s.router.tell(s)
	}
	s.settle(now)
	return v
}

// settle has a socket linger whose directions are both at their end.
func (s *Socket) settle(now clock.Time) {
	if s.state != Open || !s.out.done() {
		return
	}
	switch {
	case s.in.finished:
		s.state = Lingering
		s.ending = now.Add(s.router.cfg.Timeout)
		s.router.tell(s)
	case s.gone && s.ending == clock.Never:
		s.ending = now.Add(max(finWait, s.router.cfg.Timeout))
	}
}

// round starts a round of the send loop, unless the link has not taken the last one.
func (s *Socket) round(now clock.Time) {
	if s.state == Lingering {
		if s.ending.Due(now) {
			s.end(nil)
		}
		s.owed = true
		return
	}
	if now.Sub(s.heard) >= s.router.cfg.Timeout {
		s.end(ErrTimeout)
		return
	}
	if s.unproven() && now.Sub(s.heard) >= timeoutTicks*s.router.cfg.Tick {
		return
	}
	if next := s.in.next; next != s.in.pull() {
		s.router.tell(s)
	}
	s.out.cut()
	if s.settle(now); s.ending.Due(now) {
		s.end(nil)
		return
	}
	if s.sending() {
		return
	}
	s.owed = s.state != Connecting // he has sent nothing that we know of
	s.cursor = s.out.una
	s.limit = min(s.out.end, s.out.una+uint64(s.router.cfg.Width))
}

// unproven reports whether one packet is all that has come from the peer that opened the socket.
// Its source may be forged: it gets as many rounds as in the document, until there is another.
func (s *Socket) unproven() bool { return s.passive && s.counts.Received <= 1 }

// sending reports whether the round has not ended.
func (s *Socket) sending() bool { return s.state != Closed && (s.owed || s.cursor < s.limit) }

// output encodes the next packet of the round behind b; one without bytes: it is over.
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
		// The packet that opens is repeated each tick: nothing else tells of us.
		if !s.out.due(now, rec, r.cfg.Timer && s.state != Connecting) {
			continue
		}
		p := Packet{Type: DAT, Seq: uint32(seq)}
		if rec.fin {
			p.Type = FIN
		}
		r.count(s, p.Type, rec.sent != clock.Never)
		s.out.depart(now, seq, rec)
		b = p.Append(b)
		r.pieces = s.out.tx.Slices(r.pieces[:0], rec.off, int(rec.size))
		for _, piece := range r.pieces {
			b = append(b, piece...)
		}
		return b
	}
	return b
}
