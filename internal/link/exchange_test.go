package link

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/buffer"
)

// exchangePair opens two devices of an Exchange, as pair does.
func exchangePair(t *testing.T, mode Offload) (a, b *UDP) {
	t.Helper()
	var x Exchange
	a = open(t, Config{Offload: mode, Exchange: &x, Interfaces: []Interface{{Name: "if3", ID: 3}}})
	b = open(t, Config{Offload: mode, Exchange: &x, Interfaces: []Interface{{Name: "if5", ID: 5}}})
	addNeighbor(a, 3, addrB, b.Info().Local)
	addNeighbor(b, 5, addrA, a.Info().Local)
	return a, b
}

// Devices of an Exchange send to each other without the kernel, and to all others through it, also
// in one batch. The counters are the same.
func TestExchange(t *testing.T) {
	eachMode(t, func(t *testing.T, mode Offload) {
		a, b := exchangePair(t, mode)
		c := openOne(t, mode, 7)
		addNeighbor(a, 3, addrC, c.Info().Local)
		addNeighbor(c, 7, addrA, a.Info().Local)
		r := rand.New(rand.NewPCG(1, 2))
		var batch []buffer.Train
		want := map[[4]byte][][]byte{}
		for i := range 20 {
			hop := [][4]byte{addrB, addrB, addrC}[i%3]
			batch = append(batch, train(r, 3, hop, equal(1+i, 700, 0)...))
			want[hop] = append(want[hop], packetsOf(batch[i])...)
		}
		told := 0
		b.Feed(func() { told++ })
		write(t, a, batch...)
		assert.Equal(t, 1, told, "b is signaled for the first packet")
		assert.Equal(t, wrap(5, want[addrB]), receive(t, b, len(want[addrB])))
		assert.Equal(t, wrap(7, want[addrC]), receive(t, c, len(want[addrC])))
		back := train(r, 5, addrA, 60)
		write(t, b, back)
		assert.Equal(t, wrap(3, packetsOf(back)), receive(t, a, 1))

		assert.EqualValues(t, 210, a.Counters(3).TxPackets)
		assert.EqualValues(t, 210*700, a.Counters(3).TxBytes)
		assert.EqualValues(t, len(want[addrB]), b.Counters(5).RxPackets)
		assert.EqualValues(t, len(want[addrB]), b.Neighbors(5)[0].Heard)
		assert.Zero(t, b.Socket().Writes)
		assert.NotZero(t, a.Socket().Writes, "to c")
	})
}

// A closed device refuses packets, as the UDP port of an ended process does.
func TestExchangeWithoutThePeer(t *testing.T) {
	a, b := exchangePair(t, OffloadAuto)
	require.NoError(t, b.Close())
	eventually(t, func() bool {
		write(t, a, train(rand.New(rand.NewPCG(1, 1)), 3, addrB, 100))
		_, _ = a.ReadBatch(make([]buffer.Frame, 4))
		a.ICMPErrors()
		return a.Neighbors(3)[0].Refused > 0 || a.Socket().Absent > 0
	}, "the kernel refuses packets to a closed port")
}

// A device has room while its neighbors in the Exchange have room. The Exchange signals it when
// there is room again.
func TestExchangeIsFull(t *testing.T) {
	a, b := exchangePair(t, OffloadAuto)
	told := 0
	a.Feed(func() { told++ })
	r, empty := rand.New(rand.NewPCG(1, 1)), a.Room()
	for left := empty; left > 0; left = a.Room() {
		require.LessOrEqual(t, left, inboxPackets)
		write(t, a, train(r, 3, addrB, equal(min(left, 60), 100, 0)...))
	}
	assert.Zero(t, told)
	assert.Len(t, receive(t, b, inboxPackets), inboxPackets)
	assert.Equal(t, 1, told)
	assert.Equal(t, empty, a.Room())
}

// A signaled device always finds the packets, even if it reads from the kernel first.
func TestExchangeSignals(t *testing.T) {
	a, b := exchangePair(t, OffloadAuto)
	r := rand.New(rand.NewPCG(1, 1))
	for range 2 * kernelEvery {
		write(t, a, train(r, 3, addrB, 100))
		n, err := b.ReadBatch(make([]buffer.Frame, 4))
		require.NoError(t, err)
		require.Equal(t, 1, n)
	}
}

// The receiver does not verify a checksum again that the sender has verified or computed.
func TestExchangeKeepsChecked(t *testing.T) {
	a, b := exchangePair(t, OffloadAuto)
	frames := make([]buffer.Frame, 1)
	for _, checked := range []bool{true, false} {
		sent := train(rand.New(rand.NewPCG(1, 1)), 3, addrB, 100)
		sent.Checked = checked
		write(t, a, sent)
		n, err := b.ReadBatch(frames)
		require.NoError(t, err)
		require.Equal(t, 1, n)
		assert.Equal(t, checked, frames[0].Checked)
	}
}
