package sim

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Each bit of an entry affects the hash, and so does the order of the entries.
func TestEachBitChangesTheDigest(t *testing.T) {
	head := make([]byte, hashedBytes)
	for i := range head {
		head[i] = byte(37 * i)
	}
	sum := func(size int, head []byte) uint64 {
		var j digest
		j.add(12345, 6, size, head)
		j.add(12346, 7, 40, head[:28])
		return j.sum
	}
	seen := map[uint64]bool{sum(1500, head): true}
	for i := range 8 * len(head) {
		head[i/8] ^= 1 << (i % 8)
		h := sum(1500, head)
		head[i/8] ^= 1 << (i % 8)
		require.False(t, seen[h], "bit %d", i)
		seen[h] = true
	}
	require.False(t, seen[sum(1501, head)])
	var a, b digest
	a.add(1, 2, 40, head)
	a.add(1, 3, 40, head)
	b.add(1, 3, 40, head)
	b.add(1, 2, 40, head)
	require.NotEqual(t, a.sum, b.sum)
}
