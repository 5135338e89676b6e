package lab_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/lab"
	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/lab/simulation"
)

// presetRun is the first trial of a preset's first cell.
type presetRun struct {
	t *testing.T
	*result.Trial
}

// play runs a preset with changes: KEY=VALUE, or OLD -> NEW in its text.
func play(t *testing.T, name string, changes ...string) presetRun {
	t.Helper()
	testenv.NeedLong(t)
	p, ok := lab.FindPreset(name)
	require.True(t, ok, name)
	// The expectations are removed, because some of them name cells that the changes remove.
	text, _, _ := strings.Cut(string(p.Text), "\nexpect:\n")
	text += "\n"
	for _, c := range changes {
		if before, after, ok := strings.Cut(c, " -> "); ok {
			require.Contains(t, text, before)
			text = strings.ReplaceAll(text, before, after)
		}
	}
	f, err := plan.Parse(name+".yaml", []byte(text))
	require.NoError(t, err)
	for _, c := range changes {
		if !strings.Contains(c, " -> ") {
			require.NoError(t, f.Set(c))
		}
	}
	cells, err := f.Cells()
	require.NoError(t, err)
	trial, _, err := simulation.Run(&cells[0], 0, simulation.Options{})
	require.NoError(t, err)
	return presetRun{t, trial}
}

// metric returns a metric of the whole run, or of the run's first flow.
func (o presetRun) metric(m result.Metric) float64 {
	o.t.Helper()
	if v, ok := o.Whole[m]; ok {
		return v
	}
	v, ok := o.Flows[0].Values[m]
	require.True(o.t, ok, "%s: %s", m, o.Note)
	return v
}

// Founding document 000: the number of packets that the fence sends follows the closed form for any
// loss and any packet size. The packet size determines how many packets are needed.
func TestFenceFollowsFormula(t *testing.T) {
	const fence = "flows.0.rcp.classic_window=off"
	closed := func(o presetRun, p float64) float64 {
		return o.metric(result.ClientPackets)*(1+p)/(1-p) + o.metric(result.Completion)/.01
	}
	for loss, p := range map[string]float64{"5%": .05, "30%": .3, "55%": .55} {
		o := play(t, "fence", fence, "path.down.loss="+loss)
		assert.InEpsilon(t, closed(o, p), o.metric(result.ClientSent), .08, loss)
	}
	whole, small := play(t, "fence", fence), play(t, "fence", fence, "flows.0.rcp.packet_size=64")
	assert.InEpsilon(t, closed(small, .1), small.metric(result.ClientSent), .05)
	// There are 1000 pieces of 300 bytes on average, and the last packet of each piece is half
	// empty on average.
	assert.InDelta(t, 300_000/64+500, small.metric(result.ClientPackets), 200)
	assert.NotEqual(t, whole.Hash, play(t, "fence", fence, "seed=2").Hash)
	slow := play(t, "fence", fence, "flows.0.rcp.tick=20ms")
	assert.InEpsilon(t, slow.metric(result.Completion)/.02, slow.metric(result.ClientAcks), .02)
}

// Founding document 002, corrected: windows grow by one segment per round trip, the loss limits
// their size, and the queue determines their round trips.
func TestNotebookFollowsFormulas(t *testing.T) {
	low := func(changes ...string) presetRun {
		return play(t, "tahoe-low", append(changes, "flows.0.cc=tahoe", "duration=60s")...)
	}
	half, one := low(), low("path.down.queue.limit=53680B")
	assert.InEpsilon(t, (53680-26400)*8/2.435e6,
		one.metric(result.RTTP99)-half.metric(result.RTTP99), .25, "a longer queue")
	assert.Greater(t, one.metric(result.Utilization), half.metric(result.Utilization))
	assert.NotEqual(t, half.Hash, low("seed=2").Hash)

	high := func(changes ...string) presetRun {
		return play(t, "tahoe-high", append(changes, "duration=60s")...)
	}
	const rounds = 60 / .176
	whole, small := high(), high("flows.0.mss=730")
	assert.InEpsilon(t, 10*rounds+rounds*rounds/2, whole.metric(result.DataSent), .06)
	assert.InEpsilon(t, whole.metric(result.DataSent), small.metric(result.DataSent), .01)
	assert.InEpsilon(t, 718./1448,
		small.metric(result.Delivered)/whole.metric(result.Delivered), .01)
	much := high("path.down.loss=every 400").metric(result.CwndMean)
	little := high("path.down.loss=every 1600").metric(result.CwndMean)
	assert.InEpsilon(t, 2, little/much, .2, "1/√p")

	for window, packets := range map[string]float64{"8pkt": 8, "16pkt": 16} {
		o := play(t, "fixed-1000", "flows.0.window="+window)
		assert.InEpsilon(t, packets*1448*8/o.metric(result.RTTMean), o.metric(result.Goodput), .03)
	}
}

