package tcp

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRFC9293_3_10_1_Open checks the errors of OPEN.
func TestRFC9293_3_10_1_Open(t *testing.T) {
	s := newScript(t, Config{Limits: Limits{MaxConns: 1}})
	_, err := s.h.Connect(s.now, netip.MustParseAddrPort("0.0.0.0:80"), 0)
	require.ErrorIs(t, err, ErrUnspecified)
	_, err = s.h.Connect(s.now, netip.MustParseAddrPort("10.0.0.2:0"), 0)
	require.ErrorIs(t, err, ErrUnspecified)
	require.ErrorIs(t, err, ErrAddress)
	s.connect()
	_, err = s.h.Connect(s.now, netip.AddrPortFrom(addrB, 4001), 0)
	require.ErrorIs(t, err, ErrResources)

	s = newScript(t, Config{})
	s.connect()
	_, err = s.h.Connect(s.now, netip.AddrPortFrom(addrB, 4000), 80)
	require.ErrorIs(t, err, ErrExists)
	require.ErrorIs(t, err, ErrPortInUse)
}

func TestConnectionsAreBounded(t *testing.T) {
	s := newScript(t, Config{Limits: Limits{MaxConns: 1}})
	s.accept(fullOptions)
	s.tuple.RemotePort++
	s.send(SYN, 0, 0, 0, fullOptions)
	s.quiet()
	assert.Equal(t, uint64(1), s.h.Drops()[DropBacklog])
}

// TestRFC9293_3_10_UserCalls checks SEND (§3.10.2), RECEIVE (§3.10.3), CLOSE (§3.10.4), ABORT
// (§3.10.5) and STATUS (§3.10.6) in each state.
func TestRFC9293_3_10_UserCalls(t *testing.T) {
	type step func(s *script)
	buf := make([]byte, 10)
	syn := func(s *script) { s.connect(); s.expect(SYN, 0, 0, 0) }
	closeIt := func(s *script) { require.NoError(t, s.c.CloseWrite(s.now)); s.collect(); s.out = nil }
	fin := func(s *script) {
		s.send(FIN|ACK, 1, uint32(s.c.snd.Una-s.c.snd.iss), 0)
		s.collect()
		s.out = nil
	}
	acked := func(s *script) { s.send(ACK, s.c.rcvNxt(s), 2, 0) }
	open := func(s *script) { s.accept(fullOptions) }
	for _, test := range []struct {
		state             State
		steps             []step
		send, recv, close error
	}{
		{StateSynSent, []step{syn}, nil, nil, nil},
		{StateEstablished, []step{open}, nil, nil, nil},
		{StateFinWait1, []step{open, closeIt}, ErrClosing, nil, ErrClosing},
		{StateFinWait2, []step{open, closeIt, acked}, ErrClosing, nil, ErrClosing},
		{StateCloseWait, []step{open, fin}, nil, ErrClosing, nil},
		{StateClosing, []step{open, closeIt, fin}, ErrClosing, ErrClosing, ErrClosing},
		{StateLastAck, []step{open, fin, closeIt}, ErrClosing, ErrClosing, ErrClosing},
		{StateTimeWait, []step{open, closeIt, acked, fin}, ErrClosing, ErrClosing, ErrClosing},
		{
			StateClosed,
			[]step{open, func(s *script) { s.send(RST, 1, 0, 0) }},
			ErrNotExist, ErrNotExist, ErrNotExist,
		},
	} {
		s := newScript(t, Config{})
		for _, f := range test.steps {
			f(s)
		}
		require.Equal(t, test.state, s.c.State())
		i := s.c.Info() // STATUS
		assert.Equal(t, test.state, i.State)
		assert.Zero(t, i.UserTimeout)
		if test.state == StateClosed {
			require.ErrorIs(t, s.c.Err(), ErrReset, "the error wraps its cause")
		}
		_, err := s.c.Send(s.now, buf)
		require.ErrorIs(t, err, test.send, test.state)
		_, err = s.c.Receive(s.now, buf)
		require.ErrorIs(t, err, test.recv, test.state)
		require.ErrorIs(t, s.c.CloseWrite(s.now), test.close, test.state)
		s.c.Abort(s.now)
		if test.state != StateTimeWait {
			assert.Equal(t, StateClosed, s.c.State())
		}
	}
}

func TestReceiveReadsDataBeforeTheFIN(t *testing.T) {
	s := opened(t, Config{})
	s.send(FIN|ACK, 1, 1, 5)
	b := make([]byte, 3)
	n, err := s.c.Receive(s.now, b)
	require.NoError(t, err)
	assert.Equal(t, 3, n)
	n, err = s.c.Receive(s.now, b)
	require.NoError(t, err)
	assert.Equal(t, 2, n, "RFC 9293 §3.10.3: data already received satisfies the RECEIVE")
	_, err = s.c.Receive(s.now, b)
	require.ErrorIs(t, err, ErrClosing)
	s.c.CloseRead(s.now)
	_, err = s.c.Receive(s.now, b)
	require.ErrorIs(t, err, ErrClosed)
	n, err = s.c.Send(s.now, b)
	require.NoError(t, err)
	assert.Equal(t, 3, n)
	s.collect()
	assert.NotEmpty(t, s.out)
}
