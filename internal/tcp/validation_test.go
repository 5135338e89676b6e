package tcp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// trickle has a connection send and have acknowledged n bytes in each of so
// many round trips, and returns what is acknowledged then.
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

// grown is a connection with a window of 20 segments or more that it has used.
func grown(t *testing.T, cc string) (*script, uint32) {
	t.Helper()
	cfg := Config{}
	cfg.Recovery.Congestion = cc
	s := flight(t, 10, fullOptions, cfg)
	s.send(ACK, 1, 10001, 0)
	una := trickle(s, 10001, 20000, 1, 10*time.Millisecond)
	require.GreaterOrEqual(t, s.c.Info().Cwnd, 20000)
	return s, una
}

// TestRFC7661_4_2_PipeACK: the largest sample of the period counts, and below half of the
// window the phase is the non-validated one (RFC 7661 §4.3), in which the window stays as it
// is (RFC 7661 §4.4).
func TestRFC7661_4_2_PipeACK(t *testing.T) {
	s, una := grown(t, "reno")
	assert.True(t, s.validated(), "§4.3: nothing, or enough, is known")
	una = trickle(s, una, 3000, 3, 10*time.Millisecond)
	assert.Equal(t, 20000, s.c.Info().PipeACK, "the largest sample of the period")
	assert.True(t, s.validated())
	una = trickle(s, una, 3000, 3, time.Second)
	assert.Equal(t, 3000, s.c.Info().PipeACK, "which is over: a second, or three round trips")
	assert.False(t, s.validated(), "§4.3: not half of the window")
	cwnd := s.c.Info().Cwnd
	una = trickle(s, una, 3000, 20, 100*time.Millisecond)
	assert.Equal(t, cwnd, s.c.Info().Cwnd, "§4.4: kept, and not grown")
	trickle(s, una, cwnd, 4, 10*time.Millisecond)
	assert.True(t, s.validated(), "§4.4: used again")
}

func TestRFC7661_4_4_1_LossInTheNonValidatedPhase(t *testing.T) {
	for _, cc := range []string{"reno", "newreno", "cubic"} {
		s, una := grown(t, cc)
		una = trickle(s, una, 6000, 3, time.Second)
		require.False(t, s.validated(), cc)
		cwnd := s.c.Info().Cwnd
		s.write(6000)
		s.collect()
		s.out = nil
		s.now = s.now.Add(10 * time.Millisecond)
		s.sack(una, una+1000, una+6000)
		s.expect(ACK, una, 1, 1000)
		assert.Less(t, s.c.Info().Ssthresh, cwnd/2, "%s: by what was in flight", cc)
		s.send(ACK, 1, una+6000, 0)
		require.Equal(t, "open", s.c.Info().Recovery)
		assert.LessOrEqual(t, s.c.Info().Cwnd, 2500, "%s: half of 6000 less the 1000 sent again", cc)
		assert.True(t, s.validated(), "%s: what was measured before is forgotten", cc)
	}
}

func TestRFC7661_4_4_3_FiveMinutes(t *testing.T) {
	for _, cc := range []string{"reno", "cubic"} {
		s, una := grown(t, cc)
		s.c.snd.rec.RTT.RTO = time.Minute // or each of these rounds is a restart after a silence
		cwnd := s.c.Info().Cwnd
		trickle(s, una, 3000, 290, time.Second)
		assert.Equal(t, cwnd, s.c.Info().Cwnd, cc)
		una = uint32(s.c.Info().Una) + 1
		trickle(s, una, 3000, 20, time.Second)
		assert.Equal(t, max(cwnd/2, 10000), s.c.Info().Cwnd, cc)
		assert.GreaterOrEqual(t, s.c.Info().Ssthresh, cwnd*3/4, cc)
	}
}

// validated reports whether a script's connection uses its window.
func (s *script) validated() bool {
	i := s.c.Info()
	return i.PipeACK == 0 || 2*i.PipeACK >= i.Cwnd
}
