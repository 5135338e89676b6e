package workload

import (
	"math/rand/v2"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/sim"
)

// stream is one end of whatever carries bytes both ways. Both return how many they moved.
type echoStream interface {
	Write(p []byte) int
	Read(p []byte) int
}

// client is the document's: it writes a piece, rests, and so on, and then waits for the rest
// of its echo. It checks each byte as it comes back, which the document does by a SHA-256 of
// all of them.
type echoClient struct {
	cfg    EchoConfig
	rng    *rand.Rand
	buf    []byte
	began  clock.Time
	now    clock.Time // of its last turn
	next   clock.Time // when it writes again
	writes int        // pieces written whole
	piece  uint64     // the stream's offset at the end of the piece being written
	// written and echoed are the stream's offsets; wrong is set when a byte came back that
	// was not written.
	written, echoed uint64
	wrong           bool
}

func newEchoClient(h *sim.Host, cfg EchoConfig) *echoClient {
	now := h.World().Now()
	return &echoClient{
		cfg: cfg, rng: h.World().Rand(h.Name() + " " + cfg.Name), buf: make([]byte, maxPiece),
		began: now, now: now, next: now,
	}
}

func (c *echoClient) turn(now clock.Time, s echoStream) {
	c.now = now
	for c.writes < c.cfg.Writes && c.next.Due(now) && c.write(s) {
		c.writes++
		c.next = now.Add(c.pause())
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

// write writes a piece, or the rest of one, and reports whether all of it has been written.
func (c *echoClient) write(s echoStream) bool {
	if c.piece == c.written {
		c.piece += uint64(c.cfg.MinBytes + c.rng.IntN(c.cfg.MaxBytes-c.cfg.MinBytes+1))
	}
	b := c.buf[:c.piece-c.written]
	sim.Fill(b, c.written)
	c.written += uint64(s.Write(b))
	return c.written == c.piece
}

// pause draws how long the client rests.
func (c *echoClient) pause() time.Duration {
	steps := int64((c.cfg.MaxPause - c.cfg.MinPause) / time.Millisecond)
	return c.cfg.MinPause + time.Duration(c.rng.Int64N(steps+1))*time.Millisecond
}

// done reports whether the last pause is over and the echo whole.
func (c *echoClient) done() bool {
	return c.writes == c.cfg.Writes && c.echoed == c.written && c.next.Due(c.now)
}

// due is when the client wants a turn; never: when something comes back.
func (c *echoClient) due() clock.Time {
	if c.next > c.now && (c.writes < c.cfg.Writes || c.echoed == c.written) {
		return c.next
	}
	return clock.Never
}

func (c *echoClient) took() time.Duration { return c.now.Sub(c.began) }

// echo writes back what it reads, as far as there is room, through buf.
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
