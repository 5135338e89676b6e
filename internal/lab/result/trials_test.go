package result_test

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/lab/result"
)

const mark = "3f0c9a11"

func trials() []*result.Trial {
	return []*result.Trial{
		{
			Cell: 0, Trial: 0, Seed: math.MaxUint64, Hash: 0xdeadbeef, Virtual: 240*time.Second + 1,
			Finished: true, Whole: result.Values{result.Jain: 1.0 / 3, result.Packets: 0},
			Flows: []result.Flow{
				{Name: "a", Label: "reno", Finished: true, Values: result.Values{result.Goodput: 1e9 / 7}},
				{Name: "b", Label: "cubic", Finished: true, Values: result.Values{}},
			},
		},
		{
			Cell: 1, Trial: 7, Seed: 3, Virtual: time.Millisecond,
			Note: "two lines,\n\"quoted\"", Whole: result.Values{},
			Flows: []result.Flow{{Name: "a,b", Note: " no answer", Values: result.Values{}}},
		},
	}
}

func file(ts ...*result.Trial) []byte {
	text := result.TrialsHeader()
	for _, t := range ts {
		text = result.AppendTrial(text, mark, t)
	}
	return text
}

func TestTrialsRoundTrip(t *testing.T) {
	want := trials()
	text := file(want...)
	assert.Equal(t, 6, bytes.Count(text, []byte{'\n'}), "a row is a line")
	got, err := result.ParseTrials("trials.csv", text, mark, nil)
	require.NoError(t, err)
	want[1].Note = `two lines, "quoted"` // a row stays one line
	assert.Equal(t, want, got.Runs)
	assert.Equal(t, len(text), got.Whole)
	assert.Zero(t, got.Cut)
	assert.Equal(t, text, file(got.Runs...))
}

// If a writer stops at any point, the complete runs can still be read.
func TestTruncatedTrials(t *testing.T) {
	ts := trials()
	text, first := file(ts...), file(ts[0])
	header := len(result.TrialsHeader())
	for n := range len(text) {
		got, err := result.ParseTrials("trials.csv", text[:n], mark, nil)
		require.NoError(t, err, n)
		switch {
		case n < header:
			assert.Zero(t, got.Whole)
		case n < len(first):
			assert.Equal(t, header, got.Whole)
			assert.Empty(t, got.Runs)
		default:
			assert.Equal(t, len(first), got.Whole)
			assert.Len(t, got.Runs, 1)
		}
		assert.Equal(t, n > 0 && n != header && n != len(first), got.Cut > 0, n)
	}
}

func TestInvalidTrials(t *testing.T) {
	ts := trials()
	good := string(file(ts...))
	lines := strings.SplitAfter(good, "\n")
	for name, tt := range map[string]struct{ text, want string }{
		"other columns":  {"cell,trial\n", "t.csv:1: not a file of results of this version"},
		"no last row":    {lines[0] + lines[1] + lines[4], "t.csv:3: not a file of results: the run"},
		"fields":         {lines[0] + "1,2,3\n", "t.csv:2: not a file of results: 3 fields: must be"},
		"experiment":     {lines[0] + strings.Replace(lines[1], mark, "ffff", 1), "experiment ffff, not to " + mark},
		"not a number":   {lines[0] + strings.Replace(lines[1], "1.4285714285714287e+08", "fast", 1), `goodput: "fast"`},
		"infinite":       {lines[0] + strings.Replace(lines[1], "1.4285714285714287e+08", "Inf", 1), `goodput: "Inf"`},
		"not a time":     {lines[0] + strings.Replace(lines[1], "240.000000001", "240.0000000001", 1), "not a time"},
		"negative trial": {lines[0] + strings.Replace(lines[4], ",7,", ",-7,", 1), "invalid syntax"},
	} {
		_, err := result.ParseTrials("t.csv", []byte(tt.text), mark, nil)
		require.ErrorIs(t, err, result.ErrFile, name)
		assert.ErrorContains(t, err, tt.want, name)
	}
	_, err := result.ParseTrials("t.csv", []byte(good), mark, func(t *result.Trial) error {
		if t.Trial == 7 {
			return assert.AnError
		}
		return nil
	})
	require.ErrorIs(t, err, assert.AnError)
	assert.ErrorContains(t, err, "t.csv:6: ")
}

func FuzzParseTrials(f *testing.F) {
	f.Add(file(trials()...))
	f.Add(result.TrialsHeader())
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := result.ParseTrials("t.csv", text, mark, nil)
		if err != nil {
			return
		}
		require.LessOrEqual(t, got.Whole, len(text))
		again, err := result.ParseTrials("t.csv", file(got.Runs...), mark, nil)
		require.NoError(t, err)
		require.Len(t, again.Runs, len(got.Runs))
	})
}
