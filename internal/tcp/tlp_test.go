package tcp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRFC8985_TailLossProbe(t *testing.T) {
	t.Run("the probe is the last segment", func(t *testing.T) {
		s := flight(t, 4, fullOptions, Config{})
		s.send(ACK, 1, 2001, 0)
		s.wait(60 * time.Millisecond)
		s.expect(PSH|ACK, 3001, 1, 1000)
		i := s.c.Info()
		assert.Equal(t, uint64(1), i.TailProbes)
		assert.Zero(t, i.TotalRTO)
		t.Log("# the probe reveals the hole, and RACK fills it")
		s.now = s.now.Add(10 * time.Millisecond)
		s.sack(2001, 3001, 4001)
		s.wait(3 * time.Millisecond)
		s.expect(ACK, 2001, 1, 1000)
		s.send(ACK, 1, 4001, 0)
		assert.Zero(t, s.c.Info().TotalRTO)
	})
	t.Run("the probe is new data if available", func(t *testing.T) {
		s := flight(t, 4, fullOptions, Config{})
		s.write(3000)
		s.quiet() // the window is full
		s.wait(100 * time.Millisecond)
		s.expect(ACK, 4001, 1, 1000) // one more segment, so that the peer acknowledges at once
		s.expect(ACK, 5001, 1, 1000)
		s.quiet()
	})
	t.Run("a repaired loss counts", func(t *testing.T) {
		s := flight(t, 4, fullOptions, Config{})
		s.send(ACK, 1, 3001, 0)
		cwnd := s.c.Info().SndCwnd
		s.wait(100 * time.Millisecond)
		s.expect(PSH|ACK, 3001, 1, 1000)
		s.write(1000)
		s.collect()
		s.send(ACK, 1, 5001, 0)
		assert.Less(t, s.c.Info().SndCwnd, cwnd)
		assert.Equal(t, "open", s.c.Info().CAState)
	})
	t.Run("two copies that arrive do not count", func(t *testing.T) {
		s := flight(t, 4, fullOptions, Config{})
		s.send(ACK, 1, 3001, 0)
		cwnd := s.c.Info().SndCwnd
		s.wait(100 * time.Millisecond)
		s.expect(PSH|ACK, 3001, 1, 1000)
		s.sack(4001, 3001, 4001)
		assert.GreaterOrEqual(t, s.c.Info().SndCwnd, cwnd)
	})
	t.Run("no probe without SACK", func(t *testing.T) {
		s := flight(t, 4, Options{MSS: 1000}, Config{})
		s.wait(180 * time.Millisecond)
		s.quiet()
		s.wait(100 * time.Millisecond)
		assert.Equal(t, uint64(1), s.c.Info().TotalRTO)
	})
}

// RFC 8985 §7.3: after a probe the sender sends no other until it has measured a round trip, even
// if the probe was acknowledged.
func TestRFC8985_7_3_OneProbeASample(t *testing.T) {
	s := flight(t, 2, Options{MSS: 1000, SACKPermitted: true}, Config{})
	s.send(ACK, 1, 1001, 0)
	s.wait(100 * time.Millisecond)
	s.expect(PSH|ACK, 1001, 1, 1000)
	s.sack(2001, 1001, 2001) // both copies have arrived, so there is no RTT sample
	s.write(1000)
	s.expect(PSH|ACK, 2001, 1, 1000)
	s.wait(150 * time.Millisecond)
	s.quiet()
	assert.Equal(t, uint64(1), s.c.Info().TailProbes)
	s.wait(100 * time.Millisecond)
	s.expect(PSH|ACK, 2001, 1, 1000) // sent by the retransmission timeout
	s.send(ACK, 1, 3001, 0)
	s.write(1000)
	s.expect(PSH|ACK, 3001, 1, 1000)
	s.now = s.now.Add(10 * time.Millisecond)
	s.send(ACK, 1, 4001, 0) // gives an RTT sample
	s.write(1000)
	s.expect(PSH|ACK, 4001, 1, 1000)
	s.wait(150 * time.Millisecond)
	s.expect(PSH|ACK, 4001, 1, 1000)
	assert.Equal(t, uint64(2), s.c.Info().TailProbes)
}

