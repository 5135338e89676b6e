package plan_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/netem"
)

const impaired = head + `path:
  down: {delay: 88ms, rate: 1Mbit/s, queue: 20000B, loss: 1%}
  up: {delay: 88ms}
flows: [{cc: reno}]
sweep: {path.down.loss: [1%, 2%], flows.0.cc: [reno, cubic]}
`

// firstOf returns the first cell, and checks the number of cells.
func firstOf(t *testing.T, f *plan.File, want int) plan.Cell {
	t.Helper()
	cells, err := f.Cells()
	require.NoError(t, err)
	require.Len(t, cells, want)
	return cells[0]
}

// Options of netem replace the same settings of the file, swept or not, and leave all others.
func TestNetemArguments(t *testing.T) {
	f := parse(t, impaired)
	require.NoError(t, f.Netem("delay 40ms loss 5%"))
	c := firstOf(t, f, 2)
	assert.Equal(t, 40*time.Millisecond, c.Path.Down.Delay)
	assert.Equal(t, 88*time.Millisecond, c.Path.Up.Delay)
	assert.InDelta(t, 0.05, float64(c.Path.Down.Loss.(netem.UniformLoss)), 1e-12)
	assert.Equal(t, netem.DropTail{Bytes: 20000}, c.Path.Down.Queue)
	assert.Equal(t, mbit, c.Path.Down.Rate)
	assert.Equal(t, "flows.0.cc", c.Set[0].Key)
	assert.Equal(t, []string{
		"--netem replaces path.down.loss, so the file's sweep of path.down.loss is left out",
	}, f.Notes())

	again, err := plan.Parse("again.yaml", f.Resolved())
	require.NoError(t, err)
	assert.Equal(t, c.Path, firstOf(t, again, 2).Path)

	require.NoError(t, f.Netem("duplicate 1%"), "the new arguments replace the old ones")
	assert.InDelta(t, 0.01, firstOf(t, f, 2).Path.Down.Duplicate, 1e-12)
}

// A mahimahi command line replaces the whole path.
func TestMahimahiFlag(t *testing.T) {
	f := parse(t, impaired)
	f.Load = func(string) ([]byte, error) { return []byte("1\n2\n"), nil }
	require.NoError(t, f.Mahimahi("mm-delay 40 mm-loss downlink .01 mm-link up down"))
	assert.Equal(t, []string{"--mm replaces path, so the file's sweep of path.down.loss is left out"},
		f.Notes())
	c := firstOf(t, f, 2)
	assert.Equal(t, 40*time.Millisecond, c.Path.Up.Delay)
	assert.InDelta(t, 0.01, float64(c.Path.Down.Loss.(netem.UniformLoss)), 1e-12)
	require.NoError(t, f.Mahimahi("mm-delay 20"))
	assert.Equal(t, 20*time.Millisecond, firstOf(t, f, 2).Path.Down.Delay)
	assert.EqualError(t, f.Netem("loss 1%"), `--netem: netem arguments need the key path; `+
		`expected a file with path instead of mm
    loss 1%
    ^^^^^^^`)
}

// Errors in a flag's value show their position.
func TestInvalidArguments(t *testing.T) {
	f := parse(t, impaired)
	before := string(f.Resolved())
	for words, want := range map[string]string{
		"delay 40ms lss 5%": "--netem: \"lss\" is not an impairment (did you mean loss?)\n" +
			"    delay 40ms lss 5%\n               ^^^",
		" ":    "--netem: no arguments\n     \n    ^",
		"a\nb": "--netem: more than one line\n    a\uFFFDb\n    ^",
	} {
		assert.EqualError(t, f.Netem(words), want)
	}
	assert.EqualError(t, f.Mahimahi("mm-delay 40 mm-lnk a b"), "--mm: \"mm-lnk\" is not a "+
		"mahimahi shell that node lab supports (did you mean mm-link?); expected mm-delay, mm-link, mm-loss "+
		"or mm-onoff\n    mm-delay 40 mm-lnk a b\n                ^^^^^^")
	assert.Equal(t, before, string(f.Resolved()), "an invalid flag changes nothing")
	f.Load = func(string) ([]byte, error) { return nil, assert.AnError }
	require.NoError(t, f.Mahimahi("mm-link up down"), "traces are read later")
	_, err := f.Cells()
	assert.ErrorContains(t, err, "--mm: "+assert.AnError.Error())
}
