package simulation

import (
	"bytes"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/netem"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

const (
	ms      = time.Millisecond
	mtu     = 1500
	mss     = mtu - 52         // segment size with timestamps
	service = 1 * ms           // service time of a full packet at 12 Mbit/s
	rate    = 12e6             // bit/s of the bottleneck
	trip    = 2 * (30 * ms)    // round-trip time of the links
	window  = 8 << 20          // size of buffers that never limit
	perfect = time.Duration(0) // host jitter of senders without jitter
	minute  = 60 * time.Second // long enough for many sawteeth
	smooth  = 20 * time.Second // short enough for a quick test
)

// cell returns a cell with one TCP flow over 12 Mbit/s and 60 ms, with a queue of the given number
// of packets.
func cell(cc string, queue int) *plan.Cell {
	link := netem.Config{Rate: netem.BitsPerSecond(rate), Delay: trip / 2}
	down := link
	down.Queue = netem.DropTail{Packets: queue}
	c := &plan.Cell{Experiment: plan.Experiment{
		Name: "a test", Duration: smooth, Seed: 1, Trials: 1, HostJitter: service,
		Path: plan.Path{Down: down, Up: link, MTU: mtu},
	}}
	addFlow(c, cc)
	return c
}

func addFlow(c *plan.Cell, cc string) *plan.Flow {
	t := tcp.Config{Buffers: tcp.Buffers{Recv: window, Send: window}}
	t.Recovery.Congestion = cc
	c.Flows = append(c.Flows, plan.Flow{
		Name: fmt.Sprintf("%s %d", cc, len(c.Flows)+1), Protocol: plan.TCP, TCP: t,
	})
	return &c.Flows[len(c.Flows)-1]
}

func mustRun(t *testing.T, c *plan.Cell, trial int) *result.Trial {
	t.Helper()
	got, _, err := Run(c, trial, Options{})
	require.NoError(t, err)
	return got
}

func mustRecord(t *testing.T, c *plan.Cell) (*result.Trial, *result.Record) {
	t.Helper()
	got, r, err := Run(c, 0, Options{Record: true})
	require.NoError(t, err)
	require.NotNil(t, r)
	return got, r
}

func TestCountsOfATransfer(t *testing.T) {
	c := cell("reno", 60)
	c.Flows[0].App.Size = 3_000_000
	got := mustRun(t, c, 0)
	assert.True(t, got.Finished, got.Note)
	v := got.Flows[0].Values
	assert.InDelta(t, 3e6, v[result.Delivered], 0)
	assert.InDelta(t, 3e6*8/v[result.Completion], v[result.Goodput], 1)
	// 3 MB take 2.07 s at 11.58 Mbit/s of payload, plus some round trips of slow start.
	assert.Greater(t, v[result.Completion], 2.07)
	assert.Less(t, v[result.Completion], 2.7)
	assert.Less(t, got.Virtual, 3*time.Second, "the run ends with the transfer")
	segments := float64((3_000_000 + mss - 1) / mss)
	assert.InDelta(t, segments, v[result.DataSent]-v[result.Retransmits], 0)
	assert.InDelta(t, v[result.Retransmits], got.Whole[result.QueueDrops], 0)
	// A SYN, a SYN-ACK and a FIN neither carry data nor are pure acknowledgments; the other FIN has
	// data.
	assert.InDelta(t, 3, v[result.Sent]-v[result.DataSent]-v[result.AcksSent], 0)
	assert.InDelta(t, v[result.Sent], got.Whole[result.Packets], 0)
	assert.InDelta(t, 1, got.Whole[result.Jain], 1e-12)
	assert.InDelta(t, 1, v[result.Share], 1e-12)
	assert.InDelta(t, mtu/float64(mss), v[result.Throughput]/v[result.Goodput], .1)
}

// Averages exclude the warm-up; counts include it.
func TestMeansExcludeTheWarmUp(t *testing.T) {
	testenv.NeedNoRace(t)
	c := cell("fixed", 1000)
	// The window exceeds the path's capacity, so the queue fills at once.
	c.Flows[0].TCP.Recovery.FixedWindow = 200 * mss
	c.Flows[0].Start = 5 * time.Second
	c.Warmup = 10 * time.Second
	got := mustRun(t, c, 0)
	v := got.Flows[0].Values
	assert.InEpsilon(t, 1, got.Whole[result.Utilization], .001)
	assert.InEpsilon(t, rate, v[result.Throughput], .001)
	assert.InEpsilon(t, rate*mss/mtu, v[result.Goodput], .001)
	assert.InEpsilon(t, .2, v[result.RTTMin], .02, "with a full queue")
	assert.Greater(t, v[result.Delivered]*8, rate*14*mss/mtu, "of 15 s, not 10 s")

	c.Warmup = 0
	got = mustRun(t, c, 0)
	assert.InEpsilon(t, .75, got.Whole[result.Utilization], .01, "of all 20 s")
	assert.InEpsilon(t, rate, got.Flows[0].Values[result.Throughput], .01, "of the flow's own time")
	assert.InEpsilon(t, .061, got.Flows[0].Values[result.RTTMin], .03)
}

// A single flow on the link is steady. A flow that another flow displaces is not.
func TestTrend(t *testing.T) {
	c := cell("reno", 60)
	c.Warmup = 5 * time.Second
	v := mustRun(t, c, 0).Flows[0].Values
	assert.True(t, result.Steady([]float64{v[result.Trend]}, []float64{v[result.Drift]}))
	addFlow(c, "reno").Start = 15 * time.Second
	addFlow(c, "reno").Start = 10 * time.Second
	got := mustRun(t, c, 0).Flows
	v = got[0].Values
	assert.False(t, result.Steady([]float64{v[result.Trend]}, []float64{v[result.Drift]}))
	assert.Less(t, v[result.Drift], -.05)
	assert.NotContains(t, got[1].Values, result.Trend, "it begins after the warm-up")
}

// variants returns cells of many kinds.
func variants() map[string]*plan.Cell {
	mixed := cell("cubic", 40)
	addFlow(mixed, "reno").Delay = 10 * ms
	up := addFlow(mixed, "bbr")
	up.Upward, up.Start, up.Stop = true, time.Second, 4*time.Second
	lossy := cell("reno", 60)
	lossy.Path.Down.Loss = netem.UniformLoss(.01)
	lossy.Path.Up.Loss = netem.Bursts(.01, 3)
	lossy.Path.Down.Duplicate, lossy.Path.Down.Corrupt.Share = .01, .01
	lossy.Path.Up.Jitter = netem.NormalJitter(2 * ms)
	steps := cell("bbr", 60)
	steps.Path.Down.Rate = netem.Schedule{Steps: []netem.Step{
		{Rate: 4e6}, {At: time.Second, Rate: 1e6}, {At: 3 * time.Second, Rate: 8e6},
	}}
	steps.Path.Down.Queue = netem.CoDel{}
	requests := cell("cubic", 60)
	requests.Flows[0].App = plan.App{Size: 50_000, Requests: 10, Gap: 100 * ms}
	onOff := cell("cubic", 60)
	onOff.Flows[0].App = plan.App{Rate: 2e6, On: 500 * ms, Off: 300 * ms}
	all := map[string]*plan.Cell{
		"mixed": mixed, "lossy": lossy, "steps": steps, "requests": requests, "on-off": onOff,
	}
	for _, c := range all {
		c.Duration = 6 * time.Second
	}
	return all
}

// Two runs of a trial are equal. Another seed or trial changes the run; recording does not.
func TestDeterminism(t *testing.T) {
	for name, c := range variants() {
		t.Run(name, func(t *testing.T) {
			first := mustRun(t, c, 0)
			assert.Equal(t, first, mustRun(t, c, 0))
			recorded, _ := mustRecord(t, c)
			assert.Equal(t, first, recorded)
			assert.NotEqual(t, first.Hash, mustRun(t, c, 1).Hash)
			c.Seed++
			assert.NotEqual(t, first.Hash, mustRun(t, c, 0).Hash)
		})
	}
}

// lost returns the numbers of the packets that the loss model dropped in the direction down.
func lost(t *testing.T, c *plan.Cell) (numbers []int) {
	t.Helper()
	_, r := mustRecord(t, c)
	left := 0
	for _, e := range r.Links[0].Events {
		switch {
		case e.Kind == result.Departure:
			left++
		case e.Kind == result.Drop && e.Why == "loss":
			numbers = append(numbers, left)
		}
	}
	return numbers
}

// Trial i has the same random losses with every algorithm and any number of flows. So the
// difference within a pair is due to the algorithm.
func TestTrialsOfDifferentCellsArePairs(t *testing.T) {
	testenv.NeedNoRace(t)
	for _, loss := range []netem.Loss{netem.UniformLoss(.02), netem.Bursts(.02, 4)} {
		pair := func(cc string, flows int) []int {
			c := cell(cc, 60)
			c.Path.Down.Loss, c.Duration = loss, 16*time.Second
			for range flows - 1 {
				addFlow(c, cc)
			}
			return lost(t, c)
		}
		reno, cubic, two := pair("reno", 1), pair("cubic", 1), pair("reno", 2)
		n := min(len(reno), len(cubic), len(two))
		require.Greater(t, n, 30)
		assert.Equal(t, reno[:n], cubic[:n])
		assert.Equal(t, reno[:n], two[:n])
	}
}

func TestSeeds(t *testing.T) {
	seen := map[uint64]bool{}
	for seed := range uint64(100) {
		for trial := range 100 {
			seen[Seed(seed, trial)] = true
		}
	}
	assert.Len(t, seen, 10_000)
}

func TestManyFlows(t *testing.T) {
	testenv.NeedLong(t)
	c := cell("reno", 2000)
	c.Path.Down.Rate, c.Path.Up.Rate = netem.BitsPerSecond(200e6), netem.BitsPerSecond(200e6)
	for len(c.Flows) < 1000 {
		addFlow(c, "reno").Start = time.Duration(len(c.Flows)) * ms
	}
	c.Duration = 3 * time.Second
	got := mustRun(t, c, 0)
	require.Len(t, got.Flows, 1000)
	served := 0
	for _, f := range got.Flows {
		if f.Values[result.Delivered] > 0 {
			served++
		}
	}
	assert.Greater(t, served, 900, "the SYNs of other clients were lost")
	assert.Greater(t, got.Whole[result.Utilization], .8)
}

// The result of a flow that does not finish gives the reason.
func TestUnfinishedFlowsHaveAReason(t *testing.T) {
	hole := func(retries int) *plan.Cell {
		c := cell("reno", 60)
		c.Flows[0].App.Size = 20_000_000
		c.Flows[0].TCP.Retries.Data = retries
		c.Duration = 300 * time.Second
		c.Path.Down.Rate = netem.Schedule{Steps: []netem.Step{
			{Rate: 12e6}, {At: 2 * time.Second, Rate: 0},
		}}
		return c
	}
	got := mustRun(t, hole(3), 0)
	assert.False(t, got.Finished)
	assert.Regexp(t, `^reno 1: connection timed out after 3 retransmissions: \d+ of 20000000 bytes, `+
		`the last after 2\.\d+ s$`, got.Note)
	assert.Less(t, got.Virtual, 30*time.Second)

	got = mustRun(t, hole(0), 0)
	assert.False(t, got.Finished)
	assert.Regexp(t, `^out of time: .* s, ESTABLISHED, \d+ retransmissions without an answer$`,
		got.Flows[0].Note)
	assert.Equal(t, 300*time.Second, got.Virtual)

	c := cell("reno", 60)
	c.Flows[0].App.Size, c.Flows[0].Stop = 10_000_000, time.Second
	late := addFlow(c, "cubic")
	late.App.Size, late.Start = 1000, 2*time.Second
	got = mustRun(t, c, 0)
	assert.Regexp(t, `^stopped: \d+ of 10000000 bytes`, got.Flows[0].Note)
	c.Flows[0].App.Size = 0
	got = mustRun(t, c, 0)
	assert.True(t, got.Finished, "a flow without a size is complete when it stops: %s", got.Note)
	assert.True(t, got.Flows[1].Finished)
	assert.NotContains(t, got.Flows[0].Values, result.Completion)

	c.Duration = time.Second
	assert.Equal(t, "it did not start in time", mustRun(t, c, 0).Flows[1].Note)
}

func TestErrors(t *testing.T) {
	c := cell("reno", 60)
	c.Flows = nil
	_, _, err := Run(c, 0, Options{})
	require.ErrorContains(t, err, "0 flows")
	c = cell("renoo", 60)
	_, _, err = Run(c, 0, Options{})
	require.ErrorContains(t, err, "renoo")
	c.Flows[0].Ssthresh = 3
	_, _, err = Run(c, 0, Options{})
	require.ErrorContains(t, err, "renoo")
	c = cell("reno", 60)
	c.Flows[0].Protocol = plan.QUIC
	_, _, err = Run(c, 0, Options{})
	require.ErrorIs(t, err, errUnsupported)
	c = cell("reno", 60)
	c.Path.Down.Delay = -1
	_, _, err = Run(c, 0, Options{})
	require.ErrorIs(t, err, netem.ErrConfig)
}

// The captures of a flow's two hosts show the same run.
func TestCaptures(t *testing.T) {
	c := cell("reno", 60)
	c.Flows[0].App.Size = 100_000
	addFlow(c, "cubic").App.Size = 100_000
	files := map[string]*bytes.Buffer{}
	got, _, err := Run(c, 0, Options{Capture: func(flow int, receiver bool) io.Writer {
		if flow > 0 {
			return nil
		}
		b := &bytes.Buffer{}
		files[fmt.Sprint(receiver)] = b
		return b
	}})
	require.NoError(t, err)
	assert.Equal(t, mustRun(t, c, 0), got)
	require.Len(t, files, 2)
	for _, b := range files {
		assert.Greater(t, b.Len(), 100_000)
		assert.Equal(t, []byte{0x0a, 0x0d, 0x0d, 0x0a}, b.Bytes()[:4])
	}
	_, _, err = Run(c, 0, Options{Capture: func(int, bool) io.Writer { return broken{} }})
	require.ErrorIs(t, err, io.ErrShortWrite)
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrShortWrite }
