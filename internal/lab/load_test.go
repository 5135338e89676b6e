package lab_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/lab"
	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/lab/result"
)

const short = `name: short
about: half a second
duration: 500ms
path: {down: {delay: 1ms, trace: up.trace, queue: 20000B}, up: {delay: 1ms}}
flows: [{cc: reno}]
`

// write writes files into a directory.
func write(t *testing.T, folder string, texts map[string]string) {
	t.Helper()
	for name, text := range texts {
		path := filepath.Join(folder, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
}

func load(t *testing.T, experiment string, changes ...lab.Change) *lab.Study {
	t.Helper()
	s, err := lab.Load(lab.Request{Experiment: experiment, Changes: changes, Version: "1"})
	require.NoError(t, err)
	return s
}

// The mark of an experiment depends on everything that affects a run, and on nothing else.
func TestMarks(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "short.yaml")
	write(t, folder, map[string]string{"short.yaml": short, "up.trace": "1\n2\n"})
	s := load(t, file)
	mark := s.Mark
	assert.Len(t, mark, 12)
	assert.Equal(t, mark, load(t, file, lab.Change{Text: "trials=30"}).Mark)
	assert.Equal(t, mark, load(t, file, lab.Change{Text: "seed=1"}).Mark, "the default")
	for _, c := range []lab.Change{
		{Text: "seed=2"}, {Text: "flows.0.cc=cubic"}, {Sweep: true, Text: "flows.0.cc=reno,cubic"},
	} {
		assert.NotEqual(t, mark, load(t, file, c).Mark, c.Text)
	}
	text := "# another look at it\n" + strings.Replace(short, "half", "half of", 1) +
		"metrics: [jain, goodput]\nexpect:\n  - {value: utilisation > 0.1, source: s}\n"
	write(t, folder, map[string]string{"short.yaml": text})
	again := load(t, file)
	assert.Equal(t, mark, again.Mark, "texts, metrics and expectations do not affect runs")
	assert.Equal(t, []result.Metric{result.Jain, result.Goodput}, again.Metrics)

	write(t, folder, map[string]string{"up.trace": "1\n3\n"})
	assert.NotEqual(t, mark, load(t, file).Mark)
	other, err := lab.Load(lab.Request{Experiment: file, Version: "2"})
	require.NoError(t, err)
	assert.NotEqual(t, load(t, file).Mark, other.Mark)
	assert.Equal(t, load(t, file).Plan, other.Plan)
}

// A change that sets one algorithm for all flows also removes the sweep over algorithms.
func TestChangeOfAllFlowsEndsSweep(t *testing.T) {
	s := load(t, "cubic-reno-buffer", lab.Change{Text: "flows.*.cc=tahoe"})
	assert.Len(t, s.Cells, 4)
	for _, c := range s.Cells {
		assert.Equal(t, "tahoe", c.Flows[0].TCP.Recovery.Congestion)
	}
}

// A directory of results contains everything that its experiment needs.
func TestDirectoryIsExperiment(t *testing.T) {
	folder := t.TempDir()
	file, dir := filepath.Join(folder, "short.yaml"), filepath.Join(folder, "dir")
	write(t, folder, map[string]string{"short.yaml": short, "up.trace": "1\n2\n"})
	first := load(t, file, lab.Change{Sweep: true, Text: "flows.0.cc=reno,cubic"})
	r, err := lab.Run(t.Context(), first, lab.Options{Dir: dir})
	require.NoError(t, err)
	require.NoError(t, os.Remove(file))
	require.NoError(t, os.Remove(filepath.Join(folder, "up.trace")))

	again := load(t, dir)
	assert.Equal(t, first.Mark, again.Mark)
	place, stale := lab.DefaultDir(again)
	assert.Equal(t, dir, place)
	assert.False(t, stale)
	more := load(t, dir, lab.Change{Text: "trials=2"})
	s, err := lab.Run(t.Context(), more, lab.Options{Dir: dir})
	require.NoError(t, err)
	assert.Equal(t, 2, s.Ran)
	assert.Len(t, s.Runs, 4)
	assert.Equal(t, r.Runs[0], s.Runs[0])

	before := files(t, dir)
	assert.Contains(t, before, "files/up.trace")
	write(t, dir, map[string]string{"notes.txt": "mine"})
	require.NoError(t, lab.Clear(dir))
	after := files(t, dir)
	assert.Equal(t, map[string]string{"notes.txt": "mine"}, after, "Clear removes only results")
	require.NoError(t, lab.Clear(filepath.Join(folder, "nothing")))
}

func TestDefaultDir(t *testing.T) {
	t.Chdir(t.TempDir())
	s := load(t, "tahoe-low")
	dir, stale := lab.DefaultDir(s)
	assert.Equal(t, filepath.Join("lab", "tahoe-low"), dir)
	assert.False(t, stale)
	s.Version += lab.Unpublished + "1"
	s.Play = drawn
	_, err := lab.Run(t.Context(), s, lab.Options{Dir: dir})
	require.NoError(t, err)

	s = load(t, "tahoe-low", lab.Change{Text: "seed=2"})
	dir, _ = lab.DefaultDir(s)
	assert.Equal(t, filepath.Join("lab", "tahoe-low-"+s.Plan[:4]), dir)

	next := load(t, "tahoe-low")
	next.Mark = "next build"
	dir, stale = lab.DefaultDir(next)
	assert.Equal(t, filepath.Join("lab", "tahoe-low"), dir)
	assert.True(t, stale, "that build cannot be reproduced")
}

func TestInvalidExperiments(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, map[string]string{
		"short.yaml": short, "bad.yaml": "durration: 1s\n", "d/x": "",
		"quic.yaml": "name: q\npath: {down: {delay: 1ms}}\nduration: 1s\nflows:\n  - {cc: reno}\n  - {protocol: quic}\n",
	})
	for _, tt := range []struct {
		name string
		is   error
		has  string
	}{
		{"tahoe-lwo", lab.ErrUnknown, `"tahoe-lwo" is neither`},
		{filepath.Join(folder, "none.yaml"), lab.ErrUsage, "none.yaml: no such file"},
		{filepath.Join(folder, "d"), lab.ErrUsage, "a folder without results"},
		{filepath.Join(folder, "short.yaml"), nil, "up.trace: no such file"},
		{filepath.Join(folder, "bad.yaml"), nil, `bad.yaml:1:1: "durration"`},
		{
			filepath.Join(folder, "quic.yaml"), lab.ErrRealOnly,
			"quic.yaml:6:16: quic runs with --real only",
		},
	} {
		_, err := lab.Load(lab.Request{Experiment: tt.name})
		require.ErrorContains(t, err, tt.has)
		if tt.is != nil {
			require.ErrorIs(t, err, tt.is)
		}
		if tt.is != nil && !errors.Is(tt.is, lab.ErrRealOnly) {
			continue
		}
		var errs plan.Errors
		require.ErrorAs(t, err, &errs)
	}
	_, err := lab.Load(lab.Request{
		Experiment: "tahoe-low", Changes: []lab.Change{{Text: "flosw.0=1"}},
	})
	require.ErrorContains(t, err, "did you mean flows?")
}
