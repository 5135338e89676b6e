//go:build linux

package datagram

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func joined(t *testing.T) (from, to *Socket) {
	t.Helper()
	to, err := Open(netip.AddrPort{}, netip.AddrPort{}, ShortQueue)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, to.Close()) })
	from, err = Open(netip.AddrPort{}, to.Addr(), ShortQueue)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, from.Close()) })
	return from, to
}

// gather receives want bytes.
func gather(t *testing.T, b *Batch, want int) (data []byte, sizes []int) {
	t.Helper()
	for len(data) < want {
		list, err := b.Receive()
		require.NoError(t, err)
		for _, r := range list {
			data = append(data, r.Data...)
			sizes = append(sizes, r.Size)
		}
	}
	return data, sizes
}

func TestTrainArrivesIntact(t *testing.T) {
	for _, coalesced := range []bool{false, true} {
		from, to := joined(t)
		if coalesced {
			require.NoError(t, to.Coalesce())
		}
		head, text := bytes.Repeat([]byte("head"), 250), bytes.Repeat([]byte("text"), 650)
		pieces := []unix.Iovec{Piece(head), Piece(text)} // 3600 bytes: 1400, 1400, 800
		require.NoError(t, from.Send(pieces, 3600, 1400))
		data, sizes := gather(t, to.NewBatch(4), 3600)
		assert.Equal(t, append(append([]byte(nil), head...), text...), data)
		if coalesced {
			assert.Equal(t, []int{1400}, sizes, "one run")
		} else {
			assert.Equal(t, []int{1400, 1400, 800}, sizes)
		}
	}
}

func TestManyDatagramsInOneCall(t *testing.T) {
	from, to := joined(t)
	n, err := from.NewBatch(8).SendAll(100)
	require.NoError(t, err)
	assert.Equal(t, 8, n)
	data, sizes := gather(t, to.NewBatch(8), 800)
	assert.Len(t, data, 800)
	assert.Len(t, sizes, 8)
}

func TestSendErrors(t *testing.T) {
	from, _ := joined(t)
	big := make([]byte, 70_000)
	require.ErrorIs(t, from.Send([]unix.Iovec{Piece(big)}, len(big), len(big)), unix.EMSGSIZE)
}
