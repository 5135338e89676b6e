package link

import (
	"encoding/binary"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/buffer"
)

// Packets cross two adapted links in order and without loss, and every waiting reader wakes up.
func TestAdaptedLinksCarryEverything(t *testing.T) {
	x, y := Pipe(0)
	a, b := Adapt(x), Adapt(y)
	ready := make(chan struct{}, 1)
	b.Feed(func() { token(ready) })
	vacant := make(chan struct{}, 1)
	a.Feed(func() { token(vacant) })
	const packets = 50_000
	var wg sync.WaitGroup
	wg.Go(func() {
		for k := 0; k < packets; {
			n := min(44, packets-k, a.Room())
			if n == 0 {
				<-vacant
				continue
			}
			tr := buffer.Train{Size: 1400, Count: n, Bytes: n * 1400}
			for range n {
				p := make([]byte, 1400)
				binary.BigEndian.PutUint32(p, uint32(k))
				tr.Pieces = append(tr.Pieces, p)
				k++
			}
			took, err := a.WriteBatch([]buffer.Train{tr})
			assert.NoError(t, err)
			assert.Equal(t, 1, took)
		}
	})
	frames := make([]buffer.Frame, 16)
	for k := 0; k < packets; {
		n, err := b.ReadBatch(frames)
		if err != nil {
			<-ready
			continue
		}
		for _, f := range frames[:n] {
			for d := f.Data; len(d) > 0; d = d[min(f.Size, len(d)):] {
				require.EqualValues(t, k, binary.BigEndian.Uint32(d))
				k++
			}
		}
	}
	wg.Wait()
	require.NoError(t, a.Close())
	require.NoError(t, b.Close())
}

// The device signals its reader again for packets that arrived meanwhile, even though it signaled
// them before: after a short batch the reader assumes that nothing is left.
func TestReaderIsSignaledAfterAShortBatch(t *testing.T) {
	a, b := Pipe(0)
	told := 0
	b.Feed(func() { told++ })
	put := func(packets int) {
		for range packets {
			_, err := a.Write([]byte{1})
			require.NoError(t, err)
		}
	}
	put(20)
	frames := make([]buffer.Frame, 16)
	n, err := b.ReadBatch(frames)
	require.NoError(t, err)
	assert.Equal(t, 16, n)
	put(1)
	assert.Equal(t, 2, told)
	n, err = b.ReadBatch(frames)
	require.NoError(t, err)
	assert.Equal(t, 4, n)
	assert.Equal(t, 3, told)
	n, err = b.ReadBatch(frames)
	require.NoError(t, err)
	assert.Equal(t, 1, n)
	assert.Equal(t, 3, told)
}

// The longest IPv6 packet has 65,575 bytes (RFC 8200 §3). Pipes carry it, also between streams.
func TestLongestPacket(t *testing.T) {
	x, y := Pipe(0)
	a := Adapt(x)
	defer a.Close()
	longest := make([]byte, 65575)
	longest[65574] = 1
	for _, p := range [][]byte{longest, longest[:1]} {
		n, err := y.Write(p)
		require.NoError(t, err)
		require.Len(t, p, n)
		assert.Equal(t, wrap(0, [][]byte{p}), receive(t, a, 1))
		write(t, a, buffer.Train{Pieces: [][]byte{p}, Size: len(p), Count: 1, Bytes: len(p)})
		got := make([]byte, 1<<17)
		n, err = y.Read(got)
		require.NoError(t, err)
		assert.Equal(t, p, got[:n])
	}
	_, err := y.Write(make([]byte, 65576))
	require.ErrorIs(t, err, errPacketSize)
}
