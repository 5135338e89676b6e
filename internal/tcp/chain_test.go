package tcp

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// element is an object in a chain.
type element struct {
	neighbors[element]
	number int
}

// TestChainAgainstASlice inserts into and removes from a chain and a slice at random, and checks
// that both hold the same elements in the same order from either end.
func TestChainAgainstASlice(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	var c chain[element, *element]
	var want []*element
	for i := range 10_000 {
		if len(want) == 0 || len(want) < 20 && random.IntN(2) == 0 {
			b := &element{number: i}
			c.push(b)
			want = append(want, b)
		} else {
			at := random.IntN(len(want))
			c.remove(want[at])
			assert.Equal(t, neighbors[element]{}, want[at].neighbors, "no neighbors")
			want = slices.Delete(want, at, at+1)
		}
		var on, back []*element
		for b := c.first; b != nil; b = b.next {
			on = append(on, b)
		}
		for b := c.last; b != nil; b = b.prev {
			back = append(back, b)
		}
		slices.Reverse(back)
		require.True(t, slices.Equal(want, on))
		require.True(t, slices.Equal(want, back))
	}
}
