package tcp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
)

// TestRFC8985_6_2_TakenBackIsReordering: an episode whose retransmissions all were needless has
// shown that the path reorders, although each original came after it was sent again. Without
// that RFC 8985 §6.2 step 4 would go on without a reordering window, however many D-SACKs came.
func TestRFC8985_6_2_TakenBackIsReordering(t *testing.T) {
	s := flight(t, 20, fullOptions, Config{})
	s.sack(1, 1001, 6001)
	s.expect(ACK, 1, 1, 1000)
	s.now = s.now.Add(time.Millisecond)
	s.send(ACK, 1, 6001, 0) // the original, late
	s.now = s.now.Add(9 * time.Millisecond)
	s.sack(6001, 1, 1001) // and its copy
	i := s.c.Info()
	assert.Equal(t, uint64(1), i.Undone)
	assert.Equal(t, "open", i.Recovery)
	t.Log("# the next that is late has half a round trip, as many as overtake it")
	s.sack(6001, 7001, 15001)
	s.quiet()
	s.wait(4 * time.Millisecond)
	s.quiet()
	s.send(ACK, 1, 15001, 0)
	s.quiet()
	assert.Equal(t, uint64(1), s.c.Info().Retransmits)
}

// TestReorderedAtLength: a path that delays one packet in a hundred by a good part of its round
// trip costs hardly any of its rate.
func TestReorderedAtLength(t *testing.T) {
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
	assert.Less(t, i.Retransmits, uint64(40))
	assert.Zero(t, i.Timeouts)
	t.Logf("%d bytes, %d sent again, %d taken back", i.BytesAcked, i.Retransmits, i.Undone)
}
