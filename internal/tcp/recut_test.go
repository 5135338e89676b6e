package tcp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// RFC 5681 §3.1: after a timeout on a path whose MTU has just shrunk, the sender sends one segment
// of the new size, not all pieces of an old segment.
func TestRFC5681_3_1_LossWindowOfANarrowedPath(t *testing.T) {
	for name, o := range map[string]Options{"SACK": fullOptions, "plain": {MSS: 1000}} {
		s := flight(t, 4, o, Config{})
		s.path.MTU = 440
		s.h.Rerouted()
		s.quiet()
		i := s.c.Info()
		assert.Equal(t, 400, i.SndMSS, name)
		assert.Equal(t, 12, i.Unacked, "each 1000-byte segment is split into 400, 400 and 200 bytes")
		assert.Equal(t, 4000, i.Pipe)
		s.c.snd.rec.At.Probe = clock.Never
		s.wait(250 * time.Millisecond)
		require.Equal(t, uint64(1), s.c.Info().TotalRTO)
		s.expect(ACK, 1, 1, 400)
		s.quiet()
		assert.Equal(t, 400, s.c.Info().SndCwnd)
		s.send(ACK, 1, 401, 0)
		s.expect(ACK, 401, 1, 400)
		s.expect(ACK, 801, 1, 400)
		s.send(ACK, 1, 4001, 0) // no data was lost, only delayed
		s.quiet()
		assert.Zero(t, s.c.Info().Unacked)
		assert.Zero(t, s.c.snd.rec.Pipe())
	}
}
