package simulation_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/lab/simulation"
	"github.com/tidepool-net/tidepool/internal/tcp"
	"github.com/tidepool-net/tidepool/internal/tcp/recovery"
)

// Each connection counts its own round trips, so samples of several connections do not mix. Several
// connections have no common window.
func TestStatsOfSeveralConnections(t *testing.T) {
	var v simulation.SenderStats
	sample := func(conn int, at clock.Time, count uint64, rtt time.Duration) bool {
		return v.AddSample(conn, &tcp.Info{
			Time: at,
			Info: recovery.Info{SndCwnd: 1000 * conn, RTTSamples: count, LatestRTT: rtt},
		})
	}
	assert.True(t, sample(7, 1, 1, 10*time.Millisecond))
	one := result.Values{}
	v.Result(5, one)
	assert.InDelta(t, 7000, one[result.CwndMean], 0, "the only connection has a window")
	assert.True(t, sample(8, 2, 1, 30*time.Millisecond))
	assert.False(t, sample(7, 3, 1, 10*time.Millisecond), "the measurement was counted before")
	assert.False(t, sample(8, 4, 1, 30*time.Millisecond))
	assert.True(t, sample(8, 5, 2, 50*time.Millisecond))
	all := result.Values{}
	v.Result(6, all)
	assert.InDelta(t, .030, all[result.RTTMean], 1e-9)
	assert.InDelta(t, .050, all[result.RTTMax], 1e-9)
	assert.NotContains(t, all, result.CwndMean)
}
