package tcp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
	"github.com/tidepool-net/tidepool/internal/tcp/recovery"
)

// exits is a controller that records the ends of loss episodes.
type exits struct {
	congestion.Controller
	spurious, plain int
}

func (e *exits) OnExit(x *congestion.Exit) {
	if x.Spurious {
		e.spurious++
	} else {
		e.plain++
	}
	e.Controller.OnExit(x)
}

// watchExits wraps the connection's controller in an exits.
func watchExits(s *script) *exits {
	s.begin()
	e := &exits{Controller: s.c.snd.rec.CC.Controller}
	s.c.snd.rec.CC.Controller = e
	return e
}

// resendsFirst lets three segments overtake the first of ten, so that the sender retransmits it
// although it was only late.
func resendsFirst(t *testing.T) (*script, *exits) {
	t.Helper()
	s := flight(t, 10, fullOptions, Config{})
	e := watchExits(s)
	s.sack(1, 1001, 4001)
	s.expect(ACK, 1, 1, 1000)
	require.Equal(t, "recovery", s.c.Info().CAState)
	return s, e
}

func TestRFC3708_UndoOfFastRecovery(t *testing.T) {
	t.Run("the duplicate is reported while recovery lasts", func(t *testing.T) {
		s, e := resendsFirst(t)
		s.send(ACK, 1, 4001, 0)
		s.sack(5001, 1, 1001)
		assert.Equal(t, "open", s.c.Info().CAState, "RFC 3708 §3: every retransmission was needless")
		assert.Equal(t, 1, e.spurious)
		assert.Zero(t, e.plain)
		assert.Equal(t, uint64(1), s.c.Info().Undone)
	})
	t.Run("the duplicate is reported after recovery", func(t *testing.T) {
		s, e := resendsFirst(t)
		s.send(ACK, 1, 10001, 0)
		assert.Equal(t, 1, e.plain)
		s.sack(10001, 1, 1001)
		assert.Equal(t, 1, e.spurious)
		s.sack(10001, 1, 1001)
		assert.Equal(t, 1, e.spurious, "once")
	})
	t.Run("one of two is not enough", func(t *testing.T) {
		s := flight(t, 10, fullOptions, Config{})
		e := watchExits(s)
		s.sack(1, 2001, 6001)
		s.collect()
		s.sack(1, 2001, 8001)
		s.collect()
		require.Len(t, s.out, 2)
		s.send(ACK, 1, 10001, 0)
		s.sack(10001, 1, 1001)
		assert.Zero(t, e.spurious)
		s.sack(10001, 1001, 2001)
		assert.Equal(t, 1, e.spurious)
	})
	t.Run("one report may cover both", func(t *testing.T) {
		s := flight(t, 10, fullOptions, Config{})
		e := watchExits(s)
		s.sack(1, 2001, 6001)
		s.collect()
		s.sack(1, 2001, 8001)
		s.collect()
		s.send(ACK, 1, 10001, 0)
		s.sack(10001, 1, 2001)
		assert.Equal(t, 1, e.spurious)
	})
	t.Run("a network that duplicates proves nothing", func(t *testing.T) {
		s, e := resendsFirst(t)
		s.sack(8001, 6001, 7001) // this segment was never retransmitted
		s.sack(10001, 1, 1001)
		assert.Zero(t, e.spurious)
	})
	t.Run("a report about an older episode proves nothing", func(t *testing.T) {
		s, e := resendsFirst(t)
		s.send(ACK, 1, 10001, 0)
		s.write(10000)
		s.collect()
		s.out = nil
		s.now = s.now.Add(10 * time.Millisecond)
		s.sack(10001, 11001, 15001)
		s.collect()
		s.sack(10001, 1, 1001)
		assert.Zero(t, e.spurious)
		assert.Equal(t, "recovery", s.c.Info().CAState)
	})
}

func TestUndoWaitsForLostData(t *testing.T) {
	s := flight(t, 10, fullOptions, Config{})
	e := watchExits(s)
	s.sack(1, 2001, 6001)
	s.expect(ACK, 1, 1, 1000)
	require.NotZero(t, s.c.Info().Lost)
	s.sack(1001, 1, 1001)
	assert.Zero(t, e.spurious)
	assert.Equal(t, "recovery", s.c.Info().CAState)
}

// timesOut lets a flight of n segments time out. The sender has then retransmitted the first and
// has more data to send.
func timesOut(t *testing.T, n int, o Options, cfg Config) (*script, *exits) {
	t.Helper()
	s := flight(t, n, o, cfg)
	s.c.snd.rec.At.Probe = 0 // without a probe, the timeout happens
	e := watchExits(s)
	s.wait(s.c.snd.rec.At.RTO.Sub(s.now))
	s.expect(ACK, 1, 1, 1000)
	s.quiet()
	s.write(5000)
	s.quiet()
	require.Equal(t, "loss", s.c.Info().CAState)
	return s, e
}

