package play

import (
	"fmt"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/sim"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// sink is the application that receives, and checks that it is the pattern.
type sink struct{ flow *flow }

// Turn implements sim.App.
func (s *sink) Turn(now clock.Time, c *sim.Conn, e tcp.Event) {
	s.flow.read(now, c)
	if s.flow.App.Size > 0 && s.flow.got.bytes >= s.flow.App.Size {
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

// read takes what has arrived.
func (f *flow) read(now clock.Time, c *sim.Conn) {
	n := c.TCP().Rx().Len()
	for _, p := range c.Peek(n) {
		right := sim.Check(p, f.got.bytes)
		if right < len(p) && f.damaged == "" {
			f.damaged = fmt.Sprintf("byte %d arrived damaged", f.got.bytes+uint64(right))
		}
		f.took(now, len(p))
	}
	c.Discard(n)
}
