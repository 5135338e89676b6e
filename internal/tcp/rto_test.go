package tcp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
)

// TestDelaySpikes stalls a path every tenth of a second, with a minimum RTO of one millisecond.
// Stalls shorter than pauseFloor cause no retransmission. Longer stalls cause timeouts, but the
// sender retransmits next to nothing, because no packet was lost.
func TestDelaySpikes(t *testing.T) {
	testenv.NeedNoRace(t)
	for _, pause := range []time.Duration{pauseFloor - time.Millisecond, 3 * pauseFloor} {
		w := newWorld(t, 1, wire{
			delay: 75 * time.Microsecond, merge: true, bytesPerSec: 500e6,
			pause: pause, every: 100 * time.Millisecond,
		}, course())
		a, b := w.connect()
		s := newStream(a, b, 100<<20) // takes as long as two stalls
		start := w.now
		require.True(t, w.transfer(time.Minute, s), "%+v", a.Info())
		i := a.Info()
		moves := 1 - float64(pause)/float64(w.wire.every)
		assert.Greater(t, float64(s.size)/w.now.Sub(start).Seconds(), moves*0.9*500e6,
			"the window is kept")
		if pause < pauseFloor {
			assert.Zero(t, i.TotalRetrans+i.TailProbes+i.TotalRTO)
			continue
		}
		pauses := uint64(w.now.Sub(start)/w.wire.every) + 1
		assert.NotZero(t, i.Undone, "RFC 5682 §3.1")
		assert.LessOrEqual(t, i.TotalRetrans, 5*pauses, "probes and timeouts, not whole windows")
	}
}

func TestRFC3042_2_WindowStays(t *testing.T) {
	s := flight(t, 10, fullOptions, Config{})
	s.write(5000)
	cwnd := s.c.Info().SndCwnd
	s.sack(1, 1001, 2001)
	s.expect(ACK, 10001, 1, 1000)
	s.sack(1, 1001, 3001)
	s.expect(ACK, 11001, 1, 1000)
	s.quiet()
	assert.Equal(t, cwnd, s.c.Info().SndCwnd)
}

func TestRFC5681_3_2_RecoveryEndsAtSsthresh(t *testing.T) {
	s := flight(t, 10, Options{MSS: 1000}, Config{})
	for range 9 {
		s.send(ACK, 1, 1, 0)
	}
	s.collect()
	require.Equal(t, "recovery", s.c.Info().CAState)
	s.send(ACK, 1, 10001, 0)
	assert.Equal(t, "open", s.c.Info().CAState)
	assert.Equal(t, 5000, s.c.Info().SndSsthresh)
	assert.Equal(t, 5000, s.c.Info().SndCwnd, "step 6: the duplicates have counted all of the data")
}
