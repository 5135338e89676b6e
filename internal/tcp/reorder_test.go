package tcp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
)

// TestRFC8985_6_2_UndoIsReordering checks that a recovery whose retransmissions were all needless
// counts as reordering, although each original arrived after its retransmission left. Otherwise RFC
// 8985 §6.2 step 4 would use no reordering window, whatever the number of D-SACKs.
func TestRFC8985_6_2_UndoIsReordering(t *testing.T) {
	s := flight(t, 20, fullOptions, Config{})
	s.sack(1, 1001, 6001)
	s.expect(ACK, 1, 1, 1000)
	s.now = s.now.Add(time.Millisecond)
	s.send(ACK, 1, 6001, 0) // the original arrives late
	s.now = s.now.Add(9 * time.Millisecond)
	s.sack(6001, 1, 1001) // the retransmission arrives
	i := s.c.Info()
	assert.Equal(t, uint64(1), i.Undone)
	assert.Equal(t, "open", i.CAState)
	t.Log("# the next late segment may be half a round trip late, whatever the number of segments that overtake it")
	s.sack(6001, 7001, 15001)
	s.quiet()
	s.wait(4 * time.Millisecond)
	s.quiet()
	s.send(ACK, 1, 15001, 0)
	s.quiet()
	assert.Equal(t, uint64(1), s.c.Info().TotalRetrans)
}

// TestThroughputWithReordering checks that a path loses hardly any throughput if it delays one
// packet in a hundred by a large part of its round trip.
func TestThroughputWithReordering(t *testing.T) {
	testenv.NeedNoRace(t)
	cfg := course()
	cfg.Recovery.RTOMin, cfg.DelayedAck = 200*time.Millisecond, 0
	wi := wire{delay: 10 * time.Millisecond, bytesPerSec: 100e6, merge: true, reorder: 0.01}
	w := newWorld(t, 3, wi, cfg)
	a, b := w.connect()
	s := newStream(a, b, 1<<62)
	s.keepOpen = true
	w.transfer(time.Second, s)
	i := a.Info()
	assert.Greater(t, i.BytesAcked, uint64(50e6), "of 100 MB")
	assert.Less(t, i.TotalRetrans, uint64(40))
	assert.Zero(t, i.TotalRTO)
	t.Logf("%d bytes, %d retransmitted, %d undone", i.BytesAcked, i.TotalRetrans, i.Undone)
}
