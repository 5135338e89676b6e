package node

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// An iteration with an expired deadline first reads packets. Segments that it then sends must not
// have an earlier time than the answers to those packets, or RACK considers them overtaken.
func TestTimeIsMonotonicWithinAnIteration(t *testing.T) {
	var read, last clock.Time
	tap := func(now clock.Time, _ int, dir stack.Direction, _ ip.DropReason, _ [][]byte) {
		assert.GreaterOrEqual(t, now, last)
		last = now
		if dir == stack.Inbound {
			read = now
		}
	}
	fa, fb := testenv.TwoNodes(t)
	a, b := startFile(t, Config{Tap: tap}, fa), startFile(t, Config{}, fb)
	ask, c := echoing(t, a, b, "10.0.0.2:7")
	ask()

	enter(t, a.waiter)
	defer a.leading.leave()
	due := func() bool { return a.stack.Deadline().Due(a.Time.now()) }
	for start, before := time.Now(), read; read == before; {
		require.Less(t, time.Since(start), patience, "nothing was read after a deadline")
		_, err := c.Write([]byte("?"))
		require.NoError(t, err)
		a.iterate() // the request leaves, and the answer waits in the socket
		before = read
		require.Eventually(t, due, patience, time.Millisecond)
		a.Post(func(now clock.Time) { assert.GreaterOrEqual(t, now, last) })
		a.iterate()
	}
}
