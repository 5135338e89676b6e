package tcp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCork(t *testing.T) {
	s := opened(t, Config{})
	s.set(func(o *Sockopts) { o.Cork = true })
	s.write(100)
	s.quiet()
	assert.Equal(t, LimitCork.String(), s.c.Info().Limited)
	s.write(950)
	s.expect(ACK, 1, 1, 1000) // the connection sends full segments
	s.send(ACK, 1, 1001, 0)
	s.quiet()
	s.wait(199 * time.Millisecond)
	s.quiet()
	s.wait(2 * time.Millisecond)
	s.expect(PSH|ACK, 1001, 1, 50)
	t.Log("# held again, until TCP_CORK is cleared")
	s.send(ACK, 1, 1051, 0)
	s.write(10)
	s.quiet()
	s.set(func(o *Sockopts) { o.Cork = false })
	s.expect(PSH|ACK, 1051, 1, 10)
	t.Log("# a FIN releases the data, too")
	s.send(ACK, 1, 1061, 0)
	s.set(func(o *Sockopts) { o.Cork = true })
	s.write(10)
	s.quiet()
	_ = s.c.CloseWrite(s.now)
	s.expect(FIN|PSH|ACK, 1061, 1, 10)
}

func TestMaxSeg(t *testing.T) {
	s := newScript(t, Config{})
	s.connect()
	require.ErrorIs(t, s.c.SetSockopts(s.now, Sockopts{MaxSeg: 20}), ErrOption)
	s.set(func(o *Sockopts) { o.MaxSeg = 500 })
	syn := s.expect(SYN, 0, 0, 0)
	assert.Equal(t, uint16(500), syn.options.MSS, "RFC 9293 §3.7.1: the SYN asks the peer for no larger segments")
	s.send(SYN|ACK, 0, 1, 0, fullOptions)
	s.expect(ACK, 1, 1, 0)
	s.write(1000)
	s.expect(ACK, 1, 1, 500)
	s.expect(PSH|ACK, 501, 1, 500)
	s.send(ACK, 1, 1001, 0)
	s.set(func(o *Sockopts) { o.MaxSeg = 0 })
	s.write(1000)
	s.expect(PSH|ACK, 1001, 1, 1000)
}

func TestTrafficClass(t *testing.T) {
	s := opened(t, Config{})
	s.set(func(o *Sockopts) { o.TOS, o.TTL = 0xbb, 3 })
	s.write(100)
	require.True(t, s.h.Output(s.now, []int{10}, &s.train))
	assert.Equal(t, uint8(0xb8), s.train.TOS, "RFC 3168 §5: the user cannot set the ECN bits")
	assert.Equal(t, uint8(3), s.train.TTL, "RFC 9293 §3.9.2: the user can set the TTL")
}

func TestListenerOptionsAreInherited(t *testing.T) {
	s := newScript(t, Config{})
	s.listen(1)
	require.ErrorIs(t, s.l.SetSockopts(Sockopts{MaxSeg: 1}), ErrOption)
	require.NoError(t, s.l.SetSockopts(Sockopts{
		NoDelay: true, MaxSeg: 600, UserTimeout: 7 * time.Second, RecvBuffer: 5000,
		SendBuffer: 4000, TOS: 0x20, TTL: 9, Keepalive: Keepalive{Idle: time.Minute},
	}))
	s.send(SYN, 0, 0, 0, fullOptions)
	a := s.expect(SYN|ACK, 0, 1, 0)
	assert.Equal(t, uint16(600), a.options.MSS)
	assert.Equal(t, 5000, a.window)
	s.send(ACK, 1, 1, 0)
	s.c, _ = s.l.Accept()
	r, w := s.c.Info().RcvBuf, s.c.Info().SndBuf
	assert.Equal(t, []int{5000, 4000}, []int{r, w})
	assert.Equal(t, 7*time.Second, s.c.Info().UserTimeout)
	s.write(10)
	s.expect(PSH|ACK, 1, 1, 10)
	s.write(10)
	s.expect(PSH|ACK, 11, 1, 10)
	assert.Equal(t, uint8(0x20), s.train.TOS)
}

// RFC 9293 §3.8.3: the user timeout counts from the first unacknowledged byte, whatever is sent
// later, and restarts when data is acknowledged.
func TestRFC9293_3_8_3_UserTimeout(t *testing.T) {
	s := opened(t, Config{Retries: Retries{Data: 1}})
	require.ErrorIs(t, s.c.SetSockopts(s.now, Sockopts{UserTimeout: -1}), ErrOption)
	s.set(func(o *Sockopts) { o.UserTimeout = 10 * time.Second })
	s.write(100)
	s.wait(9 * time.Second)
	assert.Equal(t, StateEstablished, s.c.State(), "retries no longer count")
	s.send(ACK, 1, 50, 0)
	s.wait(9 * time.Second)
	assert.Equal(t, StateEstablished, s.c.State(), "half of the data was acknowledged")
	s.wait(2 * time.Second)
	require.ErrorIs(t, s.c.Err(), ErrUserTimeout)
	require.ErrorIs(t, s.c.Err(), ErrTimeout)
	assert.Equal(t, StateClosed, s.c.State())
}

