package tcp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func opened(t *testing.T, cfg Config) *script {
	t.Helper()
	s := newScript(t, cfg)
	s.accept(fullOptions)
	return s
}

func TestRFC9293_3_6_NormalClose(t *testing.T) {
	s := opened(t, Config{})
	s.write(10)
	_ = s.c.CloseWrite(s.now)
	s.expect(FIN|PSH|ACK, 1, 1, 10)
	assert.Equal(t, StateFinWait1, s.c.State())
	s.send(ACK, 1, 12, 0)
	assert.Equal(t, StateFinWait2, s.c.State())
	s.send(ACK, 1, 12, 500) // half-closed: the other direction stays open
	s.expect(ACK, 12, 501, 0)
	assert.Equal(t, 500, s.read(1000))
	s.send(FIN|ACK, 501, 12, 0)
	assert.Equal(t, StateTimeWait, s.c.State())
	assert.True(t, s.c.ReadDone())
	require.NoError(t, s.c.Err())
	s.expect(ACK, 12, 502, 0)
	assert.Zero(t, s.h.numConns(), "only a small object remains")
	assert.Equal(t, 1, s.h.TimeWaits())
	s.wait(59 * time.Second)
	assert.Equal(t, StateTimeWait, s.c.State())
	s.wait(2 * time.Second)
	assert.Equal(t, StateClosed, s.c.State(), "2 MSL is a minute")
	assert.Zero(t, s.h.Deadline())
}

func TestRFC9293_3_6_PassiveClose(t *testing.T) {
	s := opened(t, Config{})
	s.send(FIN|ACK, 1, 1, 10)
	s.expect(ACK, 1, 12, 0)
	assert.Equal(t, StateCloseWait, s.c.State())
	assert.Equal(t, 10, s.read(20))
	s.write(5)
	s.expect(PSH|ACK, 1, 12, 5)
	s.c.Close(s.now)
	s.expect(FIN|ACK, 6, 12, 0)
	assert.Equal(t, StateLastAck, s.c.State())
	s.send(ACK, 12, 6, 0)
	assert.Equal(t, StateLastAck, s.c.State(), "the ACK did not cover the FIN")
	s.send(ACK, 12, 7, 0)
	assert.Equal(t, StateClosed, s.c.State())
	assert.Zero(t, s.h.numConns())
	s.quiet()
}

func TestRFC9293_3_6_SimultaneousClose(t *testing.T) {
	s := opened(t, Config{})
	_ = s.c.CloseWrite(s.now)
	s.expect(FIN|ACK, 1, 1, 0)
	s.send(FIN|ACK, 1, 1, 0)
	assert.Equal(t, StateClosing, s.c.State())
	s.expect(ACK, 2, 2, 0)
	s.send(ACK, 2, 2, 0)
	assert.Equal(t, StateTimeWait, s.c.State())
}