// Founding document 002, as published: a window that fits delivers segments of 80 bytes once per
// round trip, and a loss reduces that.
func TestPublishedNotebookFollowsFormulas(t *testing.T) {
	fixed := func(changes ...string) presetRun {
		return play(t, "fixed-1000-published", append(changes, "duration=20s")...)
	}
	for window, n := range map[string]float64{"50": 50, "100": 100} {
		o := fixed("flows.0.notebook.window=" + window)
		assert.InEpsilon(t, 80*n/o.metric(result.RTTMean), o.metric(result.NotebookThroughput), .03)
		assert.InDelta(t, .176, o.metric(result.RTTMin), .01)
	}
	tahoe := func(changes ...string) presetRun {
		return play(t, "tahoe-low-published", append(changes, "duration=40s")...)
	}
	clean := tahoe()
	assert.NotEqual(t, clean.Hash, tahoe("seed=2").Hash)
	assert.Less(t, tahoe("path.down.loss=1%").metric(result.NotebookThroughput),
		.7*clean.metric(result.NotebookThroughput))
	assert.Greater(t, tahoe("path.down.queue.limit=105600B").metric(result.CwndMax),
		1.3*clean.metric(result.CwndMax))
}

// Founding document 003: the payload size determines the number of packets, each is sent until it
// arrives, and TCP takes the time that follows from the link's rate.
func TestObjectsFollowFormulas(t *testing.T) {
	const bytes = 10 * (9998 + 999651)
	pieces := func(payload int) float64 {
		each := func(size int) int { return (size + payload - 1) / payload }
		return float64(10 * (each(9998) + each(999651)))
	}
	for payload, text := range map[int]string{1325: "1325", 600: "600"} {
		o := play(t, "rdt-loss", "path.down.loss=0%",
			"protocol: rdt} -> protocol: rdt, rdt: {payload: "+text+"}}")
		assert.InEpsilon(t, pieces(payload), o.metric(result.ServerData), .01, text)
		lossy := play(t, "rdt-loss", "path.down.loss=10%",
			"protocol: rdt} -> protocol: rdt, rdt: {payload: "+text+"}}")
		assert.Greater(t, lossy.metric(result.ServerData), pieces(payload)/.9*.98, text)
		assert.InEpsilon(t, 20, lossy.metric(result.ObjectsDone), 0)
		assert.NotEqual(t, o.Hash, lossy.Hash)
	}
	for rate, bits := range map[string]float64{"100Mbit/s": 1e8, "300Mbit/s": 3e8} {
		o := play(t, "rdt-baseline", "path.down.rate="+rate, "path.down.queue=4bdp",
			"{name: objects, protocol: rdt, rdt: {payload: 10000, window: 21, cost: 190us}} -> "+
				"{name: objects, cc: cubic, objects: {}}")
		assert.InEpsilon(t, bytes*8*1500/1448/bits, o.metric(result.Completion), .06, rate)
	}
	a := play(t, "rdt-loss", "path.down.loss=5%")
	assert.NotEqual(t, a.Hash, play(t, "rdt-loss", "path.down.loss=5%", "seed=2").Hash)
}

// Founding documents 001 and 004: the transfer time of a file follows from the link's rate, the
// headers, and the window of 65,535 bytes. With random loss, the time grows with the square root of
// the loss.
func TestFilesFollowFormulas(t *testing.T) {
	clean := func(changes ...string) presetRun {
		changes = append(changes, "flows.0.size=5185067B", "flows.0.cc=reno")
		return play(t, "files-clean", changes...)
	}
	for _, c := range []struct {
		rate string
		mss  string
		want float64
	}{
		{"80Mbit/s", "1360", 80e6 * 1360 / 1400},
		{"40Mbit/s", "1360", 40e6 * 1360 / 1400},
		{"80Mbit/s", "680", 80e6 * 680 / 720},
	} {
		o := clean("path.down.rate="+c.rate, "flows.0.mss="+c.mss)
		assert.InEpsilon(t, c.want, o.metric(result.Goodput), .02, "%s %s", c.rate, c.mss)
	}
	far := clean("path.down.delay=10ms", "path.up.delay=10ms", "flows.0.size=20MB")
	assert.InEpsilon(t, 65535*8/.0203, far.metric(result.Goodput), .08, "a window each round trip")

	lossy := func(every string, changes ...string) float64 {
		return play(t, "files-2pct", append(changes, "path.down.delay=10ms", "path.up.delay=10ms",
			"path.up.loss=none", "path.down.loss=every "+every, "flows.0.size=20MB", "flows.0.cc=reno",
			"  loss: {key: [path.down.loss, path.up.loss], values: [2%, 5%]}\n -> ")...).
			metric(result.Goodput)
	}
	assert.InEpsilon(t, math.Sqrt(1600./400), lossy("1600")/lossy("400"), .2, "1/√p")
	seed := play(t, "files-2pct", "flows.0.size=5185067B")
	assert.NotEqual(t, seed.Hash, play(t, "files-2pct", "flows.0.size=5185067B", "seed=2").Hash)
}
