package tcp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/recovery"
)

// stamp is an option list with only timestamps.
func stamp(val, ecr uint32) Options {
	return Options{HasTimestamps: true, TSVal: val, TSEcr: ecr}
}

// stamped establishes a connection with timestamps. The peer's timestamps start at val.
func stamped(t *testing.T, cfg Config, val uint32) *script {
	t.Helper()
	s := newScript(t, cfg)
	s.listen(8)
	o := fullOptions
	o.HasTimestamps, o.TSVal = true, val
	s.send(SYN, 0, 0, 0, o)
	a := s.expect(SYN|ACK, 0, 1, 0)
	require.True(t, a.options.HasTimestamps)
	require.Equal(t, val, a.options.TSEcr)
	s.now = s.now.Add(10 * time.Millisecond)
	s.send(ACK, 1, 1, 0, stamp(val, a.options.TSVal))
	c, ok := s.l.Accept()
	require.True(t, ok)
	s.c = c
	s.quiet()
	return s
}

func TestRFC7323_3_2_Negotiation(t *testing.T) {
	with := fullOptions
	with.HasTimestamps, with.TSVal = true, 7
	cases := []struct {
		name  string
		knobs Knobs
		peer  Options
		want  bool
	}{
		{"both", Knobs{}, with, true},
		{"the peer does not offer", Knobs{}, fullOptions, false},
		{"we do not offer", Knobs{NoTimestamps: true}, with, false},
		{"no options at all", Knobs{OptionsOff: true}, with, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := newScript(t, Config{Knobs: c.knobs})
			s.listen(1)
			s.send(SYN, 0, 0, 0, c.peer)
			assert.Equal(t, c.want, s.expect(SYN|ACK, 0, 1, 0).options.HasTimestamps)
			s.send(ACK, 1, 1, 0, stamp(8, 1)) // MUST be ignored if not negotiated
			s.c, _ = s.l.Accept()
			require.NotNil(t, s.c)
			assert.Equal(t, c.want, s.c.Info().Timestamps)
			s.write(10)
			assert.Equal(t, c.want, s.expect(PSH|ACK, 1, 1, 10).options.HasTimestamps)

			s = newScript(t, Config{Knobs: c.knobs})
			s.connect()
			syn := s.expect(SYN, 0, 0, 0)
			assert.Equal(t, !c.knobs.NoTimestamps && !c.knobs.OptionsOff, syn.options.HasTimestamps)
			assert.Zero(t, syn.options.TSEcr)
			s.send(SYN|ACK, 0, 1, 0, c.peer)
			assert.Equal(t, c.want, s.expect(ACK, 1, 1, 0).options.HasTimestamps)
		})
	}
}

// RFC 7323 §3.2: on a connection with timestamps, data, bare ACKs, window probes, keepalives and
// resets carry them. So do segments in TIME-WAIT.
func TestRFC7323_3_2_EverySegment(t *testing.T) {
	s := stamped(t, Config{}, 100)
	s.set(func(o *Sockopts) { o.Keepalive = Keepalive{Idle: time.Second, Interval: time.Second} })
	s.wait(1500 * time.Millisecond)
	require.True(t, s.expect(ACK, 0, 1, 0).options.HasTimestamps, "keepalive")
	s.write(3000)
	for i, n := range []int{988, 988, 988, 36} {
		g := s.expect([]Flags{ACK, ACK, ACK, PSH | ACK}[i], uint32(1+988*i), 1, n)
		require.Equal(t, stamp(s.c.stamps.at(s.now), 100), g.options)
	}
	s.sendWindow(ACK, 1, 3001, 0, 0, stamp(100, 1))
	s.write(100)
	s.wait(time.Second)
	require.True(t, s.expect(ACK, 3001, 1, 1).options.HasTimestamps, "window probe")
	s.c.Abort(s.now)
	s.collect()
	require.True(t, s.out[len(s.out)-1].flags.Has(RST))
	require.True(t, s.out[len(s.out)-1].options.HasTimestamps, "reset")

	s = stamped(t, Config{}, 100)
	_ = s.c.CloseWrite(s.now)
	s.expect(FIN|ACK, 1, 1, 0)
	s.send(FIN|ACK, 1, 2, 0, stamp(300, 1))
	s.expect(ACK, 2, 2, 0)
	s.wait(time.Second)
	s.send(FIN|ACK, 1, 2, 0, stamp(301, 1))
	assert.Equal(t, stamp(s.c.stamps.at(s.now), 301), s.expect(ACK, 2, 2, 0).options)
}

