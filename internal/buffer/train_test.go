package buffer_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/buffer"
)

func add(b *buffer.Batch, iface int, hop byte, payload []byte) {
	b.Begin(iface, [4]byte{10, 0, 0, hop}, 40+len(payload))
	b.Add(b.Scratch(40))
	b.Add(payload)
}

func TestBatchJoinsPacketsOfOneWay(t *testing.T) {
	b := buffer.NewBatch()
	full, short := make([]byte, 1360), make([]byte, 100)
	add(b, 0, 1, full)
	add(b, 0, 1, full)
	add(b, 0, 1, short) // a shorter one ends the train
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
				b.Begin(0, [4]byte{}, 60)
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

func TestBatchTakesRuns(t *testing.T) {
	b := buffer.NewBatch()
	data := make([]byte, 100*1000+300)
	for i := range data {
		data[i] = byte(i / 1000)
	}
	took := 0
	for left := data; len(left) > 0; {
		n := b.AddRun(1, [4]byte{10, 0, 0, 9}, left, 1000)
		left = left[min(len(left), n*1000):]
		took += n
	}
	assert.Equal(t, 101, took)
	require.Len(t, b.Trains(), 2, "as many as a train may have, and the rest")
	assert.Equal(t, buffer.MaxTrainPackets, b.Trains()[0].Count)
	assert.Equal(t, 37, b.Trains()[1].Count)
	assert.Equal(t, 36*1000+300, b.Trains()[1].Bytes)
	var got []byte
	for _, tr := range b.Trains() {
		for i := range tr.Count {
			p := tr.Packet(i)
			require.Len(t, p, 1, "no piece spans two packets")
			got = append(got, p[0]...)
		}
	}
	assert.Equal(t, data, got)

	b.Reset()
	b.AddRun(1, [4]byte{10, 0, 0, 9}, data[:2500], 1000)
	b.AddRun(1, [4]byte{10, 0, 0, 9}, data[:2000], 1000)
	require.Len(t, b.Trains(), 2, "a shorter packet ends a train")
	assert.Equal(t, 1, b.AddRun(1, [4]byte{10, 0, 0, 9}, data[:1200], 600))
	assert.Equal(t, 3, b.Trains()[1].Count, "a smaller one joins as the last")
}

// A train is vouched for when each of its packets is.
func TestBatchVouches(t *testing.T) {
	b := buffer.NewBatch()
	put := func(size int, vouch bool) {
		b.Begin(0, [4]byte{1}, size)
		if vouch {
			b.Vouch()
		}
		b.Add(make([]byte, size))
	}
	for _, c := range []struct {
		vouches []bool
		want    bool
	}{
		{[]bool{true}, true},
		{[]bool{false}, false},
		{[]bool{true, true, true}, true},
		{[]bool{true, false, true}, false},
		{[]bool{false, true, true}, false},
		{[]bool{true, true, false}, false},
	} {
		b.Reset()
		for _, v := range c.vouches {
			put(100, v)
		}
		require.Len(t, b.Trains(), 1)
		assert.Equal(t, c.want, b.Trains()[0].Checked, "%v", c.vouches)
	}
	b.Reset()
	put(100, true)
	b.AddRun(0, [4]byte{1}, make([]byte, 250), 100)
	assert.False(t, b.Trains()[0].Checked, "nobody has looked at the run")
}

// A piece that nobody sends any more would hold a chunk of a ring for as long as the batch lives.
func TestABatchLetsGoOfWhatItWasLent(t *testing.T) {
	b := buffer.NewBatch()
	lent := make([]byte, 1000)
	add(b, 0, 2, lent)
	pieces := b.Trains()[0].Pieces
	b.Reset()
	for _, p := range pieces {
		assert.Nil(t, p)
	}
}
