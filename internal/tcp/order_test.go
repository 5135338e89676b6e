package tcp

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// RFC 8985 §6.2 step 3: one acknowledgment may report a range by SACK and the data before it
// cumulatively, because earlier acknowledgments were lost. That is no reordering on the data's
// path.
func TestLostACKsAreNotReordering(t *testing.T) {
	s := flight(t, 10, fullOptions, Config{})
	s.sack(5001, 7001, 8001)
	assert.Zero(t, s.c.Info().ReordSeen)
	s.sack(6001, 7001, 9001)
	assert.Equal(t, uint64(1), s.c.Info().ReordSeen, "this segment was reordered")
}

// RFC 2018 §2: a strategy that does not use SACK does not send SACK-permitted, but sends SACK
// blocks if the peer permits them.
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
