package lab_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/lab"
	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/lab/simulation"
)

// runParts runs parts of a study; each part has one run.
func runParts(t *testing.T, s *lab.Study, dir string, parts ...int) {
	t.Helper()
	for _, n := range parts {
		_, err := lab.RunPart(t.Context(), s, lab.Options{Dir: dir}, lab.Part{Number: n, Of: s.Runs()})
		require.NoError(t, err)
	}
}

// Merge removes the files that it has read, and no file that another process writes.
func TestMergeRemovesFilesOfParts(t *testing.T) {
	dir := t.TempDir()
	runParts(t, study(1, 3), dir, 0, 1, 2)
	cells := filepath.Join(dir, "cells")
	other := filepath.Join(cells, ".part-part-1-of-3.csv-77")
	require.NoError(t, os.WriteFile(other, []byte("half"), 0o600))
	// Another process removed this file after it was listed.
	require.NoError(t, os.Symlink("gone", filepath.Join(cells, "part-9-of-9.csv")))
	r, err := lab.Merge(dir)
	require.NoError(t, err)
	assert.Len(t, r.Runs, 3)
	assert.FileExists(t, other)
	list, err := os.ReadDir(cells)
	require.NoError(t, err)
	assert.Len(t, list, 2)
	require.NoError(t, os.RemoveAll(cells))

	runParts(t, study(1, 3), dir, 0)
	_, err = lab.Merge(dir)
	require.NoError(t, err)
	assert.NoDirExists(t, cells)
}

// After a directory is prepared for more trials, it still has its earlier runs.
func TestPrepareForMoreTrials(t *testing.T) {
	dir := t.TempDir()
	_, err := lab.Run(t.Context(), study(2, 1), lab.Options{Dir: dir})
	require.NoError(t, err)
	before := files(t, dir)
	require.NoError(t, lab.Prepare(dir, study(2, 1)))
	assert.Equal(t, before, files(t, dir))
	require.NoError(t, lab.Prepare(dir, study(2, 3)))
	r, err := lab.Read(dir)
	require.NoError(t, err)
	assert.Equal(t, 6, r.Total())
	assert.Len(t, r.Runs, 2)
}

// A file that is cut off at any point yields only its complete runs. The part counts as missing,
// and running it again results in the same bytes.
func TestTruncatedPartIsMissing(t *testing.T) {
	dir := t.TempDir()
	whole := filepath.Join(dir, "cells", "part-0-of-1.csv")
	one := lab.Part{Number: 0, Of: 1}
	_, err := lab.RunPart(t.Context(), study(1, 2), lab.Options{Dir: dir}, one)
	require.NoError(t, err)
	want, err := os.ReadFile(whole)
	require.NoError(t, err)
	for _, n := range []int{0, 1, len(want) / 2, len(want) - 1} {
		require.NoError(t, os.WriteFile(whole, want[:n], 0o600))
		r, err := lab.Read(dir)
		require.NoError(t, err)
		assert.Equal(t, []int{0}, r.MissingParts(1))
		_, err = lab.RunPart(t.Context(), study(1, 2), lab.Options{Dir: dir}, one)
		require.NoError(t, err)
		got, err := os.ReadFile(whole)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	require.NoError(t, os.WriteFile(whole, []byte("something else\n"), 0o600))
	for _, read := range []func() error{
		func() error { _, err := lab.Read(dir); return err },
		func() error {
			_, err := lab.RunPart(t.Context(), study(1, 2), lab.Options{Dir: dir}, one)
			return err
		},
	} {
		require.ErrorIs(t, read(), result.ErrFile)
		require.ErrorContains(t, read(), "remove the file to repeat its runs")
	}
}

// While a part runs, another version of the program replaces the experiment in the directory. The
// part then writes nothing there.
func TestReplacedExperimentStopsPart(t *testing.T) {
	dir := t.TempDir()
	s := study(1, 1)
	play := s.Play
	s.Play = func(cell *plan.Cell, trial int, o simulation.Options) (*result.Trial, *result.Record, error) {
		next := study(1, 1)
		next.Mark, next.Version = "ffffffff", "2"
		require.NoError(t, errors.Join(lab.Clear(dir), lab.Prepare(dir, next)))
		return play(cell, trial, o)
	}
	_, err := lab.RunPart(t.Context(), s, lab.Options{Dir: dir}, lab.Part{Number: 0, Of: 1})
	require.ErrorIs(t, err, lab.ErrOther)
	require.ErrorContains(t, err, "another version of the program, 2 (this is 1)")
	assert.NoDirExists(t, filepath.Join(dir, "cells"))
}

// A run that fails does not remove a directory that was prepared before.
func TestFailedRunKeepsPreparedDirectory(t *testing.T) {
	s := study(1, 1)
	s.Play = func(*plan.Cell, int, simulation.Options) (*result.Trial, *result.Record, error) {
		return nil, nil, errors.New("no")
	}
	dir := filepath.Join(t.TempDir(), "a")
	_, err := lab.Run(t.Context(), s, lab.Options{Dir: dir})
	require.ErrorContains(t, err, "no")
	assert.NoDirExists(t, dir)
	require.NoError(t, lab.Prepare(dir, s))
	_, err = lab.Run(t.Context(), s, lab.Options{Dir: dir})
	require.ErrorContains(t, err, "no")
	assert.FileExists(t, filepath.Join(dir, "experiment.yaml"))
}
