package rip_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tidepool-net/tidepool/internal/rip"
)

// TestNeighborLostByMistake checks that the Speaker requests withdrawn routes at once, and
// does not wait for the next periodic update.
func TestNeighborLostByMistake(t *testing.T) {
	x := newBench(t, rip.Config{Timers: rip.Timers{
		Periodic: time.Hour, Timeout: 10 * time.Hour, AskAfter: time.Second,
	}})
	x.hear(b, "10.9.0.0/24=1")
	x.wait(time.Minute)
	x.sent()
	x.learned()
	x.Found(b, 0)
	assert.Empty(t, x.sent(), "the neighbor was never lost")

	for range 2 { // the Speaker requests again, even within a period
		x.Lost(x.now, b, 0)
		x.wait(time.Minute)
		x.sent()
		x.learned()
		x.Found(c, 0)
		assert.Empty(t, x.sent(), "the neighbor is not on that link")
		x.Found(b, 0)
		assert.Equal(t, []string{"b ?"}, x.sent()[:1])
		x.hear(b, "10.9.0.0/24=1")
		assert.Equal(t, []string{"10.9.0.0/24 via 10.0.0.2 cost 2"}, x.learned())
		x.wait(time.Minute)
		x.sent()
		x.Found(b, 0)
		assert.Empty(t, x.sent())
	}
}
