package simulation

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/netem"
)

// A fixed window is delivered once per round trip, or at the rate of the path.
func TestFixedWindow(t *testing.T) {
	testenv.NeedNoRace(t)
	for _, packets := range []int{1, 5, 20, 55, 61, 70, 100} {
		t.Run(fmt.Sprint(packets), func(t *testing.T) {
			c := cell("fixed", 1000)
			f := &c.Flows[0]
			f.TCP.Recovery.FixedWindow, f.TCP.DelayedAck = packets*mss, time.Nanosecond
			c.HostJitter, c.Warmup = perfect, 2*time.Second
			v := mustRun(t, c, 0).Flows[0].Values
			// The round trip consists of the links' delay, one packet's service time, and one
			// acknowledgment's.
			r := (trip + service).Seconds() + 52*8/float64(rate)
			want := min(float64(packets)*mss*8/r, rate*mss/mtu)
			assert.InEpsilon(t, want, v[result.Goodput], .01)
		})
	}
}

// With IPv6, each packet has 20 more bytes of headers, so a busy link delivers correspondingly less
// data.
func TestGoodputOverIPv6(t *testing.T) {
	c := cell("fixed", 1000)
	f := &c.Flows[0]
	f.TCP.Recovery.FixedWindow, f.TCP.DelayedAck = 100*(mss-20), time.Nanosecond
	c.HostJitter, c.Warmup, c.Path.IPv6 = perfect, 2*time.Second, true
	got := mustRun(t, c, 0)
	v := got.Flows[0].Values
	assert.InEpsilon(t, rate*(mss-20)/mtu, v[result.Goodput], .001)
	assert.InEpsilon(t, 1, got.Whole[result.Utilization], .001)
	assert.InDelta(t, v[result.Sent], v[result.DataSent]+v[result.AcksSent], 4, "SYNs and FINs")
}

// With every algorithm, each round trip takes at least the links' delay, and at most that delay
// plus a full queue.
func TestRoundTripsAreWithinTheQueue(t *testing.T) {
	testenv.NeedNoRace(t)
	for _, cc := range []string{"reno", "cubic", "tahoe", "bbr", "newreno"} {
		t.Run(cc, func(t *testing.T) {
			c := cell(cc, 40)
			c.Flows[0].TCP.DelayedAck = time.Nanosecond
			addFlow(c, cc).TCP.DelayedAck = time.Nanosecond
			got := mustRun(t, c, 0)
			least := (trip + service).Seconds() + 52*8/float64(rate)
			// One more packet is being sent.
			most := least + (40*service + service + 2*service).Seconds()
			for _, f := range got.Flows {
				assert.GreaterOrEqual(t, f.Values[result.RTTMin], trip.Seconds(), "a SYN is short")
				assert.LessOrEqual(t, f.Values[result.RTTMax], most+.001)
				assert.Greater(t, f.Values[result.RTTMax], least+.010)
			}
			assert.LessOrEqual(t, got.Whole[result.QueueMax], (41 * service).Seconds())
		})
	}
}

// RFC 5681 §3.1: without delayed acknowledgments, the slow start window doubles in each round trip.
func TestSlowStartDoubles(t *testing.T) {
	for _, first := range []int{1, 2, 10} {
		c := cell("reno", 0)
		wire := netem.Config{Delay: 50 * ms}
		c.Path.Down, c.Path.Up, c.HostJitter = wire, wire, perfect
		f := &c.Flows[0]
		f.TCP.Recovery.InitialWindow, f.TCP.DelayedAck = first, time.Nanosecond
		const segments = 2000
		f.App.Size = segments * mss
		got, r := mustRecord(t, c)
		rounds := math.Ceil(math.Log2(segments/float64(first) + 1))
		// The connection takes one round trip, and the last window takes half of one.
		assert.InDelta(t, .1+.1*rounds-.05, got.Flows[0].Values[result.Completion], .001)
		at := map[time.Duration]int{}
		for _, s := range r.Flows[0].Samples {
			at[s.At.Round(ms)] = s.Cwnd / mss
		}
		for i := range 7 {
			want := first << i
			assert.Equal(t, want, at[time.Duration(i+1)*100*ms], "after %d round trips", i)
		}
	}
}

