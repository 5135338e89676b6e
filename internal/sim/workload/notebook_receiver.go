package workload

import (
	"net/netip"
	"slices"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/sim"
)

// peer is the state of the document's receiver for one sender.
type peer struct {
	limit int // maximum number of segments that the receiver keeps
	begun bool
	// high was the highest segment when there was last no gap. stored is its record. Segments up to
	// high are ignored.
	high   int
	stored Ack
	// window has the records above high. contiguous is the last segment before the first gap above
	// high, and top is the highest segment.
	window          map[int]Ack
	contiguous, top int
	bytes           uint64 // number of payload bytes in the segments up to contiguous
}

// arrive records a segment. It returns the record to acknowledge: the record of the highest segment
// without a gap before it. It returns false if no acknowledgment is sent. The first segment to
// arrive starts the sequence, whatever its number.
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
	case len(p.window)+1 == p.limit: // includes the stored record
		p.dropHighest()
	}
	if p.contiguous == p.high {
		return p.stored, true
	}
	return p.window[p.contiguous], true
}

// advance handles a segment without gaps around it.
func (p *peer) advance(a Ack) {
	p.stored = a
	p.high, p.contiguous, p.top = a.Seq, a.Seq, a.Seq
	p.bytes += uint64(a.Bytes)
}

func (p *peer) dropHighest() {
	delete(p.window, p.top)
	p.top = p.high
	for seq := range p.window { // the largest number does not depend on the order
		p.top = max(p.top, seq)
	}
}

// The receiver sends its sender up to ten requests, one second apart, and gives up one second after
// the last.
const (
	handshakeRetry = time.Second
	handshakeTries = 10
)

// Process is the Python process of the receivers. The document runs one process for all senders. It
// takes their datagrams one after the other from the buffer of one socket. The zero Process is
// idle.
type Process struct {
	queue []arrival
	idle  clock.Time // the process is busy until then
}

// arrival is a datagram in the process's buffer.
type arrival struct {
	of   *receiver
	data []byte
}

// turn processes the datagrams that are due, and gives the receiver of the next datagram a turn at
// that datagram's time.
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
	tries   int        // number of handshakes sent
	again   clock.Time // when the next handshake is due
	heard   bool       // the sender has answered

	acks, overflowed uint64
}

func newReceiver(cfg *NotebookConfig, process *Process, to netip.AddrPort) *receiver {
	return &receiver{
		cfg: cfg, process: process, to: to, buf: make([]byte, 1600),
		peer: peer{limit: cfg.Window, window: map[int]Ack{}, contiguous: -1},
	}
}

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

// take processes a datagram and returns the time that this takes. The document's program searches
// for the segment among all that it holds for the sender, sorts them, and iterates over them to the
// first gap.
func (r *receiver) take(b []byte) (cost time.Duration) {
	cost = r.cfg.ReceiverCost
	m, err := parse(b)
	if err != nil {
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
	r.send(r.out)
	return cost
}

// send drops the datagram if the host has no room. The document's programs do not check this.
func (r *receiver) send(b []byte) { _ = r.socket.Send(r.to, b) }
