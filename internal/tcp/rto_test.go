package tcp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
)

// TestDelaySpikes: a path that stands still every tenth of a second, with a time-out of one
// millisecond. What lasts less than pauseFloor makes nothing leave twice; longer pauses let
// time-outs go off, but nothing was lost, and next to nothing is sent again.
func TestDelaySpikes(t *testing.T) {
	testenv.NeedNoRace(t)
	for _, pause := range []time.Duration{pauseFloor - time.Millisecond, 3 * pauseFloor} {
		w := newWorld(t, 1, wire{
			delay: 75 * time.Microsecond, merge: true, bytesPerSec: 500e6,
			pause: pause, every: 100 * time.Millisecond,
		}, course())
		a, b := w.connect()
		s := newStream(a, b, 200<<20)
		start := w.now
		require.True(t, w.transfer(time.Minute, s), "%+v", a.Info())
		i := a.Info()
		moves := 1 - float64(pause)/float64(w.wire.every)
		assert.Greater(t, float64(s.size)/w.now.Sub(start).Seconds(), moves*0.9*500e6,
			"nor is the window lost")
		if pause < pauseFloor {
			assert.Zero(t, i.Retransmits+i.TailProbes+i.Timeouts)
			continue
		}
		pauses := uint64(w.now.Sub(start)/w.wire.every) + 1
		assert.NotZero(t, i.Undone, "RFC 5682 §3.1")
		assert.LessOrEqual(t, i.Retransmits, 5*pauses, "probes and time-outs, not windows")
	}
}

func TestRFC3042_2_WindowStays(t *testing.T) {
	s := flight(t, 10, fullOptions, Config{})
	s.write(5000)
	cwnd := s.c.Info().Cwnd
	s.sack(1, 1001, 2001)
	s.expect(ACK, 10001, 1, 1000)
	s.sack(1, 1001, 3001)
	s.expect(ACK, 11001, 1, 1000)
	s.quiet()
	assert.Equal(t, cwnd, s.c.Info().Cwnd)
}

func TestRFC5681_3_2_RecoveryEndsAtSsthresh(t *testing.T) {
	s := flight(t, 10, Options{MSS: 1000}, Config{})
	for range 9 {
		s.send(ACK, 1, 1, 0)
	}
	s.collect()
	require.Equal(t, "recovery", s.c.Info().Recovery)
	s.send(ACK, 1, 10001, 0)
	assert.Equal(t, "open", s.c.Info().Recovery)
	assert.Equal(t, 5000, s.c.Info().Ssthresh)
	assert.Equal(t, 5000, s.c.Info().Cwnd, "step 6: all of it was counted as duplicates came")
}

func TestRFC9937_LossesFoundByTheTimerMakeRoom(t *testing.T) {
	s := flight(t, 20, fullOptions, Config{})
	s.c.rec.rack.reordering = true
	s.sack(1, 10001, 12001)
	s.quiet()
	s.wait(3 * time.Millisecond) // a quarter of the round trip of 10 ms
	s.collect()
	n := len(s.out)
	require.Equal(t, "recovery", s.c.Info().Recovery)
	assert.Equal(t, 1, n, "the fast retransmit itself; the rest waits for deliveries")
	s.out = nil
	t.Log("# nothing is delivered, but more is lost: what is in flight no longer reaches cwnd")
	before := s.c.rec.ep.cwnd
	r := s.c.rec.beginRound(s.now)
	s.c.rec.lose(r, s.c.rec.sent.next-1, s.c.rec.sent.at(s.c.rec.sent.next-1))
	r.lost = 1
	s.c.rec.recover(r, false)
	s.c.touch()
	assert.Equal(t, before, s.c.rec.ep.cwnd)
	s.collect()
	assert.NotEmpty(t, s.out)
}

// TestRFC9937_6_2 puts numbers into the formulas: a flight of 20 segments, an
// ssthresh of 10.
func TestRFC9937_6_2(t *testing.T) {
	for _, c := range []struct {
		name           string
		delivered, out int // before
		pipe           int
		r              round
		want           int // what may be sent
	}{
		{"proportional: every second one", 4000, 2000, 16000, round{delivered: 2000}, 1000},
		{"proportional: rounded up", 4000, 2000, 16000, round{delivered: 1001}, 501},
		{"conservation of packets", 6000, 6000, 5000, round{delivered: 1000}, 1000},
		{"what was not used before may be used", 6000, 4000, 5000, round{delivered: 1000}, 3000},
		{"a safe ACK", 6000, 6000, 5000, round{delivered: 1000, advance: 1000}, 2000},
		{
			"which one that shows losses is not", 6000, 6000, 5000,
			round{delivered: 1000, advance: 1000, lost: 1},
			1000,
		},
		{"never beyond ssthresh", 6000, 6000, 9500, round{delivered: 1000, advance: 1000}, 500},
		{"the fast retransmit is forced", 0, 0, 19000, round{delivered: 0}, 1000},
	} {
		s := flight(t, 20, fullOptions, Config{})
		s.c.rec.cc.Controller.OnLoss(s.c.rec.lossEvent(s.now, congestion.Detected, 20000))
		require.Equal(t, 10000, s.c.rec.cc.Ssthresh())
		s.c.rec.ep = episode{
			kind: recovering, delivered: c.delivered, out: c.out, flight: 20000,
			dupBytes: 20000 - c.pipe,
		}
		require.Equal(t, c.pipe, s.c.rec.pipe())
		s.c.rec.ep.reduce(&c.r, 10000, s.c.rec.pipe(), 1000)
		assert.Equal(t, c.want, s.c.rec.ep.cwnd-c.pipe, c.name)
	}
}
