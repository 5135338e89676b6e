package tcp

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// deferred returns a script with a listener whose owner decides about each SYN, and a SYN that it
// has not answered yet.
func deferred(t *testing.T, backlog int) *script {
	t.Helper()
	s := newScript(t, Config{})
	s.listen(backlog)
	s.l.Defer()
	s.send(SYN, 0, 0, 0, fullOptions)
	s.send(SYN, 0, 0, 0, fullOptions) // a retransmission
	s.quiet()
	return s
}

func TestDeferredSYNWaits(t *testing.T) {
	s := deferred(t, 1)
	tuple, l, ok := s.h.NextCaught()
	require.True(t, ok)
	assert.Same(t, s.l, l)
	assert.Equal(t, s.tuple, tuple)
	_, _, ok = s.h.NextCaught()
	assert.False(t, ok, "once")
	c, ok := s.h.Admit(s.now, tuple)
	require.True(t, ok)
	a := s.expect(SYN|ACK, 0, 1, 0)
	assert.True(t, a.options.SACKPermitted)
	s.send(ACK, 1, 1, 0)
	assert.Equal(t, StateEstablished, c.State())
	_, ok = s.l.Accept()
	assert.False(t, ok, "the connection belongs to the owner that admitted it")
}

// RFC 9293 §3.10.7.1: a rejected SYN gets the reset of a closed port.
func TestDeferredSYNIsRejected(t *testing.T) {
	s := deferred(t, 1)
	tuple, _, _ := s.h.NextCaught()
	s.h.Reject(tuple)
	s.iss = 0 // a reset without a connection has sequence number zero
	s.expect(RST|ACK, 0, 1, 0)
	s.quiet()
	assert.False(t, s.h.Knows(tuple))
}

// TestCatchOffKeepsDeferredSYNs checks that the end of catching rejects caught SYNs, but not SYNs
// that wait for a listener.
func TestCatchOffKeepsDeferredSYNs(t *testing.T) {
	s := deferred(t, 1)
	s.h.Catch(5)
	s.h.Catch(0)
	s.quiet()
	tuple, l, ok := s.h.NextCaught()
	require.True(t, ok)
	assert.Same(t, s.l, l)
	s.h.Ignore(tuple)
	s.quiet()
	s.send(SYN, 0, 0, 0) // a retransmission
	_, _, ok = s.h.NextCaught()
	assert.True(t, ok)
}

// full returns a script with a deferring listener whose backlog of one is full. The next client is
// s.tuple.
func full(t *testing.T, cfg Config) *script {
	t.Helper()
	s := newScript(t, cfg)
	s.listen(1)
	s.l.Defer()
	s.send(SYN, 0, 0, 0)
	_, _, ok := s.h.NextCaught()
	require.True(t, ok)
	s.tuple.RemotePort++
	return s
}

// fullWithCookie returns the script of full after the next client has returned its cookie.
func fullWithCookie(t *testing.T) *script {
	t.Helper()
	s := full(t, Config{})
	s.send(SYN, 0, 0, 0, fullOptions)
	_, _, ok := s.h.NextCaught()
	require.False(t, ok, "the owner decides only after the client has returned the cookie")
	s.collect()
	require.Len(t, s.out, 1)
	g := s.out[0]
	require.Equal(t, SYN|ACK, g.flags)
	s.out, s.iss = nil, s.iss+g.seq
	s.send(ACK, 1, 1, 0, stamp(5000, g.options.TSVal))
	tuple, l, ok := s.h.NextCaught()
	require.True(t, ok)
	assert.Same(t, s.l, l)
	assert.Equal(t, s.tuple, tuple)
	return s
}

// RFC 4987 §3.6: a deferring listener whose backlog is full answers SYNs with cookies.
func TestFullDeferringListenerSendsCookies(t *testing.T) {
	s := fullWithCookie(t)
	c, ok := s.h.Admit(s.now, s.tuple)
	require.True(t, ok)
	assert.Equal(t, StateEstablished, c.State())
	got, _, e, ok := s.h.NextEvent()
	require.True(t, ok)
	assert.Same(t, c, got)
	assert.NotZero(t, e&Established)
	s.quiet()
}