func TestRFC5682_2_1_Basic(t *testing.T) {
	plain := Options{MSS: 1000}
	t.Run("step 3b: spurious", func(t *testing.T) {
		s, e := timesOut(t, 5, plain, Config{})
		s.now = s.now.Add(time.Millisecond)
		s.send(ACK, 1, 1001, 0) // acknowledges the original
		s.expect(ACK, 5001, 1, 1000)
		s.expect(ACK, 6001, 1, 1000)
		s.quiet()
		s.send(ACK, 1, 2001, 0)
		assert.Equal(t, 1, e.spurious)
		i := s.c.Info()
		assert.Equal(t, "open", i.CAState)
		assert.Zero(t, i.Lost)
		assert.Equal(t, uint64(1), i.TotalRetrans, "only the first segment is retransmitted")
		s.send(ACK, 1, 7001, 0)
		s.collect()
		s.send(ACK, 1, 10001, 0)
		assert.Zero(t, s.c.snd.rec.Pipe())
	})
	t.Run("step 2a: a duplicate", func(t *testing.T) {
		s, e := timesOut(t, 5, plain, Config{})
		s.send(ACK, 1, 1, 0)
		s.send(ACK, 1, 1001, 0)
		s.expect(ACK, 1001, 1, 1000)
		assert.Zero(t, e.spurious)
	})
	t.Run("step 2a: all data in flight", func(t *testing.T) {
		s, e := timesOut(t, 5, plain, Config{})
		s.send(ACK, 1, 5001, 0)
		assert.Equal(t, "open", s.c.Info().CAState)
		assert.Zero(t, e.spurious, "the retransmission may have filled the only hole")
	})
	t.Run("step 3a: a duplicate", func(t *testing.T) {
		s, e := timesOut(t, 5, plain, Config{})
		s.now = s.now.Add(time.Millisecond)
		s.send(ACK, 1, 1001, 0)
		s.expect(ACK, 5001, 1, 1000)
		s.expect(ACK, 6001, 1, 1000)
		s.send(ACK, 1, 1001, 0)
		assert.LessOrEqual(t, s.c.Info().SndCwnd, 3000, "at most three segments")
		s.expect(ACK, 1001, 1, 1000)
		assert.Zero(t, e.spurious)
	})
	t.Run("step 2b needs new data to send", func(t *testing.T) {
		s := flight(t, 5, plain, Config{})
		s.wait(200 * time.Millisecond)
		s.collect()
		s.out = nil
		s.send(ACK, 1, 1001, 0)
		s.expect(ACK, 1001, 1, 1000)
	})
}

func TestRFC5682_3_1_WithSACK(t *testing.T) {
	t.Run("step 2: duplicates do not decide", func(t *testing.T) {
		s, e := timesOut(t, 5, fullOptions, Config{})
		s.sack(1, 3001, 4001)
		s.quiet()
		s.send(ACK, 1, 1001, 0)
		s.expect(ACK, 5001, 1, 1000)
		s.expect(ACK, 6001, 1, 1000)
		t.Log("# step 3b: an original arrives by SACK")
		s.sack(1001, 2001, 4001)
		assert.Equal(t, 1, e.spurious)
		assert.Equal(t, uint64(1), s.c.Info().TotalRetrans)
	})
	t.Run("step 3: a copy of an acknowledgment does not decide", func(t *testing.T) {
		s, e := timesOut(t, 5, fullOptions, Config{})
		s.send(ACK, 1, 1001, 0)
		s.send(ACK, 1, 1001, 0)
		s.expect(ACK, 5001, 1, 1000)
		s.expect(ACK, 6001, 1, 1000)
		s.quiet()
		s.send(ACK, 1, 1001, 0)
		s.quiet()
		s.send(ACK, 1, 3001, 0)
		assert.Equal(t, 1, e.spurious)
		assert.Equal(t, uint64(1), s.c.Info().TotalRetrans)
	})
	t.Run("step 3a: only new data arrives", func(t *testing.T) {
		s, e := timesOut(t, 5, fullOptions, Config{})
		s.send(ACK, 1, 1001, 0)
		s.collect()
		s.out = nil
		s.sack(1001, 5001, 6001)
		assert.Zero(t, e.spurious)
		s.expect(ACK, 1001, 1, 1000)
	})
	t.Run("step 1: not after fast recovery", func(t *testing.T) {
		s, _ := resendsFirst(t)
		s.c.snd.rec.At.Probe = 0
		s.wait(s.c.snd.rec.At.RTO.Sub(s.now))
		s.collect()
		assert.Equal(t, "loss", s.c.Info().CAState)
	})
	t.Run("step 1: again for the same segment, but not later", func(t *testing.T) {
		s, e := timesOut(t, 5, fullOptions, Config{})
		s.wait(s.c.snd.rec.At.RTO.Sub(s.now))
		s.expect(ACK, 1, 1, 1000)
		s.send(ACK, 1, 1001, 0)
		s.collect()
		s.out = nil
		s.wait(s.c.snd.rec.At.RTO.Sub(s.now))
		s.expect(ACK, 1001, 1, 1000)
		assert.Zero(t, e.spurious)
	})
}

