package netem_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
	"github.com/tidepool-net/tidepool/internal/netem"
)

func made(t *testing.T, spec netem.TraceSpec) netem.Trace {
	t.Helper()
	got, err := spec.Make()
	require.NoError(t, err)
	return got
}

func TestParseTrace(t *testing.T) {
	got, warnings, err := netem.ParseTrace("t", []byte("0\n1\n1\n5\n"))
	require.NoError(t, err)
	assert.Empty(t, warnings)
	assert.Equal(t, netem.Trace{0, ms, ms, 5 * ms}, got)
	assert.Equal(t, "0\n1\n1\n5\n", string(got.Format()))

	got, warnings, err = netem.ParseTrace("t", []byte("1\r\n2\r\n\r\n\n"))
	require.NoError(t, err)
	assert.Len(t, got, 2)
	assert.Equal(t, []string{"t:3: empty lines at the end", "t: lines end in carriage returns"}, warnings)

	got, _, err = netem.ParseTrace("t", []byte("7"))
	require.NoError(t, err)
	assert.Equal(t, netem.Trace{7 * ms}, got)
}

// Traces that mahimahi rejects are errors that name the place.
func TestParseTraceErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                "t: no lines; expected a time in milliseconds in each",
		"1\n\n2\n":        "t:2: an empty line; expected a time in milliseconds",
		"1\n1.5\n":        `t:2:2: "1.5" is not a time; expected whole milliseconds such as 17`,
		"-1\n":            `t:1:1: "-1" is not a time; expected whole milliseconds such as 17`,
		"5\n4\n":          "t:2: 4 ms follows 5 ms; expected times in ascending order",
		"0\n0\n":          "t:2: the last time is 0; expected 1 ms or more: the length",
		"1 2\n":           `t:1:2: "1 2" is not a time; expected whole milliseconds such as 17`,
		"99999999999\n":   "t:1: 99999999999 ms is later than 1000h0m0s",
		"\x00\xff\x00\n1": `t:1:1: "\x00\xff\x00" is not a time; expected whole milliseconds such as 17`,
	} {
		_, _, err := netem.ParseTrace("t", []byte(text))
		require.EqualError(t, err, want, "%q", text)
		var e *diagnostic.Error
		require.ErrorAs(t, err, &e)
	}
}

// These are rates as in mahimahi's own traces: one line per millisecond is 12 Mbit/s, nine lines
// are 108 Mbit/s, and one line in 100 ms is 0.12 Mbit/s.
func TestConstantTrace(t *testing.T) {
	for _, c := range []struct {
		rate   int64
		length time.Duration
		want   string
	}{
		{12e6, 3 * ms, "1\n2\n3\n"},
		{108e6, ms, strings.Repeat("1\n", 9)},
		{120e3, 200 * ms, "100\n200\n"},
		{18e6, 4 * ms, "1\n2\n2\n3\n4\n4\n"},
	} {
		got := made(t, netem.TraceSpec{Kind: "const", Rate: c.rate, Length: c.length})
		assert.Equal(t, c.want, string(got.Format()), "%d", c.rate)
		info := got.Info()
		assert.InDelta(t, float64(c.rate), info.Mean, 1)
		assert.InDelta(t, float64(c.rate)*1504/1500, info.Bytes, 1)
	}
	// The man page has these six lines, and describes them as 12 Mbit/s.
	got, _, err := netem.ParseTrace("t", []byte("0\n1\n2\n3\n4\n5\n"))
	require.NoError(t, err)
	assert.InDelta(t, 14.4e6, got.Info().Mean, 1)
}

func TestScheduleTrace(t *testing.T) {
	got, err := netem.Schedule{
		Steps: []netem.Step{{0, 12e6}, {2 * ms, 0}, {5 * ms, 24e6}}, Every: 6 * ms,
	}.Trace()
	require.NoError(t, err)
	assert.Equal(t, "1\n2\n6\n6\n", string(got.Format()))
	assert.Equal(t, 4*ms, got.Info().Gap)
	assert.Equal(t, 2, got.Info().Burst)
	spec := netem.TraceSpec{Kind: "onoff", Rate: 12e6, On: 2 * ms, Off: 3 * ms, Length: 7 * ms}
	got = made(t, spec)
	assert.Equal(t, "1\n2\n6\n7\n", string(got.Format()))
	spec.Length = 10 * ms
	got = made(t, spec)
	assert.Equal(t, "1\n2\n6\n7\n10\n", string(got.Format()), "includes the last pause")
}

