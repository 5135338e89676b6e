package tcp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRFC2018_4_EachRangeIsReported: of what arrives together with many gaps in between each range
// is reported, and again with those behind it (RFC 2018 §4): what no block tells of, its sender
// takes for lost, and sends again. It does so as soon as it hears of what was sent later (RFC 8985
// §6.2), so that no range comes before one that arrived earlier.
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
			assert.NotZero(t, told[at], "%d is reported, and %d was not", latest, at)
		}
	}
	for i := range uint32(runs - 1) {
		assert.GreaterOrEqual(t, told[1001+2000*i], 2, "range %d", i)
	}
	assert.LessOrEqual(t, len(s.out), runs, "RFC 5681 §4.2: no more than one for each segment")
	t.Log("# one that comes alone draws one, with what is most recent")
	s.out = nil
	s.send(ACK, 1001+2000*runs, 1, 1000)
	a := s.expect(ACK, 1, 1, 0)
	assert.Equal(t, s.peer+1001+2000*runs, a.options.SACK[0].Start)
	assert.Equal(t, s.peer+1001+2000*(runs-1), a.options.SACK[1].Start)
	s.quiet()
}

// TestBatchesAreReportedInOrder: a receiver that looks at its path now and then, over which much
// is in flight and lost, has nothing sent again that has arrived: when it reported what came last
// first, the rest of the batch was taken for lost, at 2 % half as much again as what was.
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
		t.Logf("%v lost: %d sent, %d again, %.0f of them did not arrive, %d of those sent again",
			loss, i.DataSegsOut, i.Retransmits, missing, i.LostRetransmits)
		require.Greater(t, missing, 500.0)
		assert.Less(t, float64(i.Retransmits), 1.1*missing)
		assert.Less(t, float64(i.LostRetransmits), 2*loss*float64(i.Retransmits))
	}
}

// TestRFC2883_4_OnlyDuplicatesLookLikeThem: a first block within the second reports a duplicate, so
// that none is, of what arrived once, where a range has grown since the acknowledgment's time.
func TestRFC2883_4_OnlyDuplicatesLookLikeThem(t *testing.T) {
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