func TestRFC7323_3_2_MissingIsDropped(t *testing.T) {
	s := stamped(t, Config{}, 100)
	s.send(ACK, 1, 1, 10)
	s.quiet()
	assert.Equal(t, uint64(1), s.h.Drops()[DropNoStamp])
	assert.Equal(t, StateEstablished, s.c.State(), "a missing timestamp MUST NOT abort the connection")
	s.send(SYN, 500, 0, 0)
	s.expect(ACK, 1, 1, 0) // RFC 5961 §4.2: a peer that has restarted detects the old connection
	s.send(RST, 1, 0, 0)
	assert.Equal(t, StateClosed, s.c.State(), "a reset needs no timestamp")
}

// RFC 9293 §3.7.1: timestamps do not change the MSS option, but reduce the payload by 12 bytes.
func TestRFC9293_3_7_1_PayloadWithTimestamps(t *testing.T) {
	s := stamped(t, Config{}, 100)
	assert.Equal(t, 988, s.c.Info().SndMSS)
	w := newWorld(t, 1, wire{delay: time.Millisecond}, Config{})
	a, b := w.connect()
	assert.Equal(t, 1348, a.Info().SndMSS)
	require.True(t, w.transfer(time.Minute, newStream(a, b, 100000)))
	assert.Equal(t, 1348, b.Info().RcvMSS)
}

// RFC 2018 §3: with timestamps a segment has room for three SACK blocks.
func TestRFC2018_3_ThreeBlocks(t *testing.T) {
	s := stamped(t, Config{}, 100)
	var last sentSegment
	for i := range uint32(5) {
		s.send(ACK, 101+200*i, 1, 100, stamp(101, 1))
		last = s.expect(ACK, 1, 1, 0)
	}
	assert.Equal(t, uint8(3), last.options.SACKCount)
	assert.Equal(t, 12+4+24, last.options.size(), "all of a header's 40 bytes")
}

// TestRFC7323_4_3_Echo checks the cases of RFC 7323 §4.3.
func TestRFC7323_4_3_Echo(t *testing.T) {
	echo := func(s *script, ack uint32) uint32 {
		s.t.Helper()
		g := s.expect(ACK, 1, ack, 0)
		return g.options.TSEcr
	}
	t.Run("delayed: the timestamp of the first unacknowledged segment", func(t *testing.T) {
		s := stamped(t, Config{}, 100)
		s.send(ACK, 1, 1, 100, stamp(100, 1))
		assert.Equal(t, uint32(100), echo(s, 101))
		s.c.rcv.ack.quick = 0
		s.send(ACK, 101, 1, 100, stamp(101, 1))
		s.quiet()
		s.send(ACK, 201, 1, 100, stamp(105, 1))
		assert.Equal(t, uint32(101), echo(s, 301))
	})
	t.Run("a gap: the last segment before it, then the segment that fills it", func(t *testing.T) {
		s := stamped(t, Config{}, 100)
		s.send(ACK, 1, 1, 100, stamp(101, 1))
		assert.Equal(t, uint32(101), echo(s, 101))
		s.send(ACK, 201, 1, 100, stamp(103, 1))
		assert.Equal(t, uint32(101), echo(s, 101))
		s.send(ACK, 101, 1, 100, stamp(102, 1))
		assert.Equal(t, uint32(102), echo(s, 301), "older than the early segment's, but accepted")
		s.send(ACK, 301, 1, 100, stamp(104, 1))
		assert.Equal(t, uint32(104), echo(s, 401))
	})
	t.Run("an unacceptable ACK does not move it", func(t *testing.T) {
		s := stamped(t, Config{}, 100)
		s.send(ACK, 1, 5000, 10, stamp(1<<30, 1))
		assert.Equal(t, uint32(100), echo(s, 1))
	})
}

func TestRFC7323_5_3_PAWS(t *testing.T) {
	s := stamped(t, Config{}, 0xfffffff0) // the peer's timestamps wrap soon
	s.send(ACK, 1, 1, 100, stamp(5, 1))
	assert.Equal(t, uint32(5), s.expect(ACK, 1, 101, 0).options.TSEcr, "5 is later after the wrap")
	t.Run("R1: a segment with an older timestamp is acknowledged and dropped", func(t *testing.T) {
		s.send(ACK, 101, 1, 100, stamp(4, 1))
		s.expect(ACK, 1, 101, 0)
		assert.Equal(t, uint64(1), s.h.Drops()[DropOldStamp])
		assert.Equal(t, 100, s.c.Rx().Len())
	})
	t.Run("an old duplicate is reported by D-SACK", func(t *testing.T) {
		s.send(ACK, 51, 1, 50, stamp(0xfffffff1, 1))
		g := s.expect(ACK, 1, 101, 0)
		assert.Equal(t, uint8(1), g.options.SACKCount, "RFC 2883 §4")
	})
	t.Run("R2: PAWS comes before the window", func(t *testing.T) {
		s.now = s.now.Add(time.Second)
		s.send(ACK, 1<<20, 1, 100, stamp(6, 1))
		s.expect(ACK, 1, 101, 0)
		assert.Equal(t, uint64(1), s.h.Drops()[DropSequence])
		assert.Equal(t, uint32(5), s.c.stamps.recent)
	})
	t.Run("an equal timestamp is not older", func(t *testing.T) {
		s.send(ACK, 101, 1, 100, stamp(5, 1))
		s.expect(ACK, 1, 201, 0)
	})
	t.Run("§5.2: a reset is exempt", func(t *testing.T) {
		s.send(RST|ACK, 201, 1, 0, stamp(1, 1))
		assert.Equal(t, StateClosed, s.c.State())
	})
}

