package trace_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/lab/trace"
)

const ms = time.Millisecond

func TestParse(t *testing.T) {
	got, warnings, err := trace.Parse("t", []byte("0\n1\n1\n5\n"))
	require.NoError(t, err)
	assert.Empty(t, warnings)
	assert.Equal(t, trace.Trace{0, ms, ms, 5 * ms}, got)
	assert.Equal(t, "0\n1\n1\n5\n", string(got.Format()))

	got, warnings, err = trace.Parse("t", []byte("1\r\n2\r\n\r\n\n"))
	require.NoError(t, err)
	assert.Len(t, got, 2)
	assert.Equal(t, []string{"t:3: empty lines at the end", "t: lines end in carriage returns"}, warnings)

	got, _, err = trace.Parse("t", []byte("7"))
	require.NoError(t, err)
	assert.Equal(t, trace.Trace{7 * ms}, got)
}

// What mahimahi refuses is refused, with its place.
func TestParseMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"":                "t: no lines: want a time in milliseconds in each",
		"1\n\n2\n":        "t:2: an empty line: want a time in milliseconds",
		"1\n1.5\n":        `t:2: "1.5" is not a time: want whole milliseconds such as 17`,
		"-1\n":            `t:1: "-1" is not a time: want whole milliseconds such as 17`,
		"5\n4\n":          "t:2: 4 ms comes behind 5: times are in order",
		"0\n0\n":          "t:2: the last time is 0: a trace needs a length to begin again",
		"1 2\n":           `t:1: "1 2" is not a time: want whole milliseconds such as 17`,
		"99999999999\n":   "t:1: 99999999999 ms is later than 1000h0m0s",
		"\x00\xff\x00\n1": `t:1: "\x00\xff\x00" is not a time: want whole milliseconds such as 17`,
	} {
		_, _, err := trace.Parse("t", []byte(text))
		require.EqualError(t, err, want, "%q", text)
		var e *trace.Error
		require.ErrorAs(t, err, &e)
	}
}

// The rates that mahimahi's own traces have: a line a millisecond is 12 Mbit/s, nine are 108, one
// in 100 ms is 0.12.
func TestConstant(t *testing.T) {
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
		got, err := trace.Constant(c.rate, c.length)
		require.NoError(t, err)
		assert.Equal(t, c.want, string(got.Format()), "%d", c.rate)
		info := got.Info()
		assert.InDelta(t, float64(c.rate), info.Mean, 1)
		assert.InDelta(t, float64(c.rate)*1504/1500, info.Bytes, 1)
	}
	// The man page's six lines, which it takes for 12 Mbit/s.
	got, _, err := trace.Parse("t", []byte("0\n1\n2\n3\n4\n5\n"))
	require.NoError(t, err)
	assert.InDelta(t, 14.4e6, got.Info().Mean, 1)
}

func TestSteps(t *testing.T) {
	got, err := trace.Steps(trace.Step{12e6, 2 * ms}, trace.Step{0, 3 * ms}, trace.Step{24e6, ms})
	require.NoError(t, err)
	assert.Equal(t, "1\n2\n6\n6\n", string(got.Format()))
	assert.Equal(t, 4*ms, got.Info().Gap)
	assert.Equal(t, 2, got.Info().Burst)
	got, err = trace.OnOff(12e6, 2*ms, 3*ms, 7*ms)
	require.NoError(t, err)
	assert.Equal(t, "1\n2\n6\n7\n", string(got.Format()))
	got, err = trace.OnOff(12e6, 2*ms, 3*ms, 10*ms)
	require.NoError(t, err)
	assert.Equal(t, "1\n2\n6\n7\n10\n", string(got.Format()), "the last pause is there, too")
}

// A Poisson trace has its mean within what its number of packets allows, and gaps whose deviation
// is their mean; the same seed makes the same one.
func TestPoisson(t *testing.T) {
	const rate, seconds = 2.64e6, 600
	got, err := trace.Poisson(rate, seconds*time.Second, 1)
	require.NoError(t, err)
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
	// Rounding two times down to milliseconds adds a variance of 1/6.
	assert.InDelta(t, mean*mean+1.0/6, variance, .03*variance)
	again, err := trace.Poisson(rate, seconds*time.Second, 1)
	require.NoError(t, err)
	assert.Equal(t, got, again)
	other, err := trace.Poisson(rate, seconds*time.Second, 2)
	require.NoError(t, err)
	assert.NotEqual(t, got, other)
	back, _, err := trace.Parse("t", got.Format())
	require.NoError(t, err)
	assert.Equal(t, got, back)
}

func TestCell(t *testing.T) {
	got, err := trace.Cell(1e6, 16e6, 2*time.Second, 300*time.Second, 7)
	require.NoError(t, err)
	info := got.Info()
	assert.Greater(t, info.Mean, 1e6)
	assert.Less(t, info.Mean, 16e6)
	assert.Greater(t, info.Rates[3], 3*info.Rates[1], "the rate moves")
	assert.IsNonDecreasing(t, got)
}

