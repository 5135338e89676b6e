package tcp

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// deferred is a listener whose owner decides, and a SYN to it that is not answered yet.
func deferred(t *testing.T, backlog int) *script {
	t.Helper()
	s := newScript(t, Config{})
	s.listen(backlog)
	s.l.Defer()
	s.send(SYN, 0, 0, 0, fullOptions)
	s.send(SYN, 0, 0, 0, fullOptions) // it is repeated meanwhile
	s.quiet()
	return s
}

func TestADeferringListenersSYNWaits(t *testing.T) {
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
	assert.False(t, ok, "it is whose who admitted it")
}

// RFC 9293 §3.10.7.1: as if nobody listened.
func TestADeferringListenersSYNIsRefused(t *testing.T) {
	s := deferred(t, 1)
	tuple, _, _ := s.h.NextCaught()
	s.h.Reject(tuple)
	s.iss = 0 // a reset of no connection has sequence number zero
	s.expect(RST|ACK, 0, 1, 0)
	s.quiet()
	assert.False(t, s.h.Knows(tuple))
}

// What nobody asked to be caught any more is refused; a listener's waits on.
func TestTheEndOfCatchingLeavesListeners(t *testing.T) {
	s := deferred(t, 1)
	s.h.Catch(5)
	s.h.Catch(0)
	s.quiet()
	tuple, l, ok := s.h.NextCaught()
	require.True(t, ok)
	assert.Same(t, s.l, l)
	s.h.Ignore(tuple)
	s.quiet()
	s.send(SYN, 0, 0, 0) // tried again
	_, _, ok = s.h.NextCaught()
	assert.True(t, ok)
}

// full is a deferring listener whose one place is taken, and whose next client is s.tuple.
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

// cookied has the next client of a full listener bring back its cookie.
func cookied(t *testing.T) *script {
	t.Helper()
	s := full(t, Config{})
	s.send(SYN, 0, 0, 0, fullOptions)
	_, _, ok := s.h.NextCaught()
	require.False(t, ok, "the owner is asked once the client has proven itself")
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

// RFC 4987 §3.6: while its places are taken, a listener that defers answers SYNs by cookies.
func TestADeferringListenerThatIsFullSendsCookies(t *testing.T) {
	s := cookied(t)
	c, ok := s.h.Admit(s.now, s.tuple)
	require.True(t, ok)
	assert.Equal(t, StateEstablished, c.State())
	got, _, e, ok := s.h.NextEvent()
	require.True(t, ok)
	assert.Same(t, c, got)
	assert.NotZero(t, e&Established)
	s.quiet()
}

// The client of a cookie has been answered, so that it is told of a refusal by a reset.
func TestACookiesConnectionIsRefusedByAReset(t *testing.T) {
	for name, decide := range map[string]func(*Host, Tuple){
		"rejected": (*Host).Reject, "ignored": (*Host).Ignore,
	} {
		t.Run(name, func(t *testing.T) {
			s := cookied(t)
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
	s := cookied(t)
	s.tuple.RemotePort++
	s.send(SYN, 0, 0, 0)
	s.quiet() // SYNs are left unanswered while one waits
	s.tuple.RemotePort--
	s.h.Reject(s.tuple)
	s.expect(RST|ACK, 1, 1, 0)
	s.tuple.RemotePort++
	s.send(SYN, 0, 0, 0)
	s.collect()
	require.Len(t, s.out, 1)
	assert.Equal(t, SYN|ACK, s.out[0].flags)
}

// The places are free again when an admitted client has answered, or has not for long enough.
func TestAnAdmittedConnectionHoldsItsPlaceUntilItIsAnswered(t *testing.T) {
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

// A closed listener resets what its cookies have opened.
func TestClosingADeferringListenerResetsItsConnections(t *testing.T) {
	s := cookied(t)
	s.l.Close(s.now)
	s.expect(RST|ACK, 1, 1, 0)
}

// Without cookies a SYN beyond the limit is left unanswered.
func TestADeferringListenerHoldsNoMoreThanItsBacklog(t *testing.T) {
	s := full(t, Config{Knobs: Knobs{SynCookies: CookiesOff}})
	s.send(SYN, 0, 0, 0)
	s.quiet()
	_, _, ok := s.h.NextCaught()
	assert.False(t, ok)
}
