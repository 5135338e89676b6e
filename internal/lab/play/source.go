package play

import (
	"math"
	"math/bits"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/sim"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// source is the application that sends: all at once, or at a rate, or by turns.
type source struct {
	flow *flow
	size uint64
	sent uint64
	shut bool
}

// Sizes of what a source writes.
const (
	endless = math.MaxUint64
	// pieceTime is how much of its rate a source with a rate writes at a time, if that is more
	// than pieceBytes.
	pieceTime  = time.Millisecond
	pieceBytes = 1400
	// leastAhead is how much a source keeps written that is not acknowledged, beside three
	// windows: so much that a sender whose window is acknowledged at once, and doubles, never
	// waits for its application, and so little that a thousand flows have room.
	leastAhead = 64 << 10
	// backlog is how much a source that rests leaves unsent at most: what it has written it
	// cannot take back.
	backlog = 64 << 10
)

func newSource(f *flow) *source {
	s := &source{flow: f, size: f.App.Size}
	if s.size == 0 {
		s.size = endless
	}
	return s
}

// Turn implements sim.App.
func (s *source) Turn(now clock.Time, c *sim.Conn, e tcp.Event) {
	switch {
	case s.flow.tx == nil:
		s.flow.sends(c)
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

// write writes a piece and reports whether to go on.
func (s *source) write(now clock.Time, c *sim.Conn) bool {
	app, tx := &s.flow.App, c.TCP().Tx()
	ahead := 3*s.flow.view.Cwnd() + leastAhead - tx.Len()
	room := min(s.size-s.sent, uint64(max(0, min(ahead, tx.Free()))))
	if room == 0 {
		return false
	}
	elapsed := now.Sub(s.flow.begun)
	if app.Off > 0 {
		if at := elapsed % (app.On + app.Off); at >= app.On {
			c.Wake(now.Add(app.On + app.Off - at))
			return false
		}
		if unsent := c.TCP().Info().NotSent; unsent >= backlog {
			return false
		}
		room = min(room, backlog)
		c.Wake(now) // to see whether all of it was sent
	}
	if app.Rate > 0 {
		due := s.due(elapsed)
		piece := min(max(pieceBytes, volume(app.Rate, pieceTime)), s.size-s.sent)
		if due < s.sent+piece {
			wait := time.Duration(float64(s.sent+piece-due) * 8e9 / float64(app.Rate))
			c.Wake(now.Add(wait + 1))
			return false
		}
		room = min(room, due-s.sent)
	}
	n := c.WritePattern(0, int(min(room, pieceMost)))
	s.sent += uint64(n)
	return n > 0 && app.Off == 0
}

// due is how much is to be written in the time since the beginning.
func (s *source) due(elapsed time.Duration) uint64 {
	app := &s.flow.App
	if app.Off > 0 {
		cycle := app.On + app.Off
		rests := int64(elapsed / cycle)
		elapsed = max(elapsed-time.Duration(rests)*app.Off-max(0, elapsed%cycle-app.On), 0)
	}
	return volume(app.Rate, elapsed)
}

// volume is how many bytes a rate in bits a second comes to in a while.
func volume(rate int64, d time.Duration) uint64 {
	hi, lo := bits.Mul64(uint64(rate), uint64(d))
	n, _ := bits.Div64(hi, lo, 8e9)
	return n
}

// pieceMost is the longest piece that is written or read at a time.
const pieceMost = sim.PatternRun

// fill returns a piece of the pattern that all streams carry, from an offset on.
func (r *run) fill(n, from uint64) []byte {
	return sim.Pattern(from, int(min(n, pieceMost)))
}