// A trace that stalls sends at the stall's rate, or nothing, and then what its kind does in the rest
// of its length, after which it begins again.
func TestStall(t *testing.T) {
	spec := trace.Spec{
		Kind: "poisson", Rate: 2_637_000, Length: time.Minute, Seed: 264,
		Stall: 5 * time.Second, StallRate: 120_000,
	}
	got, err := spec.Make()
	require.NoError(t, err)
	require.Greater(t, len(got), 50)
	for i := range 50 {
		require.Equal(t, time.Duration(i+1)*100*ms, got[i], "a packet in 100 ms")
	}
	rest, err := trace.Poisson(2_637_000, 55*time.Second, 264)
	require.NoError(t, err)
	require.Len(t, got, 50+len(rest))
	for i, at := range rest {
		require.Equal(t, 5*time.Second+at, got[50+i])
	}
	// The recorded trace has 12,177 packets in 60.009 s, and so have 55 s of a Poisson process of
	// this rate, whose deviation is 110.
	assert.InDelta(t, 12_177, len(got), 3*110)
	assert.Equal(t, 100*ms, got.Info().Gap)

	spec.StallRate = 0
	silent, err := spec.Make()
	require.NoError(t, err)
	assert.Equal(t, got[50:], silent)
}

func TestImpossible(t *testing.T) {
	for name, generate := range map[string]func() (trace.Trace, error){
		"no rate":   func() (trace.Trace, error) { return trace.Constant(0, time.Second) },
		"no length": func() (trace.Trace, error) { return trace.Constant(1e6, 0) },
		"too many":  func() (trace.Trace, error) { return trace.Constant(2e10, time.Hour) },
		"too slow":  func() (trace.Trace, error) { return trace.Constant(1, time.Second) },
		"no off":    func() (trace.Trace, error) { return trace.OnOff(1e6, ms, 0, time.Second) },
		"high, low": func() (trace.Trace, error) { return trace.Cell(2e6, 1e6, ms, time.Second, 1) },
		"no steps":  func() (trace.Trace, error) { return trace.Steps() },
		"negative":  func() (trace.Trace, error) { return trace.Steps(trace.Step{-1, time.Second}) },
		"no kind":   trace.Spec{Kind: "poison", Rate: 1e6, Length: time.Second}.Make,
		"all stall": trace.Spec{Kind: "const", Rate: 1e6, Length: ms, Stall: ms}.Make,
		"odd stall": trace.Spec{Kind: "const", Rate: 1e6, Length: time.Second, Stall: 1500}.Make,
		"no stall":  trace.Spec{Kind: "const", Rate: 1e6, Length: time.Second, StallRate: 1}.Make,
	} {
		_, err := generate()
		require.ErrorIs(t, err, trace.ErrImpossible, name)
	}
}

func TestParseRates(t *testing.T) {
	steps, err := trace.ParseRates("r", []byte("# seconds Mbit/s\n0 12\n0.002, 0\r\n0.005\t24\n0.006 0\n"))
	require.NoError(t, err)
	assert.Equal(t, []trace.Step{{12e6, 2 * ms}, {0, 3 * ms}, {24e6, ms}}, steps)
	made, err := trace.Steps(steps...)
	require.NoError(t, err)
	assert.Equal(t, "1\n2\n6\n6\n", string(made.Format()))
	assert.Equal(t, "0 12\n0.002 0\n0.004 12\n0.006 12\n", string(made.FormatRates(2*ms)))
	assert.Equal(t, "0 6\n0.004 12\n0.006 12\n", string(made.FormatRates(4*ms)), "all of it")
	assert.Equal(t, "0 8\n0.006 8\n", string(made.FormatRates(time.Second)), "a trace of 6 ms")
	for text, want := range map[string]string{
		"0 1\n":         "r: want two lines or more: the last says where it ends",
		"0 1\n1\n":      "r:2: 1 columns: want two, seconds and Mbit/s",
		"0 1\n0 2\n":    "r:2: 0 s comes behind 0: times are in order",
		"0 x\n":         `r:1: "0 x": want two numbers, seconds and Mbit/s`,
		"0 NaN\n1 1\n":  `r:1: "0 NaN": want two numbers, seconds and Mbit/s`,
		"0 -1\n1 1\n":   `r:1: "0 -1": want two numbers, seconds and Mbit/s`,
		"0 1e99\n1 1\n": `r:1: "0 1e99": want two numbers, seconds and Mbit/s`,
	} {
		_, err := trace.ParseRates("r", []byte(text))
		require.EqualError(t, err, want)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("0\n1\n1\n5\n"))
	f.Add([]byte("1\r\n2\r\n\r\n"))
	f.Add([]byte("0 12\n0.5 0\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, _, err := trace.Parse("t", text)
		var e *trace.Error
		if err != nil {
			require.ErrorAs(t, err, &e)
		} else {
			back, warnings, err := trace.Parse("t", got.Format())
			require.NoError(t, err)
			require.Empty(t, warnings)
			require.Equal(t, got, back)
			info := got.Info()
			require.Positive(t, info.Mean)
			require.GreaterOrEqual(t, info.Rates[4], info.Rates[0])
		}
		steps, err := trace.ParseRates("r", text)
		if err != nil {
			require.ErrorAs(t, err, &e)
			return
		}
		for _, s := range steps {
			require.GreaterOrEqual(t, s.Rate, int64(0))
			require.GreaterOrEqual(t, s.Duration, time.Duration(0))
		}
	})
}

func ExampleConstant() {
	t, _ := trace.Constant(12_000_000, 3*time.Millisecond)
	fmt.Print(string(t.Format()))
	// Output:
	// 1
	// 2
	// 3
}