func TestRFC3708_UndoOfTimeout(t *testing.T) {
	s := flight(t, 5, fullOptions, Config{})
	s.c.snd.rec.At.Probe = 0
	e := watchExits(s)
	s.wait(s.c.snd.rec.At.RTO.Sub(s.now))
	s.expect(ACK, 1, 1, 1000)
	s.send(ACK, 1, 1001, 0) // acknowledges the original; there is no new data to send
	s.collect()
	n := len(s.out)
	s.out = nil
	require.NotZero(t, n)
	s.sack(3001, 1, 1001)
	s.sack(3001, 1001, uint32(1001+1000*n))
	assert.Equal(t, 1, e.spurious)
	assert.Zero(t, s.c.Info().Lost)
	s.send(ACK, 1, 5001, 0)
	assert.Zero(t, s.c.snd.rec.Pipe())
}

func TestRFC4015_3_1_Adapt(t *testing.T) {
	s, e := timesOut(t, 5, Options{MSS: 1000}, Config{Knobs: Knobs{Recovery: Recovery{RTOMin: time.Millisecond}}})
	s.now = s.now.Add(100 * time.Millisecond)
	s.send(ACK, 1, 1001, 0)
	s.collect()
	s.send(ACK, 1, 2001, 0)
	require.Equal(t, 1, e.spurious)
	assert.Zero(t, s.c.snd.rec.Backoff)
	t.Log("# the next sample replaces the estimate, but does not lower it")
	s.now = s.now.Add(time.Millisecond)
	s.send(ACK, 1, 6001, 0)
	assert.GreaterOrEqual(t, s.c.Info().RTT, 100*time.Millisecond)
	assert.GreaterOrEqual(t, s.c.Info().RTTVar, 50*time.Millisecond)
}

// RFC 3522: with timestamps the first acknowledgment identifies the transmission if the round trip
// is longer than a tick.
func TestRFC3522_Eifel(t *testing.T) {
	enter := func(t *testing.T) (*script, *exits, func(uint32, uint32, ...uint32)) {
		t.Helper()
		s := stamped(t, Config{}, 100)
		e := watchExits(s)
		s.write(10 * s.c.snd.MSS)
		s.collect()
		original := s.out[0].options.TSVal
		s.out = nil
		val, mss := uint32(200), uint32(s.c.snd.MSS)
		answer := func(echo, segments uint32, sacked ...uint32) {
			val++
			o := Options{HasTimestamps: true, TSVal: val, TSEcr: echo}
			for i := 0; i < len(sacked); i += 2 {
				o.addBlock(uint64(s.iss+1+mss*sacked[i]), uint64(s.iss+1+mss*sacked[i+1]))
			}
			s.send(ACK, 1, 1+mss*segments, 0, o)
		}
		s.now = s.now.Add(20 * time.Millisecond)
		answer(original, 0, 1, 4)
		s.collect()
		require.NotEmpty(t, s.out)
		require.Equal(t, uint32(1), s.out[0].seq)
		require.Equal(t, "recovery", s.c.Info().CAState)
		s.now = s.now.Add(5 * time.Millisecond)
		return s, e, answer
	}
	t.Run("§3.2 step 4: the original was late", func(t *testing.T) {
		s, e, answer := enter(t)
		answer(recovery.Tick(s.now.Add(-5*time.Millisecond))+s.c.stamps.offset-10, 4)
		assert.Equal(t, 1, e.spurious)
		assert.Equal(t, "open", s.c.Info().CAState)
	})
	t.Run("the retransmission was needed", func(t *testing.T) {
		s, e, answer := enter(t)
		answer(recovery.Tick(s.now.Add(-5*time.Millisecond))+s.c.stamps.offset, 4)
		answer(recovery.Tick(s.now.Add(-5*time.Millisecond))+s.c.stamps.offset, 10)
		assert.Zero(t, e.spurious)
		assert.Equal(t, "open", s.c.Info().CAState)
	})
}
