package congestion

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// acked delivers n bytes to a window that is in use.
func acked(c Controller, n int) {
	c.OnAck(&Ack{Delivered: n, MSS: 1000, CwndLimited: true})
}

func TestTahoeTrace(t *testing.T) {
	c := create(t, "tahoe")
	acked(c, 10000)
	assert.Equal(t, 20000, c.Cwnd())
	c.OnLoss(&Loss{Kind: Detected, FlightSize: 20000, MSS: 1000})
	assert.Equal(t, 1000, c.Cwnd(), "RFC 5681 §3.1: from the loss window, also after a fast retransmit")
	assert.Equal(t, 10000, c.Ssthresh())
	// The textbook's rounds: 1, 2, 4, 8, the threshold, and then one segment more per round.
	for _, want := range []int{2000, 4000, 8000, 10000} {
		acked(c, c.Cwnd())
		assert.Equal(t, want, min(c.Cwnd(), 10000))
	}
	c.OnExit(&Exit{MSS: 1000})
	for want := 11000; want <= 15000; want += 1000 {
		acked(c, c.Cwnd())
		assert.InDelta(t, want, c.Cwnd(), 1000)
	}
	c.OnLoss(&Loss{Kind: Timeout, FlightSize: 14000, MSS: 1000})
	assert.Equal(t, 1000, c.Cwnd())
	assert.Equal(t, 7000, c.Ssthresh())
}

func TestRFC6582_FullAcknowledgment(t *testing.T) {
	// RFC 6582 §3.2 step 3: min (ssthresh, max(FlightSize, SMSS) + SMSS).
	for flight, want := range map[int]int{0: 2000, 3000: 4000, 9000: 10000, 50000: 10000} {
		c := create(t, "newreno")
		acked(c, 10000)
		c.OnLoss(&Loss{Kind: Detected, FlightSize: 20000, MSS: 1000})
		assert.Equal(t, 10000, c.Cwnd())
		c.OnExit(&Exit{InFlight: flight, MSS: 1000})
		assert.Equal(t, want, c.Cwnd(), flight)
		assert.Equal(t, 10000, c.Ssthresh(), "slow start ends at ssthresh")
	}
	c := create(t, "newreno")
	c.OnLoss(&Loss{Kind: Timeout, FlightSize: 10000, MSS: 1000})
	acked(c, 3000)
	c.OnExit(&Exit{InFlight: 0, MSS: 1000})
	assert.Equal(t, 4000, c.Cwnd(), "after a timeout the window has only grown from one segment")
}

// TestSpuriousLossIsUndone checks the response of RFC 4015 §3.4 for all loss-based algorithms.
func TestSpuriousLossIsUndone(t *testing.T) {
	for _, name := range []string{"reno", "newreno", "tahoe", "cubic"} {
		for _, kind := range []Kind{Detected, Timeout} {
			c := create(t, name)
			acked(c, 10000)
			cwnd, ssthresh := c.Cwnd(), c.Ssthresh()
			c.OnLoss(&Loss{Kind: kind, FlightSize: cwnd, MSS: 1000})
			c.OnLoss(&Loss{Kind: TimeoutAgain, FlightSize: cwnd, MSS: 1000})
			require.Less(t, c.Cwnd(), cwnd, name)
			c.OnExit(&Exit{MSS: 1000, Spurious: true})
			assert.Equal(t, cwnd, c.Cwnd(), name)
			assert.Equal(t, ssthresh, c.Ssthresh(), name)
			c.OnExit(&Exit{MSS: 1000, Spurious: true})
			assert.Equal(t, cwnd, c.Cwnd(), "%s: once", name)

			c.OnLoss(&Loss{Kind: kind, FlightSize: cwnd, MSS: 1000})
			c.OnExit(&Exit{MSS: 1000})
			require.Less(t, c.Cwnd(), cwnd, name)
			c.OnExit(&Exit{MSS: 1000, Spurious: true})
			assert.Equal(t, cwnd, c.Cwnd(), "%s: late", name)

			c.OnLoss(&Loss{Kind: kind, FlightSize: cwnd, MSS: 1000})
			c.OnLoss(&Loss{Kind: Echo, FlightSize: cwnd, MSS: 1000})
			c.OnExit(&Exit{MSS: 1000, Spurious: true})
			assert.Less(t, c.Cwnd(), cwnd, "%s: a mark is not spurious", name)
		}
	}
}

func TestRFC3168_Echo(t *testing.T) {
	for _, name := range []string{"reno", "newreno", "tahoe"} {
		c := create(t, name)
		acked(c, 10000)
		c.OnLoss(&Loss{Kind: Echo, FlightSize: 20000, MSS: 1000})
		assert.Equal(t, 10000, c.Cwnd(), "RFC 3168 §6.1.2: halved, no slow start: %s", name)
		assert.Equal(t, 10000, c.Ssthresh(), name)
	}
}

func TestRFC5681_RestartWindow(t *testing.T) {
	for _, name := range []string{"reno", "newreno", "tahoe", "cubic"} {
		c := create(t, name)
		acked(c, 30000)
		c.OnLoss(&Loss{Kind: Echo, FlightSize: 40000, MSS: 1000})
		cwnd, r := c.Cwnd(), c.(Restarter)
		r.OnRestart(&Restart{Idle: time.Second, RTO: time.Second, MSS: 1000})
		assert.Equal(t, cwnd, c.Cwnd(), name)
		r.OnRestart(&Restart{Idle: 2 * time.Second, RTO: time.Second, MSS: 1000})
		assert.Equal(t, 10000, c.Cwnd(), "RFC 5681 §4.1: the restart window: %s", name)
		assert.Equal(t, cwnd, c.Ssthresh(), name)
	}
}

func TestControllerReplacesAnother(t *testing.T) {
	for _, name := range []string{"reno", "newreno", "tahoe", "cubic"} {
		c, err := New(name, Config{
			MSS: 1000, InitialWindow: 10000, MaxWindow: 100000, Cwnd: 33000, Ssthresh: 22000,
		})
		require.NoError(t, err)
		assert.Equal(t, 33000, c.Cwnd(), name)
		assert.Equal(t, 22000, c.Ssthresh(), name)
		acked(c, 33000)
		assert.InDelta(t, 34000, c.Cwnd(), 500, "%s continues in congestion avoidance", name)
	}
}
