package tcp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// trickle makes a connection send n bytes in each of the given number of round trips, acknowledges
// them, and returns the acknowledgment number.
func trickle(s *script, una uint32, n, rounds int, rtt time.Duration) uint32 {
	for range rounds {
		s.write(n)
		s.collect()
		s.out = nil
		s.now = s.now.Add(rtt)
		una += uint32(n)
		s.send(ACK, 1, una, 0)
	}
	return una
}

// grown returns a connection that has used a window of 20 segments or more.
func grown(t *testing.T, cc string) (*script, uint32) {
	t.Helper()
	cfg := Config{}
	cfg.Recovery.Congestion = cc
	s := flight(t, 10, fullOptions, cfg)
	s.send(ACK, 1, 10001, 0)
	una := trickle(s, 10001, 20000, 1, 10*time.Millisecond)
	require.GreaterOrEqual(t, s.c.Info().SndCwnd, 20000)
	return s, una
}

// RFC 7661 §4.2: pipeACK is the largest sample of the period. If it is below half of the window,
// the connection is in the non-validated phase (RFC 7661 §4.3), in which the window does not change
// (RFC 7661 §4.4).
func TestRFC7661_4_2_PipeACK(t *testing.T) {
	s, una := grown(t, "reno")
	assert.True(t, s.validated(), "§4.3: validated without samples or with large ones")
	una = trickle(s, una, 3000, 3, 10*time.Millisecond)
	assert.Equal(t, 20000, s.c.Info().PipeACK, "the largest sample of the period")
	assert.True(t, s.validated())
	una = trickle(s, una, 3000, 3, time.Second)
	assert.Equal(t, 3000, s.c.Info().PipeACK, "the period is over: one second or three round trips")
	assert.False(t, s.validated(), "§4.3: less than half of the window")
	cwnd := s.c.Info().SndCwnd
	una = trickle(s, una, 3000, 20, 100*time.Millisecond)
	assert.Equal(t, cwnd, s.c.Info().SndCwnd, "§4.4: the window does not change")
	trickle(s, una, cwnd, 4, 10*time.Millisecond)
	assert.True(t, s.validated(), "§4.4: the window is in use again")
}

func TestRFC7661_4_4_1_LossInTheNonValidatedPhase(t *testing.T) {
	for _, cc := range []string{"reno", "newreno", "cubic"} {
		s, una := grown(t, cc)
		una = trickle(s, una, 6000, 3, time.Second)
		require.False(t, s.validated(), cc)
		cwnd := s.c.Info().SndCwnd
		s.write(6000)
		s.collect()
		s.out = nil
		s.now = s.now.Add(10 * time.Millisecond)
		s.sack(una, una+1000, una+6000)
		s.expect(ACK, una, 1, 1000)
		assert.Less(t, s.c.Info().SndSsthresh, cwnd/2, "%s: from the data in flight", cc)
		s.send(ACK, 1, una+6000, 0)
		require.Equal(t, "open", s.c.Info().CAState)
		assert.LessOrEqual(t, s.c.Info().SndCwnd, 2500, "%s: half of 6000 minus the 1000 retransmitted", cc)
		assert.True(t, s.validated(), "%s: earlier samples are discarded", cc)
	}
}

func TestRFC7661_4_4_3_FiveMinutes(t *testing.T) {
	for _, cc := range []string{"reno", "cubic"} {
		s, una := grown(t, cc)
		s.c.snd.rec.RTT.RTO = time.Minute // otherwise each round is a restart after idle
		cwnd := s.c.Info().SndCwnd
		trickle(s, una, 3000, 290, time.Second)
		assert.Equal(t, cwnd, s.c.Info().SndCwnd, cc)
		una = uint32(s.c.Info().Una) + 1
		trickle(s, una, 3000, 20, time.Second)
		assert.Equal(t, max(cwnd/2, 10000), s.c.Info().SndCwnd, cc)
		assert.GreaterOrEqual(t, s.c.Info().SndSsthresh, cwnd*3/4, cc)
	}
}

// validated reports whether a script's connection uses its window.
func (s *script) validated() bool {
	i := s.c.Info()
	return i.PipeACK == 0 || 2*i.PipeACK >= i.SndCwnd
}
