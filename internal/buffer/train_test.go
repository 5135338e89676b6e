package buffer_test

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/buffer"
)

func add(b *buffer.Batch, iface int, hop byte, payload []byte) {
	b.Begin(iface, netip.AddrFrom4([4]byte{10, 0, 0, hop}), 40+len(payload), false)
	b.Add(b.Scratch(40))
	b.Add(payload)
}

func TestBatchJoinsPacketsOfOnePath(t *testing.T) {
	b := buffer.NewBatch()
	full, short := make([]byte, 1360), make([]byte, 100)
	add(b, 0, 1, full)
	add(b, 0, 1, full)
	add(b, 0, 1, short) // a shorter packet ends the train
	add(b, 0, 1, full)
	add(b, 0, 2, full) // another next hop
	add(b, 1, 2, full) // another interface
	trains := b.Trains()
	require.Len(t, trains, 4)
	assert.Equal(t, 3, trains[0].Count)
	assert.Equal(t, 1400*2+140, trains[0].Bytes)
	assert.Len(t, trains[0].Pieces, 6)
	assert.Equal(t, 1, trains[1].Count)
	last := trains[0].Packet(2)
	require.Len(t, last, 2)
	assert.Len(t, last[1], 100)
}

func TestBatchTrainLimits(t *testing.T) {
	b := buffer.NewBatch()
	tiny := make([]byte, 1)
	for range buffer.MaxTrainPackets + 1 {
		add(b, 0, 1, tiny)
	}
	require.Len(t, b.Trains(), 2)
	assert.Equal(t, buffer.MaxTrainPackets, b.Trains()[0].Count)

	b.Reset()
	full := make([]byte, 1360)
	for range 50 {
		add(b, 0, 1, full)
	}
	assert.LessOrEqual(t, b.Trains()[0].Bytes, buffer.MaxTrainBytes)
}

func TestBatchIsFullBeforeItOverflows(t *testing.T) {
	b := buffer.NewBatch()
	allocs := testing.AllocsPerRun(10, func() {
		b.Reset()
		full := b.Scratch(1)[:0]
		for !b.Full() {
			for range buffer.MaxTrainPackets {
				b.Begin(0, netip.AddrFrom4([4]byte{}), 60, false)
				b.Add(b.Scratch(60))
				b.Add(full)
				b.Add(full)
				b.Add(full)
			}
		}
	})
	assert.Zero(t, allocs)
	assert.NotEmpty(t, b.Trains())
}

// packets splits data into packets of size bytes; the last may be shorter.
func packets(data []byte, size int) [][]byte {
	return (&buffer.Frame{Data: data, Size: size}).Packets(nil)
}

func TestBatchAddRun(t *testing.T) {
	b, hop := buffer.NewBatch(), [4]byte{10, 0, 0, 9}
	data := make([]byte, 100*1000+300)
	for i := range data {
		data[i] = byte(i / 1000)
	}
	took, bytes := 0, 0
	for left := packets(data, 1000); len(left) > 0; {
		n, size := b.AddRun(1, netip.AddrFrom4(hop), true, left)
		left = left[n:]
		took, bytes = took+n, bytes+size
	}
	assert.Equal(t, 101, took)
	assert.Equal(t, len(data), bytes)
	require.Len(t, b.Trains(), 2, "as many as a train may have, and the rest")
	assert.Equal(t, buffer.MaxTrainPackets, b.Trains()[0].Count)
	assert.Equal(t, 37, b.Trains()[1].Count)
	assert.Equal(t, 36*1000+300, b.Trains()[1].Bytes)
	assert.Equal(t, data, content(t, b))

	b.Reset()
	b.AddRun(1, netip.AddrFrom4(hop), true, packets(data[:2500], 1000))
	b.AddRun(1, netip.AddrFrom4(hop), true, packets(data[500:2500], 1000))
	require.Len(t, b.Trains(), 2, "a shorter packet ends a train")
	took, bytes = b.AddRun(1, netip.AddrFrom4(hop), true, packets(data[2500:3700], 600))
	assert.Equal(t, 1, took)
	assert.Equal(t, 600, bytes)
	assert.Equal(t, 3, b.Trains()[1].Count, "a smaller one joins as the last")
	assert.Equal(t, slices.Concat(data[:2500], data[500:2500], data[2500:3100]), content(t, b))

	b.Reset()
	n, _ := b.AddRun(1, netip.AddrFrom4(hop), true, packets(data[:2*buffer.MaxTrainBytes/3*2], buffer.MaxTrainBytes/3*2))
	assert.Equal(t, 1, n, "two are too long for a train")
	n, _ = b.AddRun(1, netip.AddrFrom4(hop), true, [][]byte{data[:buffer.MaxTrainBytes+1], data[:1]})
	assert.Equal(t, 1, n, "one is too long, but must leave")
}

// content returns the bytes of all packets. It checks that no piece spans two packets.
func content(t *testing.T, b *buffer.Batch) (all []byte) {
	t.Helper()
	for _, tr := range b.Trains() {
		for i := range tr.Count {
			p := tr.Packet(i)
			require.Len(t, p, 1, "no piece spans two packets")
			all = append(all, p[0]...)
		}
	}
	return all
}

// A train is checked if all its packets are.
func TestBatchTrainIsCheckedIfAllPacketsAre(t *testing.T) {
	b := buffer.NewBatch()
	packet := make([]byte, 100)
	for _, c := range []struct {
		checked []bool
		want    bool
	}{
		{[]bool{true}, true},
		{[]bool{false}, false},
		{[]bool{true, true, true}, true},
		{[]bool{true, false, true}, false},
		{[]bool{false, true, true}, false},
		{[]bool{true, true, false}, false},
	} {
		for runs := range 1 << len(c.checked) {
			b.Reset()
			for i, checked := range c.checked {
				if runs>>i&1 == 1 {
					b.AddRun(0, netip.AddrFrom4([4]byte{1}), checked, [][]byte{packet})
					continue
				}
				b.Begin(0, netip.AddrFrom4([4]byte{1}), len(packet), checked)
				b.Add(packet)
			}
			require.Len(t, b.Trains(), 1)
			assert.Equal(t, c.want, b.Trains()[0].Checked, "%v, of them runs: %b", c.checked, runs)
			assert.Len(t, content(t, b), len(c.checked)*len(packet))
		}
	}
}

// A piece that stays in the batch would keep a ring's chunk in memory.
func TestBatchResetReleasesItsPieces(t *testing.T) {
	b := buffer.NewBatch()
	lent := make([]byte, 1000)
	add(b, 0, 2, lent)
	pieces := b.Trains()[0].Pieces
	b.Reset()
	for _, p := range pieces {
		assert.Nil(t, p)
	}
}
