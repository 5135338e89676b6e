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

func TestADeferringListenerHoldsNoMoreThanItsBacklog(t *testing.T) {
	s := deferred(t, 1)
	s.tuple.RemotePort++
	s.send(SYN, 0, 0, 0)
	s.quiet()
	_, _, ok := s.h.NextCaught()
	require.True(t, ok)
	_, _, ok = s.h.NextCaught()
	assert.False(t, ok, "the second was left unanswered")
}
