package tcp

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestLostACKsAreNotReordering: an acknowledgment may report a range by SACK and
// what lies before it cumulatively, because those that would have said so in
// order were lost. RFC 8985 §6.2 step 3 is about the path of the data.
func TestLostACKsAreNotReordering(t *testing.T) {
	s := flight(t, 10, fullOptions, Config{})
	s.sack(5001, 7001, 8001)
	assert.Zero(t, s.c.Info().ReorderSeen)
	s.sack(6001, 7001, 9001)
	assert.Equal(t, uint64(1), s.c.Info().ReorderSeen, "but this one was late")
}

// TestRFC2018_2_PermittedIsForOneDirection: a strategy that makes no use of
// selective acknowledgments does not ask for them, but sends them when asked.
func TestRFC2018_2_PermittedIsForOneDirection(t *testing.T) {
	s := newScript(t, using("newreno"))
	s.listen(1)
	s.send(SYN, 0, 0, 0, fullOptions)
	a := s.expect(SYN|ACK, 0, 1, 0)
	assert.False(t, a.options.SACKPermitted)
	s.send(ACK, 1, 1, 0)
	s.send(ACK, 1001, 1, 1000)
	assert.Equal(t, uint8(1), s.expect(ACK, 1, 1, 0).options.SACKCount)
	s = newScript(t, using("gbn"))
	s.connect()
	s.collect()
	require.NotEmpty(t, s.out)
	assert.False(t, s.out[0].options.SACKPermitted)
}
