package emulation

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/netem"
	"github.com/tidepool-net/tidepool/internal/rcp"
	"github.com/tidepool-net/tidepool/internal/sim/workload"
)

// The limit is a share of the round trip, or one packet's time on the link. On a path that takes no
// time it is a share of the ends' tick.
func TestLatenessLimits(t *testing.T) {
	x := &plan.Experiment{Flows: []plan.Flow{{}}}
	x.Path.MTU = 1500
	limits := func() [2]time.Duration {
		l := limitOf(x)
		return [2]time.Duration{l, wakeLimitOf(x, l)}
	}
	assert.Equal(t, [2]time.Duration{0, time.Millisecond}, limits())
	x.Flows[0].App.Echo = &workload.EchoConfig{RCP: rcp.Config{Tick: 2 * time.Millisecond}}
	assert.Equal(t, [2]time.Duration{0, 200 * time.Microsecond}, limits())
	x.Path.Down.Delay, x.Path.Up.Delay = 30*time.Millisecond, 10*time.Millisecond
	assert.Equal(t, [2]time.Duration{2 * time.Millisecond, 2 * time.Millisecond}, limits())
	x.Path.Down.Rate = netem.BitsPerSecond(1_000_000)
	assert.Equal(t, [2]time.Duration{12 * time.Millisecond, 12 * time.Millisecond}, limits())
}

// On a path without delay, the verdict is about the timers of the ends, and its text says so.
func TestTimingVerdict(t *testing.T) {
	p99, most, limit := result.LateP99, result.LateMax, result.LateLimit
	wake99, wakeMax, wakeLimit := result.WakeP99, result.WakeMax, result.WakeLimit
	for _, row := range []struct {
		timing Timing
		kept   bool
		says   string
	}{
		{
			Timing{p99: .5, most: .5, wake99: .001, wakeMax: .01, wakeLimit: .001},
			true,
			"kept time: packets left up to 500 ms late (p99 500 ms), hosts woke up to 10 ms late " +
				"(p99 1 ms); the path has neither delay nor rate, so only the hosts' timers are " +
				"checked: a p99 of 1 ms and 10 ms " +
				"at most",
		},
		{Timing{wake99: .0011, wakeMax: .002, wakeLimit: .001}, false, "could not keep time: "},
		{Timing{wake99: .0001, wakeMax: .0101, wakeLimit: .001}, false, "could not keep time: "},
		{
			Timing{p99: .003, most: .003, limit: .002, wakeLimit: .002},
			false,
			"the path allows a p99 of 2 ms and 20 ms at most",
		},
		{
			Timing{
				p99: .002, most: .02, limit: .002, wake99: .002, wakeMax: .02, wakeLimit: .002,
			},
			true,
			"kept time: ",
		},
		{Timing{result.SocketDrops: 3, limit: 1, wakeLimit: 1}, false, "socket buffers dropped 3 packets"},
	} {
		assert.Equal(t, row.kept, row.timing.OnTime(), row.says)
		assert.Contains(t, row.timing.String(), row.says)
	}
}
