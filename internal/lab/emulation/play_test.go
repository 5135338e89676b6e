package emulation_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/lab/emulation"
	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/lab/simulation"
)

// The test's own program runs as the processes of its runs.
func TestMain(m *testing.M) {
	if len(os.Args) < 2 {
		os.Exit(m.Run())
	}
	var err error
	switch os.Args[1] {
	case "end":
		err = emulation.Serve(os.Stdin, os.Stdout, emulation.Arms())
	case "middle":
		err = emulation.ServeMiddle(os.Stdin, os.Stdout)
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// options returns the options with which the tests run a document.
func options(t *testing.T, document string) (*emulation.Options, []plan.Cell) {
	t.Helper()
	f, err := plan.Parse("test.yaml", []byte(document))
	require.NoError(t, err)
	cells, err := f.Cells()
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	return &emulation.Options{
		End: []string{self, "end"}, Middle: []string{self, "middle"},
		Plan: emulation.Plan{Document: string(f.Resolved())},
	}, cells
}

const short = `name: short
duration: 2s
warmup: 500ms
path:
  down: {delay: 10ms, rate: 10Mbit/s, queue: 1bdp}
  up: {delay: 10ms}
flows:
  - {name: a, cc: cubic}
  - {name: b, cc: reno, size: 100kB, start: 300ms}
`

func TestRealRunHasTheMetricsOfAVirtualRun(t *testing.T) {
	o, cells := options(t, short)
	got, record, err := o.Play(t.Context(), &cells[0], 0, true)
	require.NoError(t, err)
	timing := emulation.Timing(got.Whole)
	t.Log(timing)
	want, virtual, err := simulation.Run(&cells[0], 0, simulation.Options{Record: true})
	require.NoError(t, err)
	assert.Equal(t, want.Seed, got.Seed)
	if !got.Finished { // a busy machine may be too slow
		assert.Contains(t, got.Note, "out of time: ")
	}
	for m := range want.Whole {
		assert.Contains(t, got.Whole, m)
		t.Log(m, want.Whole[m], got.Whole[m])
	}
	require.Len(t, got.Flows, 2)
	for i := range got.Flows {
		assert.Equal(t, want.Flows[i].Label, got.Flows[i].Label)
		for m := range want.Flows[i].Values {
			if !got.Finished && m == result.Completion {
				continue
			}
			if m == result.Trend || m == result.Drift {
				continue // only virtual runs are divided into parts
			}
			assert.Contains(t, got.Flows[i].Values, m)
			t.Log(i, m, want.Flows[i].Values[m], got.Flows[i].Values[m])
		}
		assert.NotEmpty(t, record.Flows[i].Samples)
		assert.NotEmpty(t, record.Flows[i].Segments)
		assert.NotEmpty(t, record.Flows[i].Progress)
		assert.Equal(t, virtual.Flows[i].MSS, record.Flows[i].MSS)
	}
	if got.Finished {
		assert.InDelta(t, 100_000, got.Flows[1].Values[result.Delivered], 0)
	}
	for i := range record.Links {
		assert.Equal(t, virtual.Links[i].Limit, record.Links[i].Limit)
		assert.NotEmpty(t, record.Links[i].Events)
	}
	assert.Positive(t, timing[result.LateLimit])
	assert.Equal(t, timing.OnTime(), got.Clock == result.RealTime)
}