// sawtooth returns Reno's utilization of a path, from the areas under the sawtooth. The queue holds
// b times as much as the path.
func sawtooth(b float64) float64 {
	w := 1 + b
	return ((1 - w*w/4) + (w*w - 1)) / (2*(1-w/2) + (w*w - 1))
}

// The formula omits the round trips of recovery, in which the window is at its minimum and does not
// grow. The error shrinks with the number of packets that the path holds: it is at most 1.5 % for
// 60 packets, and a third of that for 240 packets.
func TestRenoUtilization(t *testing.T) {
	testenv.NeedLong(t)
	for _, c := range []struct {
		recovery string
		path     int // number of packets that the path holds
		within   float64
	}{{"newreno", 60, .01}, {"sack", 60, .015}, {"rack", 60, .015}, {"rack", 240, .005}} {
		for _, b := range []float64{.1, 1. / 3, .5, 1} {
			t.Run(fmt.Sprintf("%s %d %.1f", c.recovery, c.path, b), func(t *testing.T) {
				x := cell("reno", int(math.Round(b*float64(c.path))))
				x.Path.Down.Rate = netem.BitsPerSecond(rate * c.path / 60)
				x.Path.Up.Rate = x.Path.Down.Rate
				x.Flows[0].TCP.Recovery.Strategy = c.recovery
				x.HostJitter = perfect
				x.Duration, x.Warmup = time.Duration(c.path/20)*minute, minute/2
				u := mustRun(t, x, 0).Whole[result.Utilization]
				assert.InEpsilon(t, sawtooth(b), u, c.within)
				t.Logf("%.4f, theory %.4f", u, sawtooth(b))
			})
		}
	}
}

// RFC 9438 §5.2 with RFC 5681's halving: one loss in every 1/p packets results in a window of
// sqrt(3/2)/sqrt(p). The formula ignores recovery, and that windows are whole segments, so it holds
// for large windows.
func TestRenoUnderPeriodicLoss(t *testing.T) {
	testenv.NeedLong(t)
	for _, c := range []struct {
		every  uint64
		within float64
	}{{10000, .03}, {3000, .05}, {1000, .07}} {
		x := cell("reno", 0)
		wire := netem.Config{Delay: 50 * ms, Rate: netem.BitsPerSecond(1e9)}
		x.Path.Up = wire
		wire.Loss = netem.PeriodicLoss{Every: c.every}
		x.Path.Down = wire
		x.HostJitter = perfect
		x.Flows[0].TCP.DelayedAck = time.Nanosecond
		x.Duration, x.Warmup = 10*minute, minute
		got := mustRun(t, x, 0)
		v := got.Flows[0].Values
		p := got.Whole[result.Losses] / v[result.DataSent]
		packets := v[result.Goodput] / 8 / mss * v[result.RTTMean]
		assert.InEpsilon(t, math.Sqrt(1.5), packets*math.Sqrt(p), c.within, "every %d", c.every)
		t.Logf("every %d: %.4f", c.every, packets*math.Sqrt(p))
	}
}

// Two flows with the same algorithm and round trip get equal shares.
func TestEqualFlowsAreFair(t *testing.T) {
	testenv.NeedLong(t)
	for _, cc := range []string{"reno", "cubic"} {
		c := cell(cc, 60)
		addFlow(c, cc).Start = time.Second
		c.Duration, c.Warmup = 4*minute, minute
		got := mustRun(t, c, 0)
		assert.Greater(t, got.Whole[result.Jain], .95, cc)
		t.Logf("%s: %.4f", cc, got.Whole[result.Jain])
	}
}