// TestProbeInRecovery checks that after two round trips of silence in recovery the sender
// retransmits the first segment again, long before the timeout and without a smaller window.
func TestProbeInRecovery(t *testing.T) {
	lossy := func(t *testing.T) *script {
		s := flight(t, 10, fullOptions, Config{})
		s.sack(1, 1001, 6001)
		s.expect(ACK, 1, 1, 1000)
		require.Equal(t, "recovery", s.c.Info().CAState)
		s.quiet()
		return s
	}
	t.Run("the retransmission was lost", func(t *testing.T) {
		s := lossy(t)
		before := s.c.Info()
		s.wait(60 * time.Millisecond)
		s.expect(ACK, 1, 1, 1000)
		s.quiet()
		i := s.c.Info()
		assert.Equal(t, before.SndCwnd, i.SndCwnd)
		assert.Equal(t, uint64(1), i.TailProbes)
		s.now = s.now.Add(10 * time.Millisecond)
		s.send(ACK, 1, 6001, 0) // the retransmission arrived, so older missing segments are lost
		s.wait(5 * time.Millisecond)
		s.expect(ACK, 6001, 1, 1000)
		s.now = s.now.Add(10 * time.Millisecond)
		s.send(ACK, 1, 10001, 0)
		assert.Equal(t, "open", s.c.Info().CAState)
		assert.Zero(t, s.c.Info().TotalRTO)
	})
	t.Run("its acknowledgment was lost", func(t *testing.T) {
		s := lossy(t)
		s.wait(60 * time.Millisecond)
		s.expect(ACK, 1, 1, 1000)
		s.now = s.now.Add(10 * time.Millisecond)
		s.sack(10001, 1, 1001) // a D-SACK shows that all data has arrived
		assert.Equal(t, "open", s.c.Info().CAState)
		assert.Zero(t, s.c.Info().TotalRTO)
		assert.Zero(t, s.c.Info().Undone, "one segment was lost, whatever was retransmitted")
	})
	t.Run("one probe per silence", func(t *testing.T) {
		s := lossy(t)
		s.wait(190 * time.Millisecond)
		s.expect(ACK, 1, 1, 1000)
		s.quiet()
		s.wait(100 * time.Millisecond)
		assert.Equal(t, uint64(1), s.c.Info().TotalRTO, "then the timeout")
		s.collect()
		s.out = nil
		s.wait(150 * time.Millisecond)
		s.quiet()
		assert.Equal(t, uint64(1), s.c.Info().TailProbes, "the timeout backs off without probes (RFC 6298 §5.5)")
	})
	t.Run("not without SACK", func(t *testing.T) {
		s := flight(t, 10, Options{MSS: 1000}, Config{})
		for range 3 {
			s.send(ACK, 1, 1, 0)
		}
		s.collect()
		s.out = nil
		s.wait(150 * time.Millisecond)
		s.quiet()
	})
}

// RFC 8985 §7.4.2: the acknowledgment of a probe that repeated data says that one of the two copies
// arrived. The sender still counts the loss if an idle period follows.
func TestProbedLossCountsAfterIdleTime(t *testing.T) {
	for name, silence := range map[string]time.Duration{"at once": 0, "after 3s": 3 * time.Second} {
		t.Run(name, func(t *testing.T) {
			s := flight(t, 4, fullOptions, Config{})
			s.send(ACK, 1, 3001, 0)
			s.wait(100 * time.Millisecond)
			s.expect(PSH|ACK, 3001, 1, 1000) // the tail loss probe
			s.now = s.now.Add(10 * time.Millisecond)
			s.send(ACK, 1, 4001, 0) // without D-SACK, only one copy has arrived
			s.clear()
			s.wait(silence)
			require.Equal(t, silence > 0, isIdle(s.c))
			s.write(1000)
			s.clear()
			s.now = s.now.Add(10 * time.Millisecond)
			s.send(ACK, 1, 5001, 0)
			assert.NotZero(t, s.c.Info().SndSsthresh, "the controller has reacted to the loss")
		})
	}
}
