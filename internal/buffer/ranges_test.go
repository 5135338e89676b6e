package buffer_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/buffer"
)

func list(s *buffer.Ranges) []buffer.Range {
	var out []buffer.Range
	for i := range s.Len() {
		out = append(out, s.At(i))
	}
	return out
}

func TestRangesAgainstABitmap(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const size = 400
	for range 300 {
		var s buffer.Ranges
		var bits [size]bool
		for range 40 {
			start := rng.IntN(size)
			end := min(size, start+rng.IntN(30))
			require.True(t, s.Add(uint64(start), uint64(end)))
			for i := start; i < end; i++ {
				bits[i] = true
			}
			if rng.IntN(10) == 0 {
				pos := rng.IntN(size / 4)
				s.RemoveBefore(uint64(pos))
				clear(bits[:pos])
			}
			var want []buffer.Range
			for i := range size {
				if bits[i] && (i == 0 || !bits[i-1]) {
					want = append(want, buffer.Range{Start: uint64(i)})
				}
				if bits[i] {
					want[len(want)-1].End = uint64(i + 1)
				}
				if _, ok := s.Find(uint64(i)); ok != bits[i] { // faster than Equal
					require.Equal(t, bits[i], !bits[i], "offset %d", i)
				}
			}
			require.Equal(t, want, list(&s))
			end = min(size, start+rng.IntN(60))
			require.Equal(t, firstOverlap(want, uint64(start), uint64(end)), overlap(&s, start, end))
		}
	}
}

func firstOverlap(list []buffer.Range, start, end uint64) buffer.Range {
	for _, r := range list {
		if lo, hi := max(r.Start, start), min(r.End, end); lo < hi {
			return buffer.Range{Start: lo, End: hi}
		}
	}
	return buffer.Range{}
}

func overlap(s *buffer.Ranges, start, end int) buffer.Range {
	r, ok := s.Overlap(uint64(start), uint64(end))
	if !ok {
		return buffer.Range{}
	}
	return r
}

func TestRangesLimit(t *testing.T) {
	s := buffer.Ranges{Max: 2}
	assert.True(t, s.Add(10, 20))
	assert.True(t, s.Add(30, 40))
	assert.False(t, s.Add(50, 60), "a third range exceeds Max")
	assert.True(t, s.Add(20, 30), "a range that joins two is accepted")
	assert.Equal(t, []buffer.Range{{Start: 10, End: 40}}, list(&s))
	assert.True(t, s.Covers(12, 40))
	assert.False(t, s.Covers(12, 41))
}