// The owner decides only about the first SYNs of a flood. Otherwise it would connect to a server
// for each of them.
func TestOwnerDecidesAboutFewSYNsOfAFlood(t *testing.T) {
	s := newScript(t, Config{})
	s.listen(1024)
	s.l.Defer()
	seen := 0
	for range 1000 {
		s.tuple.RemotePort++
		s.send(SYN, 0, 0, 0, fullOptions)
		for _, _, ok := s.h.NextCaught(); ok; _, _, ok = s.h.NextCaught() {
			seen++
		}
	}
	assert.Equal(t, maxEager, seen)
	assert.EqualValues(t, 1000-maxEager, s.h.counters.CookiesSent)
}

// A client with a cookie has already received a SYN-ACK, so the host refuses its connection with a
// reset.
func TestCookieConnectionIsRejectedWithAReset(t *testing.T) {
	for name, decide := range map[string]func(*Host, Tuple){
		"rejected": (*Host).Reject, "ignored": (*Host).Ignore,
	} {
		t.Run(name, func(t *testing.T) {
			s := fullWithCookie(t)
			decide(s.h, s.tuple)
			s.expect(RST|ACK, 1, 1, 0)
			assert.False(t, s.h.Knows(s.tuple))
			_, ok := s.h.Admit(s.now, s.tuple)
			assert.False(t, ok)
		})
	}
}

// Cookies open no more connections than may wait for a decision.
func TestCookiesOfADeferringListenerAreBounded(t *testing.T) {
	s := fullWithCookie(t)
	s.tuple.RemotePort++
	s.send(SYN, 0, 0, 0)
	s.quiet() // further SYNs get no answer while one waits
	s.tuple.RemotePort--
	s.h.Reject(s.tuple)
	s.expect(RST|ACK, 1, 1, 0)
	s.tuple.RemotePort++
	s.send(SYN, 0, 0, 0)
	s.collect()
	require.Len(t, s.out, 1)
	assert.Equal(t, SYN|ACK, s.out[0].flags)
}

// An admitted connection leaves the backlog when the client has answered or its handshake has timed
// out.
func TestAdmittedConnectionCountsUntilItsPeerAnswers(t *testing.T) {
	s := deferred(t, 1)
	first := s.tuple
	s.h.NextCaught()
	_, ok := s.h.Admit(s.now, first)
	require.True(t, ok)
	s.expect(SYN|ACK, 0, 1, 0)
	assert.Equal(t, 1, s.h.catch.unanswered())
	s.send(ACK, 1, 1, 0)
	assert.Zero(t, s.h.catch.unanswered())

	s.tuple.RemotePort++
	s.send(SYN, 0, 0, 0)
	s.h.NextCaught()
	_, ok = s.h.Admit(s.now, s.tuple)
	require.True(t, ok)
	for s.h.catch.unanswered() > 0 {
		s.now = s.h.Deadline()
		s.h.Advance(s.now)
		s.collect()
	}
	assert.False(t, s.h.Knows(s.tuple))
}

// A listener that closes resets the connections that its cookies have opened.
func TestClosingADeferringListenerResetsItsConnections(t *testing.T) {
	s := fullWithCookie(t)
	s.l.Close(s.now)
	s.expect(RST|ACK, 1, 1, 0)
}

// Without cookies a SYN beyond the limit gets no answer.
func TestDeferredSYNsAreBounded(t *testing.T) {
	s := full(t, Config{Knobs: Knobs{SynCookies: CookiesOff}})
	s.send(SYN, 0, 0, 0)
	s.quiet()
	_, _, ok := s.h.NextCaught()
	assert.False(t, ok)
}

// RFC 6191 §2: a new SYN also ends the TIME-WAIT of a connection whose SYN was caught and admitted.
func TestCaughtSYNEndsTimeWait(t *testing.T) {
	s := newScript(t, Config{})
	s.h.Catch(5)
	s.send(SYN, 0, 0, 0)
	tuple, _, ok := s.h.NextCaught()
	require.True(t, ok)
	c, ok := s.h.Admit(s.now, tuple)
	require.True(t, ok)
	s.expect(SYN|ACK, 0, 1, 0)
	s.send(ACK, 1, 1, 0)
	c.Close(s.now)
	s.expect(FIN|ACK, 1, 1, 0)
	s.send(FIN|ACK, 1, 2, 0)
	s.expect(ACK, 2, 2, 0)
	assert.Equal(t, 1, s.h.TimeWaits())
	s.send(SYN, 1000, 0, 0)
	_, _, ok = s.h.NextCaught()
	assert.True(t, ok)
}
