package operator

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/control"
)

// A program's socket keeps its number as long as it exists. The number is not used again.
func TestNumbersOfProgramSockets(t *testing.T) {
	t.Parallel()
	var p programs
	list, err := p.sockets()
	require.NoError(t, err)
	assert.Empty(t, list)
	var cookies []uint64
	p.enter(func() (found []programSocket, err error) {
		for _, c := range cookies {
			found = append(found, programSocket{cookie: c, Socket: control.Socket{RecvQ: int(c)}})
		}
		return found, nil
	})
	numbers := func(of ...uint64) (sids []int) {
		cookies = of
		list, err := p.sockets()
		require.NoError(t, err)
		for _, s := range list {
			assert.True(t, s.Program)
			sids = append(sids, s.SID, s.RecvQ)
		}
		return sids
	}
	assert.Equal(t, []int{1_000_000, 7, 1_000_001, 9}, numbers(7, 9))
	assert.Equal(t, []int{1_000_001, 9, 1_000_002, 8}, numbers(8, 9))
	assert.Equal(t, []int{1_000_001, 9, 1_000_003, 7}, numbers(7, 9), "7 was closed in between")
	_, err = p.socket(1_000_002)
	assert.ErrorIs(t, err, control.ErrNoSuchSocket)
	assert.ErrorIs(t, notOurs(1_000_001), control.ErrUnsupported)
	assert.ErrorIs(t, notOurs(3), control.ErrNoSuchSocket)
	p.enter(func() ([]programSocket, error) { return nil, errors.New("closed") })
	_, err = p.sockets()
	assert.EqualError(t, err, "sockets of programs: closed")
}