func TestRFC9293_3_10_7_4_TimeWait(t *testing.T) {
	timeWait := func(t *testing.T) *script {
		t.Helper()
		s := opened(t, Config{})
		_ = s.c.CloseWrite(s.now)
		s.expect(FIN|ACK, 1, 1, 0)
		s.send(FIN|ACK, 1, 2, 0)
		s.expect(ACK, 2, 2, 0)
		require.Equal(t, StateTimeWait, s.c.State())
		return s
	}
	t.Run("a repeated FIN restarts it", func(t *testing.T) {
		s := timeWait(t)
		s.wait(50 * time.Second)
		s.send(FIN|ACK, 1, 2, 0)
		s.expect(ACK, 2, 2, 0)
		s.wait(50 * time.Second)
		assert.Equal(t, StateTimeWait, s.c.State())
		s.wait(11 * time.Second)
		assert.Equal(t, StateClosed, s.c.State())
	})
	t.Run("RFC 1337: a reset does not end it", func(t *testing.T) {
		s := timeWait(t)
		s.send(RST, 2, 0, 0)
		s.send(ACK, 2, 2, 0)
		s.quiet()
		assert.Equal(t, 1, s.h.TimeWaits())
	})
	t.Run("a later SYN reopens the connection", func(t *testing.T) {
		s := timeWait(t)
		s.send(SYN, 2, 0, 0)
		s.expect(ACK, 2, 2, 0) // the challenge ACK for an old SYN
		s.iss += 2 + 1<<16     // beyond the numbers of the last connection with this tuple
		s.peer += 100
		s.send(SYN, 0, 0, 0)
		s.expect(SYN|ACK, 0, 1, 0)
		assert.Zero(t, s.h.TimeWaits())
		assert.Equal(t, StateClosed, s.c.State())
	})
	t.Run("a SYN without a listener does not", func(t *testing.T) {
		s := timeWait(t)
		s.l.Close(s.now)
		s.send(SYN, 100, 0, 0)
		s.expect(ACK, 2, 2, 0)
		assert.Equal(t, 1, s.h.TimeWaits())
	})
	t.Run("TIME-WAIT entries are bounded", func(t *testing.T) {
		s := newScript(t, Config{Limits: Limits{MaxTimeWait: 3}})
		var first *Conn
		for p := range uint16(5) {
			s.tuple.RemotePort = 100 + p
			if s.l != nil {
				s.l.Close(s.now)
			}
			s.accept(fullOptions)
			if first == nil {
				first = s.c
			}
			s.c.Close(s.now)
			s.expect(FIN|ACK, 1, 1, 0)
			s.send(FIN|ACK, 1, 2, 0)
			s.expect(ACK, 2, 2, 0)
		}
		assert.Equal(t, 3, s.h.TimeWaits())
		assert.Equal(t, StateClosed, first.State())
	})
}

func TestRFC2525_2_17_CloseWithUnreadData(t *testing.T) {
	s := opened(t, Config{})
	s.send(ACK, 1, 1, 10)
	s.expect(ACK, 1, 11, 0)
	s.c.Close(s.now)
	s.expect(RST|ACK, 1, 11, 0)
	assert.Equal(t, StateClosed, s.c.State())
	require.ErrorIs(t, s.c.Err(), ErrAborted)
}

func TestRFC1122_4_2_2_13_DataAfterClose(t *testing.T) {
	s := opened(t, Config{})
	s.c.Close(s.now)
	s.expect(FIN|ACK, 1, 1, 0)
	s.send(ACK, 1, 2, 0)
	assert.Equal(t, StateFinWait2, s.c.State())
	s.send(ACK, 1, 2, 10)
	s.expect(RST, 2, 0, 0)
	assert.Equal(t, StateClosed, s.c.State())
}

func TestFinWait2EndsWithoutUser(t *testing.T) {
	s := opened(t, Config{FinWait2: 10 * time.Second})
	_ = s.c.CloseWrite(s.now)
	s.expect(FIN|ACK, 1, 1, 0)
	s.send(ACK, 1, 2, 0)
	s.wait(time.Hour)
	assert.Equal(t, StateFinWait2, s.c.State(), "a half-closed connection may stay open")
	s.c.Close(s.now)
	s.wait(11 * time.Second)
	assert.Equal(t, StateClosed, s.c.State())
	require.NoError(t, s.c.Err())
	s.quiet()
}

func TestFINRetriesEnd(t *testing.T) {
	s := opened(t, Config{Retries: Retries{Fin: 3, FinTimeout: 3 * time.Second}})
	s.c.Close(s.now)
	s.collect()
	start := s.now
	for s.c.State() != StateClosed {
		s.wait(s.h.Deadline().Sub(s.now))
	}
	s.collect()
	fins := 0
	for _, g := range s.out {
		if g.flags.Has(FIN) {
			fins++
		}
	}
	assert.Equal(t, 4, fins)
	assert.Equal(t, 12*time.Second, s.now.Sub(start))
	require.ErrorIs(t, s.c.Err(), ErrTimeout)
}

