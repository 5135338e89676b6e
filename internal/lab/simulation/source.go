package simulation

import (
	"cmp"
	"fmt"
	"math"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/sim"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// source is the sending application: it writes as fast as TCP sends, at a rate, or on and off.
type source struct {
	flow *flow
	size uint64
	sent uint64
	shut bool
}

// These are amounts of a source's data, in bytes.
const (
	endless = math.MaxUint64
	// A source keeps three congestion windows plus minAhead in the send buffer. That is enough for
	// a sender whose window doubles, so it never waits for its application, and little enough for a
	// thousand flows.
	minAhead = 64 << 10
)

func newSource(f *flow) *source {
	s := &source{flow: f, size: f.spec.App.Size}
	s.size = cmp.Or(s.size, endless)
	return s
}

func (s *source) Turn(now clock.Time, c *sim.Conn, e tcp.Event) {
	switch {
	case s.flow.tx == nil:
		s.flow.observeSender(c)
	case e&tcp.Closed != 0:
		s.flow.close(now, c)
		c.Wake(clock.Never)
		return
	}
	for s.write(now, c) {
		continue
	}
	if s.sent == s.size && !s.shut {
		s.shut = true
		c.CloseWrite()
	}
	if s.shut && c.EOF() {
		c.Close()
	}
}

// write writes a piece of data and reports whether to continue.
func (s *source) write(now clock.Time, c *sim.Conn) bool {
	app, tx := &s.flow.spec.App, c.TCP().Tx()
	ahead := 3*s.flow.stats.Cwnd() + minAhead - tx.Len()
	room := min(s.size-s.sent, uint64(max(0, min(ahead, tx.Free()))))
	if room == 0 {
		return false
	}
	unsent := func() uint64 { return uint64(c.TCP().Info().NotSentBytes) }
	room, wait := app.MayWrite(now.Sub(s.flow.begun), s.sent, s.size, room, unsent)
	switch {
	case room == 0 && wait > 0:
		c.Wake(now.Add(wait))
		return false
	case room == 0:
		return false
	case app.Off > 0:
		c.Wake(now) // wake up again to check that all data was sent
	}
	n := c.WritePattern(0, int(min(room, maxPiece)))
	s.sent += uint64(n)
	return n > 0 && app.Off == 0
}

// maxPiece is the maximum size of a write or read.
const maxPiece = sim.PatternRun

// fill returns a piece of the pattern that all streams have, from an offset on.
func (r *run) fill(n, from uint64) []byte {
	return sim.Pattern(from, int(min(n, maxPiece)))
}

// sink is the receiving application. It checks the pattern.
type sink struct{ flow *flow }

func (s *sink) Turn(now clock.Time, c *sim.Conn, e tcp.Event) {
	s.flow.read(now, c)
	if s.flow.spec.App.Size > 0 && s.flow.got.bytes >= s.flow.spec.App.Size {
		s.flow.complete(now)
	}
	if e&tcp.Closed != 0 {
		s.flow.close(now, c)
		return
	}
	if c.EOF() {
		c.CloseWrite()
		c.Close()
	}
}

func (f *flow) read(now clock.Time, c *sim.Conn) {
	n := c.TCP().Rx().Len()
	for _, p := range c.Peek(n) {
		right := sim.Check(p, f.got.bytes)
		if right < len(p) && f.corrupted == "" {
			f.corrupted = fmt.Sprintf("byte %d arrived corrupted", f.got.bytes+uint64(right))
		}
		f.received(now, len(p))
	}
	c.Discard(n)
}
