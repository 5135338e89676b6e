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
func TestWhatMayBeLate(t *testing.T) {
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
func TestTimeIsKeptWithoutAPath(t *testing.T) {
	late := func(p99, most float64) Lateness { return Lateness{Count: 1, P99: p99, Max: most} }
	for _, row := range []struct {
		timing Timing
		kept   bool
		says   string
	}{
		{
			Timing{Middle: late(.5, .5), Ends: late(.001, .01), WakeLimit: .001},
			true,
			"kept time: packets left up to 500 ms late (p99 500 ms), hosts woke up to 10 ms late " +
				"(p99 1 ms); the path has neither delay nor rate, so only the hosts' timers are " +
				"checked: a p99 of 1 ms and 10 ms " +
				"at most",
		},
		{Timing{Ends: late(.0011, .002), WakeLimit: .001}, false, "could not keep time: "},
		{Timing{Ends: late(.0001, .0101), WakeLimit: .001}, false, "could not keep time: "},
		{
			Timing{Middle: late(.003, .003), Limit: .002, WakeLimit: .002},
			false,
			"the path allows a p99 of 2 ms and 20 ms at most",
		},
		{
			Timing{Middle: late(.002, .02), Ends: late(.002, .02), Limit: .002, WakeLimit: .002},
			true,
			"kept time: ",
		},
		{Timing{Dropped: 3, Limit: 1, WakeLimit: 1}, false, "socket buffers dropped 3 packets"},
	} {
		v := result.Values{}
		row.timing.set(v)
		got := TimingOf(v)
		assert.Equal(t, row.kept, got.Kept(), row.says)
		assert.Contains(t, got.String(), row.says)
	}
}
