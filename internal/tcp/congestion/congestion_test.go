package congestion

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func create(t *testing.T, name string) Controller {
	t.Helper()
	c, err := New(name, Config{MSS: 1000, InitialWindow: 10000, MaxWindow: 100000, FixedWindow: 7000})
	require.NoError(t, err)
	return c
}

func TestNames(t *testing.T) {
	assert.Equal(t, []string{"bbr", "bbr3", "cubic", "fixed", "newreno", "none", "reno", "tahoe"}, Names())
	_, err := New("vegas", Config{})
	require.ErrorIs(t, err, ErrUnknown)
	for _, n := range Names() {
		assert.Equal(t, strings.HasPrefix(n, "bbr"), create(t, n).PacingRate() > 0, n)
	}
}

func TestRFC5681_Reno(t *testing.T) {
	c := create(t, "reno")
	ack := func(n int, limited bool) { c.OnAck(&Ack{Delivered: n, MSS: 1000, CwndLimited: limited}) }
	assert.Equal(t, 10000, c.Cwnd(), "RFC 6928")
	ack(10000, true)
	assert.Equal(t, 20000, c.Cwnd(), "slow start doubles the window per round with any number of ACKs")
	ack(5000, false)
	assert.Equal(t, 20000, c.Cwnd(), "a window that is not used does not grow")
	c.OnLoss(&Loss{Kind: Detected, FlightSize: 20000, MSS: 1000})
	assert.Equal(t, 10000, c.Cwnd())
	assert.Equal(t, 10000, c.Ssthresh())
	c.OnAck(&Ack{Delivered: 5000, MSS: 1000, CwndLimited: true, Recovering: true})
	assert.Equal(t, 10000, c.Cwnd(), "PRR controls the window in recovery")
	c.OnExit(&Exit{})
	for range 10 {
		ack(1000, true)
	}
	assert.Equal(t, 11000, c.Cwnd(), "congestion avoidance: one segment per window")
	c.OnLoss(&Loss{Kind: Timeout, FlightSize: 11000, MSS: 1000})
	assert.Equal(t, 1000, c.Cwnd())
	assert.Equal(t, 5500, c.Ssthresh())
	c.OnLoss(&Loss{Kind: TimeoutAgain, FlightSize: 11000, MSS: 1000})
	assert.Equal(t, 5500, c.Ssthresh(), "held")
	ack(4500, true)
	assert.Equal(t, 5500, c.Cwnd())
	ack(5500, true)
	assert.Equal(t, 6500, c.Cwnd())
	c.OnLoss(&Loss{Kind: Detected, FlightSize: 1000, MSS: 1000})
	assert.Equal(t, 2000, c.Ssthresh(), "two segments at least")
	c.OnExit(&Exit{})
	for range 10000 {
		ack(c.Cwnd(), true)
	}
	assert.Equal(t, 100000, c.Cwnd(), "never above its bound")
}

func TestRenoKeepsCountAcrossManyWindows(t *testing.T) {
	c := create(t, "reno")
	c.OnLoss(&Loss{Kind: Detected, FlightSize: 8000, MSS: 1000})
	c.OnAck(&Ack{Delivered: 4000 + 5000 + 6000, MSS: 1000, CwndLimited: true})
	assert.Equal(t, 7000, c.Cwnd(), "one acknowledgment of three windows grows three segments")
}

func TestFixed(t *testing.T) {
	for name, want := range map[string]int{"fixed": 7000, "none": 100000} {
		c := create(t, name)
		c.OnAck(&Ack{Delivered: 1000, CwndLimited: true})
		c.OnLoss(&Loss{Kind: Timeout})
		c.OnExit(&Exit{})
		assert.Equal(t, want, c.Cwnd(), name)
		assert.Zero(t, c.Ssthresh(), name)
	}
	c, err := New("fixed", Config{InitialWindow: 5000})
	require.NoError(t, err)
	assert.Equal(t, 5000, c.Cwnd())
}
