package tcp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// RFC 791 §3.2: every link carries packets of 68 bytes. A connection works over such a link and
// sends no packet that is longer.
func TestRFC791_3_2_TheNarrowestLink(t *testing.T) {
	for _, off := range []bool{false, true} {
		cfg := course()
		cfg.NoTimestamps = off
		w := newWorld(t, 7, wire{delay: 100 * time.Microsecond, loss: 0.05, mtu: minPathMTU}, cfg)
		longest := 0
		w.tap = func(_ int, h Header, n int) bool {
			longest = max(longest, ipHeaderSize+HeaderSize+h.Options.size()+n)
			return false
		}
		a, b := w.connect()
		s := newStream(a, b, 50000)
		require.True(t, w.transfer(time.Minute, s))
		assert.Equal(t, uint64(50000), s.read)
		assert.Equal(t, minPathMTU, longest)
		assert.Positive(t, a.Info().TotalRetrans)
	}
}
