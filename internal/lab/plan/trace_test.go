package plan_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/netem"
)

// A trace can be described instead of read from a file: netem.TraceSpec generates it.
func TestGeneratedTraces(t *testing.T) {
	const rate = 12_000_000
	made := func(spec netem.TraceSpec) netem.Trace {
		spec.Seed = max(spec.Seed, 1) // the default of a file
		got, err := spec.Make()
		require.NoError(t, err)
		return got
	}
	stalled := netem.TraceSpec{
		Kind: "poisson", Rate: rate, Length: 3 * time.Second, Stall: 2 * time.Second,
		StallRate: 120_000, Seed: 1,
	}
	for text, want := range map[string]netem.Trace{
		"{poisson: 12Mbit/s, length: 3s, stall: 2s, stall_rate: 120kbit/s}": made(stalled),
		"{const: 12Mbit/s, length: 5ms}":                                    made(netem.TraceSpec{Kind: "const", Rate: rate, Length: 5 * ms}),
		"[0, 1, 1, 5]":                                                      {0, ms, ms, 5 * ms},
		"{poisson: 12Mbit/s}":                                               made(netem.TraceSpec{Kind: "poisson", Rate: rate, Length: time.Minute}),
		"{poisson: 12Mbit/s, seed: 2}":                                      made(netem.TraceSpec{Kind: "poisson", Rate: rate, Length: time.Minute, Seed: 2}),
		"{onoff: 12Mbit/s, on: 2ms, off: 3ms}":                              made(netem.TraceSpec{Kind: "onoff", Rate: rate, On: 2 * ms, Off: 3 * ms, Length: time.Minute}),
		"{cell: 12Mbit/s, low: 6Mbit/s, length: 3s}":                        made(netem.TraceSpec{Kind: "cell", Low: rate / 2, Rate: rate, Stay: 2 * time.Second, Length: 3 * time.Second}),
		"{cell: 12Mbit/s, stay: 50ms, length: 3s}":                          made(netem.TraceSpec{Kind: "cell", Rate: rate, Stay: 50 * ms, Length: 3 * time.Second}),
	} {
		require.NotEmpty(t, want)
		cells, err := parse(t, down("delay: 1ms, trace: "+text)).Cells()
		require.NoError(t, err, text)
		assert.Equal(t, netem.Opportunities{At: want}, cells[0].Path.Down.Rate, text)
	}
}

// The error message gives the expected form of a trace once.
func TestInvalidTrace(t *testing.T) {
	for text, want := range map[string]string{
		"":        "is.trace: no lines; expected a time in milliseconds in each\n",
		"1\nxx\n": "is.trace:2: \"xx\" is not a time; expected whole milliseconds such as 17\n",
	} {
		f, err := plan.Parse("x.yaml", []byte("name: x\nduration: 1s\n"+
			"path: {down: {delay: 1ms, trace: is.trace}, up: {delay: 1ms}}\nflows: [{cc: reno}]\n"))
		require.NoError(t, err)
		f.Load = func(string) ([]byte, error) { return []byte(text), nil }
		_, err = f.Cells()
		assert.ErrorContains(t, err, want)
	}
}