func TestUserTimeoutWhileIdle(t *testing.T) {
	s := opened(t, Config{})
	s.set(func(o *Sockopts) { o.UserTimeout = 10 * time.Second })
	s.wait(time.Hour)
	s.write(100)
	s.expect(PSH|ACK, 1, 1, 100)
	s.wait(9 * time.Second)
	assert.Equal(t, StateEstablished, s.c.State(), "an idle hour does not count")
	s.out = nil
	s.send(ACK, 1, 101, 0)
	s.wait(time.Hour)
	s.write(100)
	s.collect()
	s.wait(9 * time.Second)
	assert.Equal(t, StateEstablished, s.c.State())
	s.wait(2 * time.Second)
	require.ErrorIs(t, s.c.Err(), ErrUserTimeout)
}

// RFC 9293 §3.8.6.1 allows a peer that answers to keep its window closed. A user timeout ends the
// connection nevertheless.
func TestUserTimeoutZeroWindow(t *testing.T) {
	s := opened(t, Config{})
	s.set(func(o *Sockopts) { o.UserTimeout = 20 * time.Second })
	s.sendWindow(ACK, 1, 1, 0, 0)
	s.write(3)
	s.quiet()
	end := s.now.Add(time.Minute)
	for s.c.State() == StateEstablished && s.now < end {
		s.wait(s.h.Deadline().Sub(s.now))
		s.sendWindow(ACK, 1, 1, 0, 0)
	}
	require.ErrorIs(t, s.c.Err(), ErrUserTimeout)
	assert.InDelta(t, 20, 60-end.Sub(s.now).Seconds(), 0.5)
}

func TestUserTimeoutOfTheSYN(t *testing.T) {
	s := newScript(t, Config{})
	s.connect()
	s.set(func(o *Sockopts) { o.UserTimeout = 3 * time.Second })
	s.wait(2900 * time.Millisecond)
	assert.Equal(t, StateSynSent, s.c.State())
	s.wait(200 * time.Millisecond)
	require.ErrorIs(t, s.c.Err(), ErrUserTimeout, "§3.10.8: for any state")
}

// TestKeepaliveObeysUserTimeout checks that a user timeout replaces the number of keepalive probes,
// but ends the connection only after at least one probe.
func TestKeepaliveObeysUserTimeout(t *testing.T) {
	s := opened(t, Config{})
	s.set(func(o *Sockopts) { o.Keepalive = Keepalive{Idle: 30 * time.Second, Interval: time.Second, Count: 2} })
	s.set(func(o *Sockopts) { o.UserTimeout = 40 * time.Second })
	s.wait(39 * time.Second)
	assert.Equal(t, StateEstablished, s.c.State(), "more than two probes")
	s.wait(2 * time.Second)
	require.ErrorIs(t, s.c.Err(), ErrUserTimeout)
}

// RFC 5482 §3: the option's value is in seconds, or in minutes if it is too large. The SYN carries
// it, and another segment does when the value changes.
func TestRFC5482_3_Option(t *testing.T) {
	assert.Equal(t, uint16(90), encodeTimeout(89500*time.Millisecond))
	assert.Equal(t, uint16(1<<15|600), encodeTimeout(10*time.Hour))
	assert.Equal(t, 10*time.Hour, decodeTimeout(1<<15|600))
	o := Options{UserTimeout: 1<<15 | 7}
	b := make([]byte, o.size())
	o.put(b)
	assert.Equal(t, []byte{28, 4, 0x80, 7}, b)
	var got Options
	ok := got.parse(b)
	assert.True(t, ok)
	assert.Equal(t, o, got)

	s := newScript(t, Config{})
	s.connect()
	s.set(func(o *Sockopts) { o.AdvertiseTimeout = true })
	s.set(func(o *Sockopts) { o.UserTimeout = 5 * time.Minute })
	assert.Equal(t, uint16(300), s.expect(SYN, 0, 0, 0).options.UserTimeout)
	s.send(SYN|ACK, 0, 1, 0, fullOptions)
	assert.Equal(t, uint16(300), s.expect(ACK, 1, 1, 0).options.UserTimeout)
	s.quiet()
	s.set(func(o *Sockopts) { o.UserTimeout = time.Minute })
	assert.Equal(t, uint16(60), s.expect(ACK, 1, 1, 0).options.UserTimeout)
	s.write(10)
	assert.Zero(t, s.expect(PSH|ACK, 1, 1, 10).options.UserTimeout)
}