// Jitter at the senders does not change BBR's estimates. Jitter of acknowledgments would shorten
// the interval of some rate samples, and BBR takes the largest sample: its queue then grows to the
// cap of its window, here to 98 ms.
func TestHostJitterDoesNotChangeBBR(t *testing.T) {
	for _, upward := range []bool{false, true} {
		var rtt [2]float64
		for i, jitter := range []time.Duration{perfect, 2400 * time.Microsecond} {
			c := cell("bbr", 67)
			wire := netem.Config{Delay: 20 * ms, Rate: netem.BitsPerSecond(5e6)}
			c.Path.Up, c.Path.Down = wire, wire
			c.Path.Down.Queue = netem.DropTail{Packets: 67} // four bandwidth-delay products
			c.Path.Up.Queue = c.Path.Down.Queue
			c.Flows[0].Upward, c.HostJitter, c.Warmup = upward, jitter, smooth/4
			rtt[i] = mustRun(t, c, 0).Flows[0].Values[result.RTTMean]
		}
		assert.InEpsilon(t, rtt[0], rtt[1], .03, "upward %v", upward)
		t.Logf("%.1f ms without jitter, %.1f ms with it", 1e3*rtt[0], 1e3*rtt[1])
	}
}

// Changing a delay by less than a service time does not change the shares: two Reno flows are not
// locked in phase (Floyd and Jacobson 1992). Without jitter, the shares are between .49 and .55,
// and differ from delay to delay.
func TestHostJitterBreaksPhase(t *testing.T) {
	testenv.NeedLong(t)
	var shares []float64
	for _, more := range []time.Duration{0, ms / 3, 2 * ms / 3} {
		c := cell("reno", 50)
		wire := netem.Config{Delay: 10 * ms, Rate: netem.BitsPerSecond(rate)}
		c.Path.Up, c.Path.Down = wire, wire
		c.Path.Down.Queue = netem.DropTail{Packets: 50}
		f := addFlow(c, "reno")
		f.Delay, f.Start = 10*ms+more, time.Second
		c.Duration, c.Warmup = 5*minute, minute/2
		shares = append(shares, mustRun(t, c, 0).Flows[0].Values[result.Share])
	}
	t.Logf("shares %.3f", shares)
	assert.Less(t, slices.Max(shares)-slices.Min(shares), .08)
	assert.Greater(t, slices.Min(shares), .6, "the flow with the shorter round trip gets more")
}

// The capacity of a trace is the sum of its opportunities.
func TestUtilizationOfATrace(t *testing.T) {
	c := cell("cubic", 1000)
	c.Path.Down.Rate = netem.Opportunities{At: []time.Duration{2 * ms, 2 * ms, 7 * ms}}
	c.Path.Down.Queue = netem.DropTail{Bytes: 100_000}
	c.Warmup = 5 * time.Second
	got, r := mustRecord(t, c)
	assert.InEpsilon(t, 1, got.Whole[result.Utilization], .001)
	v := got.Flows[0].Values
	assert.InEpsilon(t, 3*1500*8/.007, v[result.Throughput], .001)
	require.Len(t, r.Links, 2)
	assert.Equal(t, 100_000, r.Links[0].Limit)
	assert.InEpsilon(t, 3*1504*8/.007, r.Links[0].Rate, .001)
}

func TestUtilizationOfASchedule(t *testing.T) {
	c := cell("cubic", 200)
	c.Path.Down.Rate = netem.Schedule{
		Steps: []netem.Step{{Rate: 4e6}, {At: time.Second, Rate: 8e6}}, Every: 4 * time.Second,
	}
	c.Warmup = 5 * time.Second
	got, r := mustRecord(t, c)
	assert.InEpsilon(t, 1, got.Whole[result.Utilization], .002)
	assert.InEpsilon(t, 7.2e6, got.Flows[0].Values[result.Throughput], .002)
	require.Len(t, r.Links[0].Rates, 10)
	assert.Equal(t, result.Point{At: 9 * time.Second, Value: 8e6}, r.Links[0].Rates[5])
	require.Len(t, r.Marks, 10)
	assert.Equal(t, result.Mark{At: 5 * time.Second, Text: "measured from here"}, r.Marks[3])
	assert.Equal(t, result.Mark{At: time.Second, Text: "down 8 Mbit/s"}, r.Marks[0])
}
