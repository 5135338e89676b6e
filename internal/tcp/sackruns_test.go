package tcp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// RFC 2018 §4: when many ranges arrive together with gaps between them, the receiver reports each
// range, and again with the ranges after it. The sender considers a range without a report lost as
// soon as later data is reported (RFC 8985 §6.2), so no range is reported before an earlier one.
func TestRFC2018_4_EachRangeIsReported(t *testing.T) {
	s := opened(t, Config{})
	const runs = 12
	for i := range uint32(runs) {
		s.send(ACK, 1001+2000*i, 1, 1000)
	}
	s.collect()
	told := map[uint32]int{}
	for _, g := range s.out {
		for _, b := range g.options.SACK[:g.options.SACKCount] {
			assert.Equal(t, b.Start+1000, b.End)
			told[b.Start-s.peer]++
		}
		latest := g.options.SACK[0].Start - s.peer
		for at := uint32(1001); at <= latest; at += 2000 {
			assert.NotZero(t, told[at], "%d is reported, but %d is not", latest, at)
		}
	}
	for i := range uint32(runs - 1) {
		assert.GreaterOrEqual(t, told[1001+2000*i], 2, "range %d", i)
	}
	assert.LessOrEqual(t, len(s.out), runs, "RFC 5681 §4.2: at most one acknowledgment per segment")
	t.Log("# a single segment causes one acknowledgment with the most recent ranges")
	s.out = nil
	s.send(ACK, 1001+2000*runs, 1, 1000)
	a := s.expect(ACK, 1, 1, 0)
	assert.Equal(t, s.peer+1001+2000*runs, a.options.SACK[0].Start)
	assert.Equal(t, s.peer+1001+2000*(runs-1), a.options.SACK[1].Start)
	s.quiet()
}

// TestBatchesAreReportedInOrder checks that a receiver that polls a lossy path rarely, with much
// data in flight, causes no needless retransmissions. When it reported the newest data first, the
// sender took the rest of the batch for lost. At 2 % loss it retransmitted 50 % more than was lost.
func TestBatchesAreReportedInOrder(t *testing.T) {
	for _, loss := range []float64{0.02, 0.1} {
		cfg := course()
		cfg.Recovery.Congestion = "bbr"
		w := newWorld(t, 1, wire{
			delay: 100 * time.Microsecond, bytesPerSec: 1e9, loss: loss, merge: true,
			pause: 300 * time.Microsecond, every: 310 * time.Microsecond,
		}, cfg)
		a, b := w.connect()
		s := newStream(a, b, 1<<62)
		s.keepOpen = true
		w.transfer(150*time.Millisecond, s)
		i := a.Info()
		missing := float64(i.DataSegsOut - b.Info().DataSegsIn)
		t.Logf("%v lost: %d sent, %d retransmitted, %.0f lost, %d retransmissions lost",
			loss, i.DataSegsOut, i.TotalRetrans, missing, i.LostRetransmits)
		require.Greater(t, missing, 500.0)
		assert.Less(t, float64(i.TotalRetrans), 1.1*missing)
		assert.Less(t, float64(i.LostRetransmits), 2*loss*float64(i.TotalRetrans))
	}
}

// RFC 2883 §4: a first block within the second block reports a duplicate. The receiver sends no
// such block for data that arrived once, even if a range has grown since the acknowledgment was
// due.
func TestRFC2883_4_NoFalseDuplicates(t *testing.T) {
	s := opened(t, Config{})
	for _, seq := range []uint32{3001, 6001, 9001, 12001, 15001, 2001} {
		s.send(ACK, seq, 1, 1000)
	}
	s.collect()
	require.NotEmpty(t, s.out)
	for _, g := range s.out {
		blocks := g.options.SACK[:g.options.SACKCount]
		for i, a := range blocks {
			for _, b := range blocks[i+1:] {
				assert.True(t, a.End < b.Start || b.End < a.Start, "%v and %v", a, b)
			}
		}
	}
}