func TestCloseReadDiscards(t *testing.T) {
	s := opened(t, Config{Buffers: Buffers{Recv: 5000}})
	s.c.CloseRead(s.now)
	for i := range uint32(20) {
		s.send(ACK, 1+i*1000, 1, 1000)
		s.wait(50 * time.Millisecond)
		a := s.expect(ACK, 1, 1+(i+1)*1000, 0)
		assert.GreaterOrEqual(t, a.window, 4000, "the peer must not stall")
	}
	assert.Zero(t, s.c.Rx().Len())
	s.send(ACK, 22001, 1, 1000) // nor does the host store out-of-order data
	s.expect(ACK, 1, 20001, 0)
	s.send(FIN|ACK, 20001, 1, 0)
	s.expect(ACK, 1, 20002, 0)
	s.c.CloseRead(s.now)
	_ = s.c.CloseWrite(s.now)
	s.expect(FIN|ACK, 1, 20002, 0)
}

func TestAbort(t *testing.T) {
	s := opened(t, Config{})
	s.write(3000)
	s.collect()
	s.out = nil
	s.c.Abort(s.now)
	s.expect(RST|ACK, 3001, 1, 0)
	require.ErrorIs(t, s.c.Err(), ErrAborted)
	s.c.Abort(s.now)
	s.c.Close(s.now)
	_ = s.c.CloseWrite(s.now)
	s.c.Wrote(s.now)
	s.c.Consumed(s.now)
	s.quiet()
	assert.Zero(t, s.h.Deadline())

	s = newScript(t, Config{})
	s.connect()
	s.expect(SYN, 0, 0, 0)
	s.c.Close(s.now)
	s.quiet()
	assert.Equal(t, StateClosed, s.c.State())
}

func TestCloseBeforeEstablished(t *testing.T) {
	s := newScript(t, Config{})
	s.connect()
	s.write(100)
	_ = s.c.CloseWrite(s.now)
	s.expect(SYN, 0, 0, 0)
	s.send(SYN|ACK, 0, 1, 0, fullOptions)
	s.expect(FIN|PSH|ACK, 1, 1, 100)
	assert.Equal(t, StateFinWait1, s.c.State())
}

func TestResetInClosingStatesIsNoError(t *testing.T) {
	s := opened(t, Config{})
	s.send(FIN|ACK, 1, 1, 0)
	s.expect(ACK, 1, 2, 0)
	s.c.Close(s.now)
	s.expect(FIN|ACK, 1, 2, 0)
	s.send(RST, 2, 0, 0)
	assert.Equal(t, StateClosed, s.c.State())
	require.NoError(t, s.c.Err())
}

// RFC 9293 §3.10.7.4: a reset in LAST-ACK or CLOSING ends the connection. It is an error if data is
// unacknowledged or unsent.
func TestResetWithUnacknowledgedDataIsAnError(t *testing.T) {
	s := opened(t, Config{})
	s.send(FIN|ACK, 1, 1, 0)
	s.expect(ACK, 1, 2, 0)
	s.write(5)
	s.c.Close(s.now)
	s.expect(FIN|PSH|ACK, 1, 2, 5)
	require.Equal(t, StateLastAck, s.c.State())
	s.send(RST, 2, 0, 0)
	assert.Equal(t, StateClosed, s.c.State())
	require.ErrorIs(t, s.c.Err(), ErrReset)

	s = opened(t, Config{})
	s.write(5)
	_ = s.c.CloseWrite(s.now)
	s.expect(FIN|PSH|ACK, 1, 1, 5)
	s.send(FIN|ACK, 1, 1, 0) // the peer sent its FIN before ours arrived
	s.expect(ACK, 7, 2, 0)
	require.Equal(t, StateClosing, s.c.State())
	s.send(RST, 2, 0, 0)
	require.ErrorIs(t, s.c.Err(), ErrReset)
}
