package netem_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/netem"
)

// A link that has corrupted a packet is never intact again, even if corruption is turned off and
// the counters are cleared: a corrupted packet may still be in transit.
func TestIntact(t *testing.T) {
	for _, cfg := range []netem.Config{{Corrupt: netem.Corrupt{Share: 1}}, {Truncate: 1}} {
		l := newLink(t, netem.Config{Duplicate: 1, Loss: netem.UniformLoss(0.5)})
		for i := range uint64(20) {
			put(l, 1, i, 40)
		}
		require.True(t, l.Intact())
		require.NoError(t, l.Change(1, cfg, netem.Streams(1)))
		require.True(t, l.Intact(), "no packet was changed yet")
		put(l, 1, 1, 40)
		require.False(t, l.Intact())
		require.NoError(t, l.Change(1, netem.Config{}, netem.Streams(1)))
		l.Clear()
		assert.False(t, l.Intact())
	}
}
