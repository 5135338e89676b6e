package link

import (
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tidepool-net/tidepool/internal/buffer"
)

// TestFallsBackFromGSO turns the socket's checksums off, so that the kernel refuses to segment
// trains. The frames must arrive, and the device must stop using segmentation.
func TestFallsBackFromGSO(t *testing.T) {
	a, b := pair(t, OffloadAuto)
	require.Equal(t, OffloadGSO, a.Info().Offload)
	require.NoError(t, unix.SetsockoptInt(a.FD(), unix.SOL_SOCKET, unix.SO_NO_CHECK, 1))
	r := rand.New(rand.NewPCG(15, 1))
	batch := []buffer.Train{
		train(r, 3, addrB, 700),
		train(r, 3, addrB, equal(40, 1400, 5)...),
		train(r, 3, addrB, equal(64, 52, 0)...),
	}
	write(t, a, batch...)
	assert.Equal(t, OffloadMMsg, a.Info().Offload)
	want := packetsOf(batch...)
	assert.Equal(t, wrap(5, want), receive(t, b, len(want)))
	assert.EqualValues(t, len(want), a.Counters(3).TxPackets)
	assert.Zero(t, a.Counters(3).Drops)
	write(t, a, batch...)
	assert.Equal(t, wrap(5, want), receive(t, b, len(want)))
}

// TestTrainsArriveAsFrames checks that a train arrives as one frame, with the size of its packets.
func TestTrainsArriveAsFrames(t *testing.T) {
	a, b := pair(t, OffloadGSO)
	r := rand.New(rand.NewPCG(16, 1))
	write(t, a, train(r, 3, addrB, equal(40, 1400, 700)...), train(r, 3, addrB, equal(2, 40, 0)...),
		train(r, 3, addrB, 999))
	frames := make([]buffer.Frame, 8)
	n, err := b.ReadBatch(frames)
	require.NoError(t, err)
	require.Equal(t, 3, n)
	for i, want := range []struct{ size, bytes int }{{1400, 40*1400 + 700}, {40, 80}, {999, 999}} {
		assert.Equal(t, want.size, frames[i].Size)
		assert.Len(t, frames[i].Data, want.bytes)
		assert.Equal(t, 5, frames[i].Iface)
	}
	assert.EqualValues(t, 1, a.Socket().Writes, "one call")
	assert.EqualValues(t, 1, b.Socket().Reads, "one call")
}

// TestKernelQueueOverflow fills a small receive queue, and checks that its drops are counted.
func TestKernelQueueOverflow(t *testing.T) {
	for _, mode := range []Offload{OffloadMMsg, OffloadGSO} {
		t.Run(mode.String(), func(t *testing.T) {
			a := openOne(t, mode, 0)
			b := open(t, Config{
				Offload: mode, RecvBuffer: 1 << 16, Interfaces: []Interface{{Name: "if0"}},
			})
			addNeighbor(a, 0, addrB, b.Info().Local)
			addNeighbor(b, 0, addrA, a.Info().Local)
			r := rand.New(rand.NewPCG(17, 1))
			const packets = 40 * 20
			for range 20 {
				write(t, a, train(r, 0, addrB, equal(40, 1400, 0)...))
			}
			frames := make([]buffer.Frame, 64)
			for {
				if _, err := b.ReadBatch(frames); err != nil {
					break
				}
			}
			c := b.Counters(0)
			assert.Positive(t, c.RxPackets)
			assert.Positive(t, c.Drops[DropKernel])
			if mode == OffloadMMsg {
				assert.EqualValues(t, packets, c.RxPackets+c.Drops[DropKernel])
				assert.GreaterOrEqual(t, int(c.RxPackets), b.Info().RecvPackets)
			}
		})
	}
}

// TestSmallSendBuffer checks that trains arrive even with the smallest send queue.
func TestSmallSendBuffer(t *testing.T) {
	a := open(t, Config{
		SendBuffer: 1, Interfaces: []Interface{{Name: "if0"}}, Offload: OffloadGSO,
	})
	b := openOne(t, OffloadGSO, 5)
	addNeighbor(a, 0, addrB, b.Info().Local)
	addNeighbor(b, 5, addrA, a.Info().Local)
	tr := train(rand.New(rand.NewPCG(18, 1)), 0, addrB, equal(40, 1400, 0)...)
	write(t, a, tr, tr, tr)
	assert.Equal(t, wrap(5, packetsOf(tr, tr, tr)), receive(t, b, 120))
	assert.Positive(t, a.Info().SendBuffer)
}

// TestAdjacentPiecesAreJoined checks that the kernel gets pieces in adjacent memory, such as
// packets that a router forwards, as one piece.
func TestAdjacentPiecesAreJoined(t *testing.T) {
	var tx transmitter
	tx.init()
	mem := make([]byte, 5*100)
	for i := range mem {
		mem[i] = byte(i)
	}
	pieces := [][]byte{mem[:100], mem[100:200], mem[300:400], {}, mem[400:500], mem[:100]}
	tx.addWhole(nil, &buffer.Train{Pieces: pieces, Size: 100, Count: 5, Bytes: 500})
	require.Len(t, tx.iovs, 3)
	require.Equal(t, 3, tx.msgs[0].iovs)
	var got []byte
	for _, v := range tx.iovs {
		got = append(got, unsafe.Slice(v.Base, v.Len)...)
	}
	assert.Equal(t, slices.Concat(pieces...), got)
}
