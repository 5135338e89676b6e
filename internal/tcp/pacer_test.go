package tcp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// bursts counts the data segments that leave host 0 at each instant.
func bursts(w *world) map[clock.Time]int {
	sent := map[clock.Time]int{}
	w.tap = func(from int, _ Header, n int) bool {
		if from == 0 && n > 0 {
			sent[w.now]++
		}
		return false
	}
	return sent
}

// TestPacingSpreadsTheWindow checks that a paced window leaves in small pieces, including the
// initial one, and still fills the path.
func TestPacingSpreadsTheWindow(t *testing.T) {
	var rates [2]float64
	for i, pacing := range []bool{false, true} {
		cfg := course()
		cfg.Recovery.Pacing = pacing
		cfg.Buffers.Send, cfg.Buffers.Recv = 1<<20, 1<<20
		w := newWorld(t, 1, wire{delay: 10 * time.Millisecond, bytesPerSec: 10e6, merge: true}, cfg)
		a, b := w.connect()
		sent := bursts(w)
		s := newStream(a, b, 1<<62)
		s.keepOpen = true
		start := w.now
		w.transfer(time.Second, s)
		rates[i] = float64(a.Info().BytesAcked) / w.now.Sub(start).Seconds()
		most := 0
		for _, n := range sent {
			most = max(most, n)
		}
		info := a.Info()
		t.Logf("pacing %v: %.2f MB/s, at most %d segments at once, rate %d", pacing, rates[i]/1e6, most,
			info.PacingRate)
		if pacing {
			quantum := int(info.PacingRate/8000)/info.SndMSS + 1
			assert.LessOrEqual(t, most, 2*quantum, "one burst, and one delayed by a late timer")
			assert.InEpsilon(t, 8*1.2*float64(info.SndCwnd)/info.RTT.Seconds(), info.PacingRate, 0.5)
		} else {
			assert.Zero(t, info.PacingRate)
			assert.GreaterOrEqual(t, most, 10, "the initial window is one burst")
		}
		assert.Zero(t, info.TotalRTO)
	}
	assert.Greater(t, rates[1], 0.9*rates[0])
}

// TestPacingUnderLoss checks that retransmissions are paced, too, and that no data waits forever.
func TestPacingUnderLoss(t *testing.T) {
	for seed := range uint64(20) {
		cfg := course()
		cfg.Recovery.Pacing = true
		w := newWorld(t, seed, wire{
			delay: time.Millisecond, bytesPerSec: 20e6, loss: 0.05, reorder: 0.02, merge: true,
		}, cfg)
		a, b := w.connect()
		s := newStream(a, b, 1<<20)
		require.True(t, w.transfer(time.Minute, s), "seed %d: %+v", seed, a.Info())
		require.Equal(t, uint64(1<<20), s.read)
	}
}

func TestPacingLimit(t *testing.T) {
	s := opened(t, Config{Knobs: Knobs{Recovery: Recovery{Pacing: true, InitialWindow: 100}}})
	s.write(5000)
	s.collect()
	s.out = nil
	s.now = s.now.Add(100 * time.Millisecond)
	s.send(ACK, 1, 5001, 0)
	s.write(50000)
	s.collect()
	assert.Less(t, len(s.out), 50)
	assert.Equal(t, LimitPacing.String(), s.c.Info().Limited)
	n := len(s.out)
	s.now = s.c.snd.rec.Pacer.Holds(s.now)
	s.h.Advance(s.now)
	s.collect()
	assert.Greater(t, len(s.out), n, "the next train leaves after the timeout")
}