// RFC 5482 §3.1: the peer's timeout applies within limits if the user has set none. The lower limit
// is R2 of RFC 1122 §4.2.3.5.
func TestRFC5482_3_1_Adaptation(t *testing.T) {
	for _, test := range []struct {
		said uint16
		want time.Duration
	}{
		{0, 0}, {1 << 15, 0}, // §3.2: a value of zero is ignored
		{5, leastPeerTimeout}, {500, 500 * time.Second}, {1<<15 | 1000, mostPeerTimeout},
	} {
		s := opened(t, Config{})
		s.send(ACK, 1, 1, 0, Options{UserTimeout: test.said})
		assert.Equal(t, test.want, s.c.Info().UserTimeout, "%x", test.said)
		if test.want != 0 {
			assert.GreaterOrEqual(t, s.c.Info().UserTimeout, 100*time.Second)
		}
		s.set(func(o *Sockopts) { o.UserTimeout = time.Second })
		s.send(ACK, 1, 1, 0, Options{UserTimeout: test.said})
		assert.Equal(t, time.Second, s.c.Info().UserTimeout)
	}
}

// RFC 5482 §3: with timestamps and the user timeout, 40 bytes of options have room for two blocks.
func TestRFC5482_3_TimeoutBesideSACKBlocks(t *testing.T) {
	s := stamped(t, Config{}, 1)
	s.set(func(o *Sockopts) { o.UserTimeout, o.AdvertiseTimeout = time.Minute, true })
	s.collect()
	for i := range uint32(3) {
		s.send(ACK, 1001+2000*i, 1, 1000, stamp(1, 0))
		s.collect()
	}
	s.out = nil
	s.set(func(o *Sockopts) { o.UserTimeout = 2 * time.Minute })
	a := s.expect(ACK, 1, 1, 0)
	assert.Equal(t, uint16(120), a.options.UserTimeout)
	assert.Equal(t, uint8(2), a.options.SACKCount)
	s.send(ACK, 7001, 1, 1000, stamp(1, 0))
	assert.Equal(t, uint8(3), s.expect(ACK, 1, 1, 0).options.SACKCount)
}

func TestPlainPeersGetNoUserTimeout(t *testing.T) {
	s := newScript(t, Config{})
	s.accept(Options{})
	s.set(func(o *Sockopts) { o.AdvertiseTimeout = true })
	s.set(func(o *Sockopts) { o.UserTimeout = time.Minute })
	s.write(10)
	s.collect()
	for _, g := range s.out {
		assert.Equal(t, Options{}, g.options)
	}
}

// RFC 9293 §3.8.6: a smaller receive buffer does not move the window's right edge back. The window
// shrinks as data arrives.
func TestRFC9293_3_8_6_BufferShrinks(t *testing.T) {
	s := opened(t, Config{Buffers: Buffers{Recv: 10000}})
	s.send(ACK, 1, 1, 1000)
	assert.Equal(t, 9000, s.expect(ACK, 1, 1001, 0).window)
	s.set(func(o *Sockopts) { o.RecvBuffer = 4000 })
	s.quiet()
	seq, edge := uint32(1001), uint32(10001)
	for seq < 10001 {
		s.send(ACK, seq, 1, 1000)
		s.wait(50 * time.Millisecond)
		seq += 1000
		a := s.expect(ACK, 1, seq, 0)
		require.LessOrEqual(t, edge, seq+uint32(a.window), "the edge does not move back")
		edge = seq + uint32(a.window)
		require.LessOrEqual(t, edge, max(10001, seq+4000), "the edge does not move before it must")
		s.read(1000)
		s.collect()
		s.out = nil
	}
	s.read(10000)
	s.set(func(o *Sockopts) { o.RecvBuffer = 20000 })
	a := s.expect(ACK, 1, seq, 0)
	assert.Equal(t, 20000, a.window, "a larger window is offered at once")
}

func TestWriteBufferShrinks(t *testing.T) {
	s := opened(t, Config{Buffers: Buffers{Send: 10000}})
	s.write(6000)
	s.set(func(o *Sockopts) { o.SendBuffer = 2000 })
	assert.Zero(t, s.c.Tx().Free())
	for range 6 {
		s.collect()
	}
	s.out = nil
	s.send(ACK, 1, 6001, 0)
	assert.Equal(t, 2000, s.c.Tx().Free())
	s.set(func(o *Sockopts) { o.SendBuffer = 1 << 20 })
	assert.Equal(t, 1<<20, s.c.Tx().Free())
}
