package simulation_test

import (
	"fmt"
	"math"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/lab/simulation"
	"github.com/tidepool-net/tidepool/internal/tcp/starlark"
)

// cellsOf returns the cells of an experiment file whose scripts are in files.
func cellsOf(t *testing.T, text []byte, files map[string]string, sweeps ...string) []plan.Cell {
	t.Helper()
	f, err := plan.Parse("test.yaml", text)
	require.NoError(t, err)
	for _, s := range sweeps {
		require.NoError(t, f.Sweep(s))
	}
	f.Load = func(name string) ([]byte, error) {
		if s, ok := files[name]; ok {
			return []byte(s), nil
		}
		return nil, os.ErrNotExist
	}
	cells, err := f.Cells()
	require.NoError(t, err)
	return cells
}

func tutorial(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../../tutorial/" + name)
	require.NoError(t, err)
	return string(text)
}

// TestTahoeScript checks that tutorial/tahoe.star behaves like the built-in Tahoe, packet for
// packet, in the tutorial's experiment and over much worse paths.
func TestTahoeScript(t *testing.T) {
	files := map[string]string{"tahoe.star": tutorial(t, "tahoe.star")}
	sweep := "flows.0.cc=tahoe,tahoe.star,reno"
	for loss, most := range map[string]float64{"0.1%": 0, "1%": 0, "20%": 1} {
		if !testenv.Long() && loss != "20%" {
			continue
		}
		cells := cellsOf(t, []byte(tutorial(t, "tahoe.yaml")), files, "path.down.loss="+loss, sweep)
		for trial := range 3 {
			var hashes [3]uint64
			var curves [3][]result.Sample
			timeouts := 0.0
			for i := range cells {
				r, record, err := simulation.Run(&cells[i], trial, simulation.Options{Record: true})
				require.NoError(t, err)
				hashes[i], curves[i] = r.Hash, record.Flows[0].Samples
				timeouts += r.Flows[0].Values[result.Timeouts]
			}
			require.NotEmpty(t, curves[0])
			require.Equal(t, curves[0], curves[1], "%s, trial %d", loss, trial)
			assert.Equal(t, hashes[0], hashes[1], "%s, trial %d", loss, trial)
			assert.NotEqual(t, hashes[0], hashes[2], "%s, trial %d", loss, trial)
			assert.GreaterOrEqual(t, timeouts, most, loss)
		}
	}
}

const twoScripts = `
name: two
duration: 5s
path: {down: {rate: 5Mbit/s, delay: 20ms, queue: 30pkt}, up: {delay: 20ms}}
flows: [{cc: small.star}, {cc: large.star, direction: up}]
`

func fixed(segments int, more string) string {
	return fmt.Sprintf("def init(state, conn):\n  state.cwnd = %d * conn.mss\n  print(state.cwnd)\n"+
		"def on_ack(state, ack):\n  %s\ndef on_loss(state, loss): pass\n", segments, more)
}

// Two flows of an experiment can have different scripts, and each printed line has its time.
func TestEachFlowHasItsScript(t *testing.T) {
	cells := cellsOf(t, []byte(twoScripts), map[string]string{
		"small.star": fixed(2, "pass"), "large.star": fixed(4, "pass"),
	})
	var lines []string
	r, _, err := simulation.Run(&cells[0], 0, simulation.Options{
		Printed: func(at time.Duration, line string) {
			assert.Positive(t, at)
			lines = append(lines, line)
		},
	})
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{"small.star: 2896", "large.star: 5792"}, lines)
	small, large := r.Flows[0].Values[result.Goodput], r.Flows[1].Values[result.Goodput]
	assert.InEpsilon(t, 2*small, large, 0.1, "W/RTT each")
}

// TestFailingScriptEndsTheRun checks that the error names the position and the flow, and that the
// run has no result.
func TestFailingScriptEndsTheRun(t *testing.T) {
	cells := cellsOf(t, []byte(twoScripts), map[string]string{
		"small.star": fixed(2, "if ack.now > 1: fail('enough')"), "large.star": fixed(4, "pass"),
	})
	r, record, err := simulation.Run(&cells[0], 0, simulation.Options{Record: true})
	assert.Nil(t, r)
	assert.Nil(t, record)
	var e *starlark.Error
	require.ErrorAs(t, err, &e)
	assert.Equal(t, []any{"small.star", 5, "on_ack"}, []any{e.File, e.Line, e.Call})
	assert.InDelta(t, 1.02, e.After.Seconds(), 0.03)
	assert.Regexp(t, `flow small\.star, at 1\.0[0-9]{2} s: small\.star:5:`, err.Error())
}

// TestDCTCPMarkedShare checks that the share of marked bytes in tutorial/dctcp.star converges to
// the value of Alizadeh et al., SIGCOMM 2010, §3.3: alpha² (1 - alpha/4) = (2 W + 1) / (W + 1)²,
// where W is the window at which the queue reaches the threshold. The share is a column of the
// script's samples.
func TestDCTCPMarkedShare(t *testing.T) {
	files := map[string]string{"dctcp.star": tutorial(t, "dctcp.star")}
	cells := cellsOf(t, []byte(tutorial(t, "dctcp.yaml")), files, "flows.0.cc=dctcp.star")
	_, record, err := simulation.Run(&cells[0], 0, simulation.Options{Record: true})
	require.NoError(t, err)
	f := &record.Flows[0]
	require.Equal(t, []string{"alpha"}, f.Own)
	sum, n := 0.0, 0
	for _, s := range f.Samples {
		if s.At > 2*time.Second {
			require.Len(t, s.Own, 1)
			sum, n = sum+s.Own[0], n+1
		}
	}
	w := 100e6*4e-3/8/1500 + 20
	want, alpha := (2*w+1)/((w+1)*(w+1)), sum/float64(n)
	assert.InEpsilon(t, math.Sqrt(want), alpha*math.Sqrt(1-alpha/4), 0.1, "alpha %.3f", alpha)
}

// TestRecordedVariables checks that each flow has its own columns, with values from the first call
// on.
func TestRecordedVariables(t *testing.T) {
	cells := cellsOf(t, []byte(twoScripts), map[string]string{
		"small.star": fixed(2, "if ack.now > 1: record('late', ack.now)"),
		"large.star": fixed(4, "record('n', 1); record('m', -2)"),
	})
	_, record, err := simulation.Run(&cells[0], 0, simulation.Options{Record: true})
	require.NoError(t, err)
	assert.Equal(t, []string{"late"}, record.Flows[0].Own)
	assert.Equal(t, []string{"n", "m"}, record.Flows[1].Own)
	for _, s := range record.Flows[0].Samples {
		assert.Equal(t, s.At > 1050*time.Millisecond, len(s.Own) > 0, "%v", s.At)
	}
	last := record.Flows[1].Samples[len(record.Flows[1].Samples)-1]
	assert.Equal(t, []float64{1, -2}, last.Own)
}
