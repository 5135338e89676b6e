package simulation

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestThinner(t *testing.T) {
	sum := func(a, b *int) bool { *a += *b; return true }
	for _, n := range []int{1, 7, 8, 9, 100, 1000} {
		l := thinner[int]{limit: 8, merge: sum}
		for i := range n {
			one := 1
			l.add(&one, uint64(i))
			require.LessOrEqual(t, len(l.rows), 8)
		}
		total := 0
		for _, v := range mergeRows(&l) {
			total += v
		}
		assert.Equal(t, n, total)
	}
	never := thinner[int]{limit: 8, merge: func(_, _ *int) bool { return false }}
	for i := range 1000 {
		never.add(&i, uint64(i))
		require.LessOrEqual(t, len(never.rows), 8)
	}
	rows := mergeRows(&never)
	assert.Equal(t, 999, rows[len(rows)-1])
	assert.True(t, slices.IsSorted(rows))
	twins := thinner[int]{limit: 8, merge: sum, same: func(a, b *int) bool { return *b == 0 }}
	for i, v := range []int{1, 0, 0, 1, 0} {
		twins.add(&v, uint64(i))
	}
	assert.Equal(t, []int{1, 1}, mergeRows(&twins))
}

func TestHistogram(t *testing.T) {
	var h Histogram
	assert.Zero(t, h.Mean())
	for i := range 10_000 {
		h.Add(time.Duration(i+1) * 10 * time.Microsecond)
	}
	h.Add(-1)
	assert.InEpsilon(t, .05, h.Mean().Seconds(), .001)
	for _, share := range []float64{.05, .5, .95, .99} {
		assert.InEpsilon(t, share*.1, h.Percentile(share).Seconds(), .001)
	}
	assert.Equal(t, time.Duration(0), h.Percentile(0))
	assert.InEpsilon(t, .1, h.Percentile(1).Seconds(), .001)
	assert.Equal(t, 100*time.Millisecond, h.Max)
	assert.Zero(t, h.Min)
}

// A corrupted packet counts for the flow of its addresses, or for no flow, and causes no error.
func TestParse(t *testing.T) {
	for n := range 64 {
		junk := make([]byte, n)
		for i := range junk {
			junk[i] = 0xff
		}
		if n > ipSource {
			junk[ipSource] = ourNetwork
		}
		p := parse(junk, 3, false)
		assert.Equal(t, -1, p.flow)
		if n > 11 {
			junk[0], junk[9] = 0x4f, protocolTCP
		}
		if n >= ipMinimum {
			junk[ipSource+1], junk[ipSource+2] = byte(Right), 2
			p = parse(junk, 3, false)
			assert.Equal(t, 2, p.flow)
			assert.Equal(t, Right, p.from)
		}
	}
}
