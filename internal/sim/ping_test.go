package sim_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/icmp"
	"github.com/tidepool-net/tidepool/internal/netem"
	"github.com/tidepool-net/tidepool/internal/sim"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// probed runs a probing engine on the left host of a line until it is done.
func probed(t *testing.T, l *sim.Line, p stack.Prober, done func() bool) {
	t.Helper()
	require.NoError(t, l.Left.Stack().Probers().Start(p))
	l.Left.Settle()
	require.True(t, l.RunUntil(time.Hour, done))
	l.Left.Stack().Probers().Stop(p)
}

func TestPingAndTracerouteInVirtualTime(t *testing.T) {
	l, err := sim.NewLine(1, sim.LineConfig{
		Routers: 5, Links: []sim.LinkConfig{both(netem.Config{Delay: 3 * time.Millisecond})},
	})
	require.NoError(t, err)
	far := l.Address(0).Addr()
	ping := icmp.NewPing(l.Now(), icmp.PingConfig{Dst: far, Iface: -1, ID: 1, Count: 3})
	probed(t, l, ping, ping.Done)
	info := ping.Info()
	assert.Equal(t, 3, info.Received)
	assert.Equal(t, 36*time.Millisecond, info.Min, "six links in both directions")
	assert.Equal(t, info.Min, info.Max)
	assert.Zero(t, info.Mdev)

	trace := icmp.NewTrace(icmp.TraceConfig{
		Dst: far, Iface: -1, ID: 50000, Kind: icmp.Datagram, Port: 33434, First: 1, Max: 30,
		Queries: 3, Parallel: 16, Wait: 5 * time.Second, Here: 3, Near: 10,
	})
	probed(t, l, trace, trace.Done)
	for ttl := 1; ttl <= 6; ttl++ {
		got, replies, ok := trace.Hop()
		require.True(t, ok)
		assert.Equal(t, ttl, got)
		for _, r := range replies {
			assert.Equal(t, time.Duration(ttl)*6*time.Millisecond, r.RTT)
			if ttl < 6 {
				assert.Equal(t, netip.AddrFrom4([4]byte{10, 0, byte(ttl - 1), 2}), r.From)
			}
		}
	}
	_, _, more := trace.Hop()
	assert.False(t, more)
}

func TestPingMeasuresTheLossOfALine(t *testing.T) {
	loss := func(seed uint64) int {
		l, err := sim.NewLine(seed, sim.LineConfig{Links: []sim.LinkConfig{both(netem.Config{
			Delay: time.Millisecond, Loss: netem.UniformLoss(0.1),
		})}})
		require.NoError(t, err)
		ping := icmp.NewPing(l.Now(), icmp.PingConfig{
			Dst: l.Address(0).Addr(), Iface: -1, ID: 1, Count: 10_000, Interval: 10 * time.Millisecond,
		})
		probed(t, l, ping, ping.Done)
		return ping.Info().Sent - ping.Info().Received
	}
	lost := loss(7)
	assert.InDelta(t, 1900, lost, 160, "10 % in each direction, within four standard deviations")
	assert.Equal(t, lost, loss(7), "the same seed has the same losses")
}
