package tcp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// TestRFC5681_3_1_LossWindowOfANarrowedPath: a time-out on a path that has just become narrower
// sends one segment that fits it, not all of a segment of before (RFC 5681 §3.1).
func TestRFC5681_3_1_LossWindowOfANarrowedPath(t *testing.T) {
	for name, o := range map[string]Options{"SACK": fullOptions, "plain": {MSS: 1000}} {
		s := flight(t, 4, o, Config{})
		s.path.MTU = 440
		s.h.Rerouted()
		s.quiet()
		i := s.c.Info()
		assert.Equal(t, 400, i.SendMSS, name)
		assert.Equal(t, 12, i.Unacked, "of 1000 bytes each are 400, 400 and 200, while they are in flight")
		assert.Equal(t, 4000, i.Pipe)
		s.c.snd.rec.At.Probe = clock.Never
		s.wait(250 * time.Millisecond)
		require.Equal(t, uint64(1), s.c.Info().Timeouts)
		s.expect(ACK, 1, 1, 400)
		s.quiet()
		assert.Equal(t, 400, s.c.Info().Cwnd)
		s.send(ACK, 1, 401, 0)
		s.expect(ACK, 401, 1, 400)
		s.expect(ACK, 801, 1, 400)
		s.send(ACK, 1, 4001, 0) // and all of it was only late
		s.quiet()
		assert.Zero(t, s.c.Info().Unacked)
		assert.Zero(t, s.c.snd.rec.Pipe())
	}
}
