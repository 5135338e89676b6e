package plan_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/lab/trace"
	"github.com/tidepool-net/tidepool/internal/netem"
)

// A trace may be described in place of a file: internal/lab/trace makes it then.
func TestGeneratedTraces(t *testing.T) {
	const rate = 12_000_000
	made := func(t trace.Trace, _ error) trace.Trace { return t }
	stalled := trace.Spec{
		Kind: "poisson", Rate: rate, Length: 3 * time.Second, Stall: 2 * time.Second,
		StallRate: 120_000, Seed: 1,
	}
	for text, want := range map[string]trace.Trace{
		"{poisson: 12Mbit/s, length: 3s, stall: 2s, stall_rate: 120kbit/s}": made(stalled.Make()),
		"{const: 12Mbit/s, length: 5ms}":                                    made(trace.Constant(rate, 5*ms)),
		"[0, 1, 1, 5]":                                                      {0, ms, ms, 5 * ms},
		"{poisson: 12Mbit/s}":                                               made(trace.Poisson(rate, time.Minute, 1)),
		"{poisson: 12Mbit/s, seed: 2}":                                      made(trace.Poisson(rate, time.Minute, 2)),
		"{onoff: 12Mbit/s, on: 2ms, off: 3ms}":                              made(trace.OnOff(rate, 2*ms, 3*ms, time.Minute)),
		"{cell: 12Mbit/s, low: 6Mbit/s, length: 3s}":                        made(trace.Cell(rate/2, rate, 2*time.Second, 3*time.Second, 1)),
		"{cell: 12Mbit/s, stay: 50ms, length: 3s}":                          made(trace.Cell(rate/10, rate, 50*ms, 3*time.Second, 1)),
	} {
		require.NotEmpty(t, want)
		cells, err := parse(t, down("delay: 1ms, trace: "+text)).Cells()
		require.NoError(t, err, text)
		assert.Equal(t, netem.Opportunities{At: want}, cells[0].Path.Down.Rate, text)
	}
}

// What a trace should be is said once.
func TestATraceThatIsNone(t *testing.T) {
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
