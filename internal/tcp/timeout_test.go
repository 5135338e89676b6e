package tcp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pauseFloor is the minimum RTO and probe timeout on a path without losses.
const pauseFloor = 10 * time.Millisecond

// nearby returns a connection with a round trip of 150 µs, a minimum RTO of 1 ms and no data in
// flight.
func nearby(t *testing.T) *script {
	t.Helper()
	s := opened(t, course())
	for una := uint32(1); una < 100_000; una += 1000 {
		s.write(1000)
		s.collect()
		s.out = nil
		s.now = s.now.Add(150 * time.Microsecond)
		s.send(ACK, 1, una+1000, 0)
	}
	i := s.c.Info()
	require.InDelta(t, 150*time.Microsecond, i.RTT, 1000)
	require.Zero(t, i.Unacked)
	return s
}

// loses drops a segment, which the sender detects and retransmits.
func loses(s *script) {
	s.t.Helper()
	una := uint32(s.c.snd.Una - s.c.snd.iss)
	s.write(5000)
	s.collect()
	s.out = nil
	s.now = s.now.Add(150 * time.Microsecond)
	s.sack(una, una+1000, una+5000)
	s.expect(ACK, una, 1, 1000)
	s.now = s.now.Add(150 * time.Microsecond)
	s.send(ACK, 1, una+5000, 0)
	require.Equal(s.t, "open", s.c.Info().CAState)
}

// TestPauseOrLoss checks that on a path without losses neither the probe timeout of RFC 8985 §7.2
// nor the RTO of RFC 6298 §2.4 expires before pauseFloor, in which a descheduled process runs
// again. On a path with a loss they do.
func TestPauseOrLoss(t *testing.T) {
	t.Run("nothing was ever lost", func(t *testing.T) {
		s := nearby(t)
		assert.Equal(t, pauseFloor, s.c.Info().RTO)
		s.write(2000)
		s.collect()
		s.out = nil
		s.wait(pauseFloor - time.Microsecond)
		s.quiet()
		s.send(ACK, 1, 102_001, 0) // the peer runs again
		i := s.c.Info()
		assert.Zero(t, i.TotalRetrans+i.TailProbes+i.TotalRTO)
		t.Log("# a silence longer than pauseFloor")
		s = nearby(t)
		s.write(2000)
		s.collect()
		s.out = nil
		s.wait(pauseFloor)
		s.expect(ACK|PSH, 101_001, 1, 1000)
		assert.Equal(t, uint64(1), s.c.Info().TailProbes)
		s.wait(pauseFloor)
		assert.Equal(t, uint64(1), s.c.Info().TotalRTO)
		assert.Equal(t, 2*pauseFloor, s.c.Info().RTO, "RFC 6298 §5.5")
	})
	t.Run("a loss was seen", func(t *testing.T) {
		s := nearby(t)
		loses(s)
		assert.Equal(t, time.Millisecond, s.c.Info().RTO)
		s.write(2000)
		s.collect()
		s.out = nil
		s.wait(500 * time.Microsecond)
		s.expect(ACK|PSH, 106_001, 1, 1000)
	})
	t.Run("a timeout was a loss", func(t *testing.T) {
		s := nearby(t)
		s.write(2000)
		s.wait(3 * pauseFloor)
		s.collect()
		s.out = nil
		require.Equal(t, uint64(1), s.c.Info().TotalRTO)
		s.now = s.now.Add(150 * time.Microsecond)
		s.send(ACK, 1, 102_001, 0)
		require.Equal(t, "open", s.c.Info().CAState)
		assert.Less(t, s.c.Info().RTO, pauseFloor)
	})
}

// TestLateTimers checks that a host whose timer fires much too late waits once more: if the whole
// machine was suspended, so was the peer.
func TestLateTimers(t *testing.T) {
	late := func(s *script) {
		s.write(2000)
		s.collect()
		s.out = nil
		s.now = s.now.Add(40 * time.Millisecond)
		s.h.Advance(s.now)
	}
	s := nearby(t)
	late(s)
	s.quiet()
	s.now = s.now.Add(time.Millisecond)
	s.send(ACK, 1, 102_001, 0)
	assert.Zero(t, s.c.Info().TotalRetrans)
	t.Log("# the host waits only once more")
	late(s)
	s.quiet()
	s.now = s.now.Add(40 * time.Millisecond)
	s.h.Advance(s.now)
	s.expect(ACK|PSH, 103_001, 1, 1000)
	t.Log("# the host does not wait on a path with losses")
	s = nearby(t)
	loses(s)
	late(s)
	s.expect(ACK|PSH, 106_001, 1, 1000)
}

// RFC 8985 §7.3: if the window admits new data, even less than a segment, the probe is new data. On
// a path without losses silence is most likely a pause, and a probe of new data is no
// retransmission. On a path with losses the probe is the last segment, which the peer acknowledges
// at once.
func TestRFC8985_7_3_LessThanASegment(t *testing.T) {
	probe := func(s *script) (una uint32) {
		una = uint32(s.c.snd.Una - s.c.snd.iss)
		s.write(4000)
		s.sendWindow(ACK, 1, una, 0, 2800)
		s.expect(ACK, una, 1, 1000)
		s.expect(ACK, una+1000, 1, 1000)
		s.quiet() // silly window avoidance: RFC 9293 §3.8.6.2.1
		s.wait(pauseFloor)
		return una
	}
	s := nearby(t)
	una := probe(s)
	s.expect(ACK, una+2000, 1, 800)
	assert.Zero(t, s.c.Info().TotalRetrans)
	s.now = s.now.Add(time.Millisecond)
	s.send(ACK, 1, una+2800, 0)
	s.expect(ACK, una+2800, 1, 1000)
	s.expect(ACK|PSH, una+3800, 1, 200)
	s.send(ACK, 1, una+4000, 0)
	assert.Zero(t, s.c.Info().TotalRTO)

	s = nearby(t)
	loses(s)
	una = probe(s)
	s.expect(ACK, una+1000, 1, 1000)
}