// The number of packets in a Poisson trace is within four deviations of its mean. The deviation of
// the gaps equals their mean. The same seed makes the same trace.
func TestPoissonTrace(t *testing.T) {
	const rate, seconds = 2.64e6, 600
	spec := netem.TraceSpec{Kind: "poisson", Rate: rate, Length: seconds * time.Second, Seed: 1}
	got := made(t, spec)
	n := rate * seconds / 12000
	assert.InDelta(t, n, float64(len(got)), 4*363, "4 σ of %v packets", n)
	var sum, squares float64
	for i := 1; i < len(got); i++ {
		gap := (got[i] - got[i-1]).Seconds() * 1e3
		sum += gap
		squares += gap * gap
	}
	mean := sum / float64(len(got)-1)
	variance := squares/float64(len(got)-1) - mean*mean
	// Rounding both times down to milliseconds adds a variance of 1/6.
	assert.InDelta(t, mean*mean+1.0/6, variance, .03*variance)
	assert.Equal(t, got, made(t, spec))
	spec.Seed = 2
	assert.NotEqual(t, got, made(t, spec))
	back, _, err := netem.ParseTrace("t", got.Format())
	require.NoError(t, err)
	assert.Equal(t, got, back)
}

func TestCellTrace(t *testing.T) {
	got := made(t, netem.TraceSpec{
		Kind: "cell", Low: 1e6, Rate: 16e6, Stay: 2 * time.Second, Length: 300 * time.Second, Seed: 7,
	})
	info := got.Info()
	assert.Greater(t, info.Mean, 1e6)
	assert.Less(t, info.Mean, 16e6)
	assert.Greater(t, info.Rates[3], 3*info.Rates[1], "the rate varies")
	assert.IsNonDecreasing(t, got)
}

// A trace that stalls sends at the stall's rate, or nothing. For the rest of its length it sends as
// its kind does, and then it starts again.
func TestTraceStall(t *testing.T) {
	spec := netem.TraceSpec{
		Kind: "poisson", Rate: 2_637_000, Length: time.Minute, Seed: 264,
		Stall: 5 * time.Second, StallRate: 120_000,
	}
	got, err := spec.Make()
	require.NoError(t, err)
	require.Greater(t, len(got), 50)
	for i := range 50 {
		require.Equal(t, time.Duration(i+1)*100*ms, got[i], "a packet in 100 ms")
	}
	rest := made(t, netem.TraceSpec{
		Kind: "poisson", Rate: 2_637_000, Length: 55 * time.Second, Seed: 264,
	})
	require.Len(t, got, 50+len(rest))
	for i, at := range rest {
		require.Equal(t, 5*time.Second+at, got[50+i])
	}
	// The recorded trace has 12,177 packets in 60.009 s. A Poisson process of this rate has as many
	// in 55 s, with a standard deviation of 110.
	assert.InDelta(t, 12_177, len(got), 3*110)
	assert.Equal(t, 100*ms, got.Info().Gap)

	spec.StallRate = 0
	silent, err := spec.Make()
	require.NoError(t, err)
	assert.Equal(t, got[50:], silent)
}

