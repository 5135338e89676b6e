package notebook

import (
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/sim"
)

// peer is what the document's receiver keeps of a sender.
type peer struct {
	limit int // segments it keeps
	begun bool
	// high is the highest segment that had no gap before it once, and stored its record.
	// Whatever is not above it is passed over without a word.
	high   int
	stored Ack
	// window are the records above high; contiguous is the end of the run that begins
	// there, top the highest.
	window          map[int]Ack
	contiguous, top int
	bytes           uint64 // of the segments up to contiguous
}

// arrive takes a segment and returns what to acknowledge: the stored record of the highest
// without a gap before it, whose time is that of its own first arrival; false: nothing. The
// first segment that arrives is taken for the beginning, whatever its number.
func (p *peer) arrive(a Ack) (Ack, bool) {
	switch {
	case !p.begun:
		p.begun = true
		p.advance(a)
		return a, true
	case a.Seq <= p.high:
		return Ack{}, false
	case a.Seq == p.high+1 && len(p.window) == 0:
		p.advance(a)
		return a, true
	}
	if _, have := p.window[a.Seq]; !have {
		p.window[a.Seq] = a
		p.top = max(p.top, a.Seq)
	}
	for {
		next, have := p.window[p.contiguous+1]
		if !have {
			break
		}
		p.contiguous++
		p.bytes += uint64(next.Bytes)
	}
	switch {
	case p.contiguous == p.top:
		p.stored, p.high = p.window[p.top], p.top
		clear(p.window)
	case len(p.window)+1 == p.limit: // with the one that is stored
		p.chop()
	}
	if p.contiguous == p.high {
		return p.stored, true
	}
	return p.window[p.contiguous], true
}

// advance takes a segment that has nothing missing around it.
func (p *peer) advance(a Ack) {
	p.stored = a
	p.high, p.contiguous, p.top = a.Seq, a.Seq, a.Seq
	p.bytes += uint64(a.Bytes)
}

// chop forgets the highest.
func (p *peer) chop() {
	delete(p.window, p.top)
	p.top = p.high
	for seq := range p.window { // the largest is the same in any order
		p.top = max(p.top, seq)
	}
}

// The receiver asks its sender to begin, again each second, and gives up the tenth time.
const (
	handshakeRetry = time.Second
	handshakeTries = 10
)

// receiver is the document's receiver on a UDP socket, for one sender.
type receiver struct {
	cfg   *Config
	to    netip.AddrPort
	peer  peer
	buf   []byte
	out   []byte
	tries int        // handshakes sent
	again clock.Time // when the next is due
	heard bool       // the sender has answered
	idle  clock.Time // it is busy until then

	acks, ackBytes, garbage uint64
}

func newReceiver(cfg *Config, to netip.AddrPort) *receiver {
	return &receiver{
		cfg: cfg, to: to, buf: make([]byte, 1600),
		peer: peer{limit: cfg.Window, window: map[int]Ack{}, contiguous: -1},
	}
}

// Turn implements sim.DatagramApp.
func (r *receiver) Turn(now clock.Time, s *sim.Socket) {
	if !r.heard {
		r.ask(now, s)
	}
	for r.cfg.ReceiverCost == 0 || r.idle <= now {
		d, ok := s.Receive(r.buf)
		if !ok {
			break
		}
		r.idle = now.Add(r.cfg.ReceiverCost)
		r.take(s, r.buf[:min(d.Len, len(r.buf))])
	}
	wake := clock.Never
	if !r.heard {
		wake = r.again
	}
	if r.idle > now {
		wake = clock.Earliest(wake, r.idle)
	}
	s.Wake(wake)
}

// ask sends a handshake that is due.
func (r *receiver) ask(now clock.Time, s *sim.Socket) {
	if !r.again.Due(now) && r.tries > 0 {
		return
	}
	if r.tries++; r.tries > handshakeTries {
		r.again = clock.Never
		return
	}
	r.again = now.Add(handshakeRetry)
	r.send(s, append(r.out[:0], handshake...))
}

// take takes a datagram.
func (r *receiver) take(s *sim.Socket, b []byte) {
	m, err := parse(b)
	if err != nil || !m.handshake && m.fields&fieldsData != fieldsData {
		r.garbage++
		return
	}
	r.heard = true
	if m.handshake {
		return
	}
	a, ok := r.peer.arrive(Ack{Seq: m.seq, SentAt: m.sent, Bytes: len(b)})
	if !ok {
		return
	}
	r.out = a.append(r.out[:0])
	r.acks++
	r.ackBytes += uint64(len(r.out) + headers)
	r.send(s, r.out)
}

// send sends what is lost if the host has no room: the document's programs do not look.
func (r *receiver) send(s *sim.Socket, b []byte) { _ = s.Send(r.to, b) }
