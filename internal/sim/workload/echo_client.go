package workload

import (
	"math/rand/v2"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/sim"
)

// echoStream is one end of a byte stream in both directions. Its methods return how many bytes they
// moved.
type echoStream interface {
	Write(p []byte) int
	Read(p []byte) int
}

// echoClient is the document's client: it writes pieces with pauses, and then waits for the rest of
// the echo. It compares each byte; the document compares a SHA-256 of all bytes.
type echoClient struct {
	cfg    EchoConfig
	rng    *rand.Rand
	buf    []byte
	began  clock.Time
	now    clock.Time // time of the last turn
	next   clock.Time // time of the next write
	writes int        // number of pieces that were written completely
	piece  uint64     // the stream's offset at the end of the current piece
	// written and echoed are offsets in the stream. wrong is set when an echoed byte differs.
	written, echoed uint64
	wrong           bool
}

func newEchoClient(h *sim.Host, cfg EchoConfig) *echoClient {
	now := h.World().Now()
	return &echoClient{
		cfg: cfg, rng: h.World().Rand(h.Name() + EchoStream), buf: make([]byte, maxPiece),
		began: now, now: now, next: now,
	}
}

func (c *echoClient) turn(now clock.Time, s echoStream) {
	c.now = now
	for c.writes < c.cfg.Writes && c.next.Due(now) && c.write(s) {
		c.writes++
		c.next = now.Add(c.cfg.DrawPause(c.rng))
	}
	for !c.wrong {
		n := s.Read(c.buf)
		if n == 0 {
			return
		}
		right := sim.Check(c.buf[:n], c.echoed)
		c.echoed += uint64(right)
		c.wrong = right < n || c.echoed > c.written
	}
}

// write writes a piece, or the rest of one, and reports whether the piece is complete.
func (c *echoClient) write(s echoStream) bool {
	if c.piece == c.written {
		c.piece += uint64(c.cfg.DrawPiece(c.rng))
	}
	b := c.buf[:c.piece-c.written]
	sim.Fill(b, c.written)
	c.written += uint64(s.Write(b))
	return c.written == c.piece
}

// done reports whether the last pause is over and the echo complete.
func (c *echoClient) done() bool {
	return c.writes == c.cfg.Writes && c.echoed == c.written && c.next.Due(c.now)
}

// due returns when the client needs a turn. Never means that it needs one only when data arrives.
func (c *echoClient) due() clock.Time {
	if c.next > c.now && (c.writes < c.cfg.Writes || c.echoed == c.written) {
		return c.next
	}
	return clock.Never
}

func (c *echoClient) took() time.Duration { return c.now.Sub(c.began) }

// echo writes back the data that it reads, up to room bytes, through buf.
func echo(s echoStream, room int, buf []byte) {
	for room > 0 {
		n := s.Read(buf[:min(room, len(buf))])
		if n == 0 {
			return
		}
		s.Write(buf[:n])
		room -= n
	}
}