func TestImpossibleTraces(t *testing.T) {
	for name, generate := range map[string]func() (netem.Trace, error){
		"no rate":   netem.TraceSpec{Kind: "const", Length: time.Second}.Make,
		"no length": netem.TraceSpec{Kind: "const", Rate: 1e6}.Make,
		"too many":  netem.TraceSpec{Kind: "const", Rate: 2e10, Length: time.Hour}.Make,
		"too slow":  netem.TraceSpec{Kind: "const", Rate: 1, Length: time.Second}.Make,
		"no off":    netem.TraceSpec{Kind: "onoff", Rate: 1e6, On: ms, Length: time.Second}.Make,
		"high, low": netem.TraceSpec{Kind: "cell", Low: 2e6, Rate: 1e6, Stay: ms, Length: time.Second}.Make,
		"no steps":  netem.Schedule{Every: time.Second}.Trace,
		"negative":  netem.Schedule{Steps: []netem.Step{{0, -1}}, Every: time.Second}.Trace,
		"no kind":   netem.TraceSpec{Kind: "poison", Rate: 1e6, Length: time.Second}.Make,
		"all stall": netem.TraceSpec{Kind: "const", Rate: 1e6, Length: ms, Stall: ms}.Make,
		"odd stall": netem.TraceSpec{Kind: "const", Rate: 1e6, Length: time.Second, Stall: 1500}.Make,
		"no stall":  netem.TraceSpec{Kind: "const", Rate: 1e6, Length: time.Second, StallRate: 1}.Make,
	} {
		_, err := generate()
		require.ErrorIs(t, err, netem.ErrTrace, name)
	}
}

func TestParseRates(t *testing.T) {
	lap, err := netem.ParseRates("r", []byte("# seconds Mbit/s\n0 12\n0.002, 0\r\n0.005\t24\n0.006 0\n"))
	require.NoError(t, err)
	assert.Equal(t, netem.Schedule{
		Steps: []netem.Step{{0, 12e6}, {2 * ms, 0}, {5 * ms, 24e6}}, Every: 6 * ms,
	}, lap)
	made, err := lap.Trace()
	require.NoError(t, err)
	assert.Equal(t, "1\n2\n6\n6\n", string(made.Format()))
	assert.Equal(t, "0 12\n0.002 0\n0.004 12\n0.006 12\n", string(made.FormatRates(2*ms)))
	assert.Equal(t, "0 6\n0.004 12\n0.006 12\n", string(made.FormatRates(4*ms)), "the whole trace")
	assert.Equal(t, "0 8\n0.006 8\n", string(made.FormatRates(time.Second)), "a trace of 6 ms")
	for text, want := range map[string]string{
		"0 1\n":         "r: no rates; expected two lines or more: the last gives the end",
		"0 1\n1\n":      "r:2: 1 columns; expected two: seconds and Mbit/s",
		"0 1\n0 2\n":    "r:2: 0 s follows 0 s; expected times in ascending order",
		"0 x\n":         `r:1: "0 x"; expected two numbers: seconds and Mbit/s`,
		"0 NaN\n1 1\n":  `r:1: "0 NaN"; expected two numbers: seconds and Mbit/s`,
		"0 -1\n1 1\n":   `r:1: "0 -1"; expected two numbers: seconds and Mbit/s`,
		"0 1e99\n1 1\n": `r:1: "0 1e99"; expected two numbers: seconds and Mbit/s`,
	} {
		_, err := netem.ParseRates("r", []byte(text))
		require.EqualError(t, err, want)
	}
}

func FuzzParseTrace(f *testing.F) {
	f.Add([]byte("0\n1\n1\n5\n"))
	f.Add([]byte("1\r\n2\r\n\r\n"))
	f.Add([]byte("0 12\n0.5 0\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, _, err := netem.ParseTrace("t", text)
		var e *diagnostic.Error
		if err != nil {
			require.ErrorAs(t, err, &e)
		} else {
			back, warnings, err := netem.ParseTrace("t", got.Format())
			require.NoError(t, err)
			require.Empty(t, warnings)
			require.Equal(t, got, back)
			info := got.Info()
			require.Positive(t, info.Mean)
			require.GreaterOrEqual(t, info.Rates[4], info.Rates[0])
		}
		lap, err := netem.ParseRates("r", text)
		if err != nil {
			require.ErrorAs(t, err, &e)
			return
		}
		for i, s := range lap.Steps {
			require.GreaterOrEqual(t, s.Rate, netem.BitsPerSecond(0))
			require.GreaterOrEqual(t, s.At, lap.Steps[max(0, i-1)].At)
			require.GreaterOrEqual(t, lap.Every, s.At)
		}
	})
}

func ExampleTraceSpec() {
	t, _ := netem.TraceSpec{Kind: "const", Rate: 12_000_000, Length: 3 * time.Millisecond}.Make()
	fmt.Print(string(t.Format()))
	// Output:
	// 1
	// 2
	// 3
}
