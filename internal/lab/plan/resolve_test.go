package plan_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/netem"
)

// roundTrip checks that the resolved file results in the same cells, and that resolving it again
// changes nothing.
func roundTrip(t *testing.T, f *plan.File) {
	t.Helper()
	want, err := f.Cells()
	require.NoError(t, err)
	text := f.Resolved()
	again, err := plan.Parse("x.yaml", text)
	require.NoError(t, err, "%s", text)
	again.Load = f.Load
	got, err := again.Cells()
	require.NoError(t, err, "%s", text)
	for i := range got { // line numbers differ, and functions cannot be compared
		for j := range got[i].Flows {
			a, b := &got[i].Flows[j].TCP.Algorithms, &want[i].Flows[j].TCP.Algorithms
			require.Len(t, *a, len(*b))
			*a, *b = nil, nil
		}
		for j := range got[i].Expect {
			a, b := &got[i].Expect[j], &want[i].Expect[j]
			assert.Equal(t, b.Claim.String(), a.Claim.String())
			assert.InDelta(t, b.Claim.Within, a.Claim.Within, 0)
			a.Line, a.Claim, b.Claim = b.Line, nil, nil
		}
	}
	assert.Equal(t, want, got, "%s", text)
	assert.Equal(t, string(text), string(again.Resolved()))
}

// The file that is saved with results produces the same results again.
func TestResolved(t *testing.T) {
	for _, text := range []string{
		whole, tahoe, swept + "  - {value: goodput > 0, source: s}\n  - {value: rtt, is: path.rtt, within: 50%, source: s}\n",
		head + "about: \"two\\nlines: \\\"and\\\" a #\"\n" + onePath + oneFlow,
		head + "path: {down: delay 20ms loss 5%, up: same}\n" + oneFlow,
		head + "path: {down: {rate: 1Mbit}, up: {rate: same}}\n" + oneFlow,
		head + "path: {down: {delay: 1ms, rate: 1Mbit, loss: 'at [1, 2]'}}\n" + oneFlow +
			"sweep: {path.down.rate: [none, 2Mbit], path.down.queue: [infinite]}\n",
		head + "path: {down: {delay: 3ms}}\n" + oneFlow + "sweep: {path.up: [same, 'delay 5ms']}\n",
		head +
			"mm: mm-delay 88 mm-loss downlink .01\nflows: [{cc: fixed, window: .5kB}, {name: b, size: 1MB}]\n",
		whole + "sweep: {arm: {a: {flows.0: {cc: bbr}}, b: {flows.0.cc: tahoe}}}\n",
		whole + "sweep: {p: {key: [path.down.loss, path.up.loss], values: [1%, {every: 10}]}}\n",
		whole + "sweep: {flows: [[{cc: reno}], [{cc: cubic, count: 3, interval: 1s}]]}\n",
		whole + "sweep: {flows.0: [{protocol: rcp, burst: 16}, {protocol: notebook}, {cc: reno}]}\n",
		flow("protocol: rdt, rdt: {push: on}, count: 2"),
		flow("fast_convergence: off"),
	} {
		roundTrip(t, parse(t, text))
	}
	f := parse(t, swept+"  - {value: goodput(cubic) > 0, source: s}\n  - {value: goodput > 0, source: s}\n")
	require.NoError(t, f.Set("path.down.jitter={normal: 3ms}"))
	require.NoError(t, f.Set("trials=5"))
	require.NoError(t, f.Set("path.up.loss=1%"))
	require.NoError(t, f.Sweep("mtu=1500,9000"))
	roundTrip(t, f)
	assert.Contains(t, string(f.Resolved()), "trials: 5\n")
	f = parse(t, swept+"  - {value: goodput(cubic) > 0, source: s}\n  - {value: goodput > 0, source: s}\n"+
		"  - {where: {cc: cubic}, value: goodput, above: 0, source: s}\n")
	require.NoError(t, f.Sweep("flows.0.cc=reno,bbr"))
	roundTrip(t, f)
	assert.NotContains(t, string(f.Resolved()), "cubic", "these expectations do not apply")
	f = parse(t, down("trace: slow.trace"))
	f.Load = traces.load
	roundTrip(t, f)
}

func FuzzParse(f *testing.F) {
	for _, b := range bad {
		f.Add(b.text)
	}
	f.Add(tahoe)
	f.Add(swept + "  - {value: rtt, is: path.rtt, within: 50%, source: s}\n")
	f.Add(`{"name": "x", "path": {"down": {"delay": "10ms", "rate": "1Mbit/s"}},
		"flows": [{"cc": "reno"}]}`)
	f.Add(head +
		"mm: mm-delay 88 mm-link T T --downlink-queue=droptail " +
		"--downlink-queue-args=bytes=26400\n" +
		oneFlow)
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<14 {
			return
		}
		file, err := plan.Parse("x.yaml", []byte(text))
		if err != nil {
			assert.NotEmpty(t, err.Error())
			return
		}
		file.Load = traces.load
		cells, err := file.Cells()
		if err != nil || len(cells) > 100 {
			return
		}
		for _, c := range cells {
			for _, cfg := range []netem.Config{c.Path.Down, c.Path.Up} {
				_, err := netem.New(cfg, func(string) *rand.Rand {
					return rand.New(rand.NewPCG(1,
						2))
				})
				require.NoError(t, err, "netem accepts the link")
			}
		}
		roundTrip(t, file)
	})
}

func FuzzFlags(f *testing.F) {
	f.Add("path.down.queue.limit=1bdp", "flows.0.cc=reno,cubic")
	f.Add("flows.*.iw=3", "path.*.delay=1ms,{,")
	f.Add("x", "=")
	f.Fuzz(func(t *testing.T, set, sweep string) {
		file, err := plan.Parse("x.yaml", []byte(tahoe))
		require.NoError(t, err)
		if file.Set(set) != nil || file.Sweep(sweep) != nil {
			return
		}
		if cells, err := file.Cells(); err == nil && len(cells) < 100 {
			roundTrip(t, file)
		}
	})
}
