package workload

import (
	"net/netip"
	"slices"
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

// arrive records a segment. It returns the record to acknowledge, that of the highest segment
// received without a gap before it, or false to send nothing. The first segment to arrive starts
// the sequence, whatever its number.
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

// Process is the receivers' Python process, which the document runs one of for all senders: it
// takes datagrams one after the other, whosever they are, from one socket's buffer. The zero
// Process has nothing to do.
type Process struct {
	queue []arrival
	idle  clock.Time // it is busy until then
}

// arrival is a datagram in the process's buffer.
type arrival struct {
	of   *receiver
	data []byte
}

// turn takes what is to be taken now of a receiver's, and has the receiver whose turn is next
// woken for it.
func (p *Process) turn(now clock.Time, r *receiver) {
	for len(p.queue) > 0 && p.queue[0].of == r && p.idle <= now {
		b := p.queue[0].data
		p.queue = p.queue[1:]
		p.idle = now.Add(r.take(b))
	}
	if len(p.queue) > 0 && p.queue[0].of != r {
		p.queue[0].of.wake(now)
	}
}

type receiver struct {
	cfg     *NotebookConfig
	process *Process
	socket  *sim.Socket
	to      netip.AddrPort
	peer    peer
	buf     []byte
	out     []byte
	tries   int        // handshakes sent
	again   clock.Time // when the next is due
	heard   bool       // the sender has answered

	acks, ackBytes, garbage, overflowed uint64
}

func newReceiver(cfg *NotebookConfig, process *Process, to netip.AddrPort) *receiver {
	return &receiver{
		cfg: cfg, process: process, to: to, buf: make([]byte, 1600),
		peer: peer{limit: cfg.Window, window: map[int]Ack{}, contiguous: -1},
	}
}

// Turn implements sim.DatagramApp.
func (r *receiver) Turn(now clock.Time, s *sim.Socket) {
	r.socket = s
	if !r.heard {
		r.ask(now)
	}
	p := r.process
	p.turn(now, r)
	for d, ok := s.Receive(r.buf); ok; d, ok = s.Receive(r.buf) {
		data := r.buf[:min(d.Len, len(r.buf))]
		switch {
		case len(p.queue) == 0 && p.idle <= now:
			p.idle = now.Add(r.take(data))
		case len(p.queue) < r.cfg.Buffer:
			p.queue = append(p.queue, arrival{r, slices.Clone(data)})
		default:
			r.overflowed++
		}
	}
	r.wake(now)
}

// wake sets when the receiver has something to do that no datagram tells it of.
func (r *receiver) wake(now clock.Time) {
	at := clock.Never
	if !r.heard {
		at = r.again
	}
	if q := r.process.queue; len(q) > 0 && q[0].of == r {
		at = clock.Earliest(at, max(now, r.process.idle))
	}
	r.socket.Wake(at)
}

func (r *receiver) ask(now clock.Time) {
	if !r.again.Due(now) && r.tries > 0 {
		return
	}
	if r.tries++; r.tries > handshakeTries {
		r.again = clock.Never
		return
	}
	r.again = now.Add(handshakeRetry)
	r.send(append(r.out[:0], handshake...))
}

// take takes a datagram and returns how long that takes: the document's program looks a segment
// up in all that it holds for the sender, sorts them, and walks them for the first gap.
func (r *receiver) take(b []byte) (cost time.Duration) {
	cost = r.cfg.ReceiverCost
	m, err := parse(b)
	if err != nil || !m.handshake && m.fields&fieldsData != fieldsData {
		r.garbage++
		return cost
	}
	r.heard = true
	if m.handshake {
		return cost
	}
	a, ok := r.peer.arrive(Ack{Seq: m.seq, SentAt: m.sent, Bytes: len(b)})
	if !ok {
		return cost
	}
	cost += time.Duration(1+len(r.peer.window)) * r.cfg.HeldCost
	r.out = a.append(r.out[:0])
	r.acks++
	r.ackBytes += uint64(len(r.out) + headers)
	r.send(r.out)
	return cost
}

// send sends what is lost if the host has no room: the document's programs do not look.
func (r *receiver) send(b []byte) { _ = r.socket.Send(r.to, b) }