// RFC 7323 §5.5: after 24 days of silence TS.Recent is invalid. Otherwise a clock that has advanced
// by half of its range would lock the peer out.
func TestRFC7323_5_5_OutdatedStamps(t *testing.T) {
	s := stamped(t, Config{}, 1000)
	s.now = s.now.Add(24*24*time.Hour - time.Second)
	s.send(ACK, 1, 1, 100, stamp(999, 1))
	s.expect(ACK, 1, 1, 0)
	s.now = s.now.Add(2 * time.Second)
	s.send(ACK, 1, 1, 100, stamp(999, 1))
	assert.Equal(t, uint32(999), s.expect(ACK, 1, 101, 0).options.TSEcr)
}

// RFC 7323 §7.1: the timestamps' offsets are secret and differ between connections.
func TestRFC7323_7_1_StampsRevealNothing(t *testing.T) {
	s := newScript(t, Config{Secret: [16]byte{1}})
	o := newScript(t, Config{Secret: [16]byte{2}})
	other := s.tuple
	other.RemotePort++
	assert.NotEqual(t, stampOffset(&s.h.cfg.Secret, &s.tuple), stampOffset(&s.h.cfg.Secret, &other))
	assert.NotEqual(t, stampOffset(&s.h.cfg.Secret, &s.tuple), stampOffset(&o.h.cfg.Secret, &s.tuple))
	assert.Equal(t, uint32(5), recovery.Tick(clock.Time(5*time.Millisecond)), "§5.4: a tick is 1 ms")
}

// RFC 7323 §4.1: the timestamp echo identifies the transmission, so the sample of a retransmission
// counts in spite of Karn's algorithm.
func TestRFC7323_4_1_SampleOfARetransmission(t *testing.T) {
	s := stamped(t, Config{}, 100)
	s.write(100)
	first := s.expect(PSH|ACK, 1, 1, 100)
	s.wait(300 * time.Millisecond)
	s.collect()
	again := s.out[len(s.out)-1]
	s.out = nil
	require.NotEqual(t, first.options.TSVal, again.options.TSVal)
	s.now = s.c.snd.rec.LastSent.Add(20 * time.Millisecond)
	s.send(ACK, 1, 101, 0, stamp(101, again.options.TSVal))
	assert.Equal(t, 20*time.Millisecond, s.c.Info().LatestRTT)

	s.write(100)
	first = s.expect(PSH|ACK, 101, 1, 100)
	s.wait(300 * time.Millisecond)
	s.send(ACK, 1, 201, 0, stamp(102, first.options.TSVal))
	assert.Equal(t, 20*time.Millisecond, s.c.Info().LatestRTT, "the original's timestamp gives no sample")
}

// RFC 7323 appendix A: the recommended layout of two NOPs, kind, length and two timestamps is
// written and parsed in one step. The same options in any other order have the same meaning.
func TestRFC7323_A_Layout(t *testing.T) {
	h := Header{Flags: ACK, Options: stamp(0x01020304, 0xfffefdfc)}
	b := make([]byte, h.Size())
	h.Put(b, 1, 2)
	assert.Equal(t, []byte{1, 1, 8, 10, 1, 2, 3, 4, 0xff, 0xfe, 0xfd, 0xfc}, b[20:])
	for _, list := range [][]byte{
		b[20:],
		{8, 10, 1, 2, 3, 4, 0xff, 0xfe, 0xfd, 0xfc, 0, 0},
		{8, 10, 1, 2, 3, 4, 0xff, 0xfe, 0xfd, 0xfc, 1, 1},
		{1, 8, 10, 1, 2, 3, 4, 0xff, 0xfe, 0xfd, 0xfc, 0},
	} {
		var o Options
		require.True(t, o.parse(list))
		assert.Equal(t, h.Options, o)
	}
	var o Options
	require.True(t, o.parse([]byte{1, 1, 8, 9, 1, 2, 3, 4, 5, 6, 7, 0}), "a wrong length is skipped")
	assert.Zero(t, o)
	require.False(t, o.parse([]byte{1, 1, 8, 11, 1, 2, 3, 4, 5, 6, 7, 8}), "a length past the end is an error")
}
