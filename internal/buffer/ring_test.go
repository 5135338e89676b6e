package buffer_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/buffer"
)

// pattern returns the byte at offset i of the test stream.
func pattern(i uint64) byte { return byte(i*31 + i>>8*7 + i>>16) }

func fill(p []byte, off uint64) {
	for i := range p {
		p[i] = pattern(off + uint64(i))
	}
}

func requirePattern(t *testing.T, p []byte, off uint64) {
	t.Helper()
	want := make([]byte, len(p))
	fill(want, off)
	require.True(t, bytes.Equal(want, p), "bytes at offset %d differ", off)
}

func TestRingRandomWritesAndReads(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	r := buffer.NewRing(300_000)
	p := make([]byte, 200_000)
	var in, out uint64
	for range 600 {
		n := rng.IntN(len(p))
		fill(p[:n], in)
		in += uint64(r.Write(p[:n]))
		require.LessOrEqual(t, r.Len(), r.Limit())
		n = r.Read(p[:rng.IntN(len(p))])
		requirePattern(t, p[:n], out)
		out += uint64(n)
		require.Equal(t, int(in-out), r.Len())
		if rng.IntN(50) == 0 {
			r.TrimConsumer()
			r.TrimProducer()
		}
	}
	require.Greater(t, out, uint64(16<<20), "the run crossed many chunks")
}

func TestRingPlacesOutOfOrderBytes(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 1))
	r := buffer.NewRing(1 << 20)
	p := make([]byte, 1000)
	for round := range 12 {
		tail := r.Tail()
		const pieces = 700
		for _, i := range rng.Perm(pieces) {
			off := tail + uint64(i*len(p))
			fill(p, off)
			r.WriteAt(off, p)
		}
		require.Zero(t, r.Len(), "nothing is published before Commit")
		r.Commit(tail + pieces*uint64(len(p)))
		var pieceList [][]byte
		pieceList = r.Slices(pieceList, tail+500, 600_000)
		off := tail + 500
		for _, s := range pieceList {
			requirePattern(t, s, off)
			off += uint64(len(s))
		}
		require.Equal(t, tail+600_500, off)
		if round%2 == 0 {
			r.Release(tail + pieces*uint64(len(p)))
			continue
		}
		got := make([]byte, pieces*len(p))
		require.Equal(t, len(got), r.Read(got))
		requirePattern(t, got, tail)
	}
}

func TestRingBetweenTwoGoroutines(t *testing.T) {
	r := buffer.NewRing(256 << 10)
	const total = 8 << 20
	go func() {
		p := make([]byte, 90_001)
		for at := uint64(0); at < total; {
			n := min(len(p), int(total-at))
			fill(p[:n], at)
			at += uint64(r.Write(p[:n]))
		}
	}()
	p := make([]byte, 70_003)
	for at := uint64(0); at < total; {
		n := r.Read(p)
		requirePattern(t, p[:n], at)
		at += uint64(n)
		if n == 0 {
			r.TrimConsumer()
		}
	}
	assert.Zero(t, r.Len())
}

func TestRingProducerTrimsWhileConsumerReads(t *testing.T) {
	r := buffer.NewRing(128 << 10)
	const total = 4 << 20
	done := make(chan struct{})
	go func() {
		defer close(done)
		p := make([]byte, 10_000)
		for at := uint64(0); at < total; {
			n := r.Read(p)
			if want := pattern(at); n > 0 && p[0] != want {
				t.Errorf("offset %d: got %d, want %d", at, p[0], want)
				return
			}
			at += uint64(n)
		}
	}()
	p := make([]byte, 7000)
	for at := uint64(0); at < total; {
		r.TrimProducer()
		n := min(len(p), int(total-at))
		fill(p[:n], at)
		at += uint64(r.Write(p[:n]))
	}
	<-done
}

func TestRingLimitOnlyGrows(t *testing.T) {
	r := buffer.NewRing(1000)
	r.SetLimit(500)
	assert.Equal(t, 1000, r.Limit())
	assert.Equal(t, 1000, r.Write(make([]byte, 2000)))
	assert.Zero(t, r.Free())
	r.SetLimit(1500)
	assert.Equal(t, 500, r.Write(make([]byte, 2000)))
}

func TestRingIsAllocationFreeOnceWarm(t *testing.T) {
	r := buffer.NewRing(1 << 20)
	p := make([]byte, 60_000)
	pieces := make([][]byte, 0, 8)
	for range 100 {
		r.Write(p)
		r.Read(p)
	}
	allocs := testing.AllocsPerRun(1000, func() {
		r.Write(p)
		pieces = r.Slices(pieces[:0], r.Head(), r.Len())
		r.Release(r.Tail())
	})
	assert.Zero(t, allocs)
}

// A ring that has grown reuses the chunk that was read last, which is still in the processor's
// cache.
func TestRingReusesTheChunkReadLast(t *testing.T) {
	const chunk = 64 << 10
	r := buffer.NewRing(1 << 20)
	r.Write(make([]byte, 1<<20))
	r.Release(r.Tail())
	place := func() *byte { return &r.Slices(nil, r.Tail()-1, 1)[0][0] }
	used := map[*byte]bool{}
	for range 16 {
		r.Write(make([]byte, chunk))
		used[place()] = true
		r.Release(r.Tail())
	}
	assert.LessOrEqual(t, len(used), 3, "of 16 chunks")
}

func TestRingPanicsOnMisuse(t *testing.T) {
	r := buffer.NewRing(1000)
	r.Write(make([]byte, 10))
	assert.Panics(t, func() { r.WriteAt(5, []byte{1}) }, "before the tail")
	assert.Panics(t, func() { r.WriteAt(1000, []byte{1}) }, "beyond the limit")
	assert.Panics(t, func() { r.Commit(9) })
	assert.Panics(t, func() { r.Release(11) })
	assert.Panics(t, func() { r.Slices(nil, 5, 6) })
}

func BenchmarkRing(b *testing.B) {
	r := buffer.NewRing(1 << 20)
	p := make([]byte, 32<<10)
	b.SetBytes(int64(len(p)))
	for b.Loop() {
		r.Write(p)
		r.Read(p)
	}
}

func TestRingRepeat(t *testing.T) {
	text := make([]byte, 997)
	fill(text, 0)
	r := buffer.NewRing(5000)
	rng := rand.New(rand.NewPCG(3, 1))
	want := bytes.Repeat(text, 200)
	in, out := 0, 0
	for out < 150_000 {
		in += r.Repeat(text, rng.IntN(6000))
		require.LessOrEqual(t, r.Len(), r.Limit())
		require.Equal(t, in-out, r.Len())
		from := out + rng.IntN(r.Len()+1)
		n := rng.IntN(in - from + 1)
		got := bytes.Join(r.Slices(nil, uint64(from), n), nil)
		require.True(t, bytes.Equal(want[from:from+n], got), "%d bytes at offset %d", n, from)
		if rng.IntN(2) == 0 {
			out += rng.IntN(r.Len() + 1)
			r.Release(uint64(out))
			r.TrimConsumer()
			continue
		}
		p := make([]byte, rng.IntN(6000))
		k := r.Read(p)
		require.True(t, bytes.Equal(want[out:out+k], p[:k]), "%d bytes read at offset %d", k, out)
		out += k
	}
	assert.PanicsWithValue(t, "BUG: buffer: Write after Repeat",
		func() { r.Release(r.Tail()); r.Write(text) })
	written := buffer.NewRing(10)
	written.Write(text[:1])
	assert.PanicsWithValue(t, "BUG: buffer: Repeat after Write",
		func() { written.Repeat(text, 1) })
}
