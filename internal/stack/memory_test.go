package stack

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMemoryIsReused checks that memory used by a batch stays untouched until the owner calls
// another method, and is reused then. The amount of memory that is kept is bounded.
func TestMemoryIsReused(t *testing.T) {
	var m memory
	first := append(m.take(100), 1)
	require.Equal(t, 128, cap(first))
	m.give(first)
	assert.NotSame(t, &first[0], &m.take(100)[:1][0], "the batch is still in use")
	m.reuse()
	assert.NotSame(t, &first[0], &m.take(200)[:1][0], "the piece is too short")
	assert.Same(t, &first[0], &m.take(65)[:1][0])
	assert.Zero(t, m.bytes)

	assert.GreaterOrEqual(t, cap(m.take(9000)), 9000)
	m.give(make([]byte, 9000))
	m.give(make([]byte, 100))
	m.reuse()
	assert.Zero(t, m.bytes, "pieces of other sizes are not kept")
	for range 2 * maxLeft {
		m.give(m.take(2000))
	}
	assert.Len(t, m.left, maxLeft)
	m.reuse()
	assert.Equal(t, maxFreeMemory, m.bytes)
	for _, n := range []int{20, 64, 65, 2048, 2049} {
		b := m.take(n)
		assert.Empty(t, b)
		assert.GreaterOrEqual(t, cap(b), n)
	}
}
