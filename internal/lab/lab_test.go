package lab_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/lab"
	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/lab/simulation"
)

// study returns a study of two flows. Its runs take no time: their results are drawn from a random
// source with the run's seed.
func study(cells, trials int) *lab.Study {
	s := &lab.Study{
		Name: "drawn", About: "random numbers", Version: "1", Seed: 1, Mark: "3f0c9a11",
		Document: []byte("name: drawn\n"), Play: drawn,
	}
	for i := range cells {
		s.Cells = append(s.Cells, plan.Cell{
			Index: i, Set: []plan.Setting{{Key: "flows.0.cc", Name: "cc", Value: fmt.Sprint("cc", i)}},
			Experiment: plan.Experiment{Seed: 1, Trials: trials, Flows: []plan.Flow{{Name: "a"}, {Name: "b"}}},
		})
	}
	return s
}

func drawn(cell *plan.Cell, trial int, o simulation.Options) (*result.Trial, *result.Record, error) {
	seed := cell.Seed + uint64(trial)
	random := rand.New(rand.NewPCG(seed, uint64(cell.Index)))
	t := &result.Trial{
		Cell: cell.Index, Trial: trial, Seed: seed, Hash: random.Uint64(), Virtual: time.Minute,
		Finished: true, Whole: result.Values{result.Jain: 1 - random.Float64()/10},
	}
	for i := range cell.Flows {
		t.Flows = append(t.Flows, result.Flow{
			Name: cell.Flows[i].Name, Label: "reno", Finished: true, Values: result.Values{
				result.Goodput: 1e6 * (1 + float64(i) + random.Float64()/10),
			},
		})
	}
	if !o.Record {
		return t, nil, nil
	}
	return t, &result.Record{Title: fmt.Sprint("cell ", cell.Index)}, nil
}

// files returns the contents of all files in a directory, except the lock.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() || e.Name() == ".lock" {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		out[filepath.ToSlash(name)] = string(text)
		return err
	}))
	return out
}

func TestResultsIgnoreTheOrderOfRuns(t *testing.T) {
	want := ""
	for _, workers := range []int{1, 2, 7} {
		dir := t.TempDir()
		r, err := lab.Run(t.Context(), study(5, 4), lab.Options{Dir: dir, Workers: workers, Records: 2})
		require.NoError(t, err)
		assert.Len(t, r.Runs, 20)
		assert.Len(t, r.Hash(), 16)
		got := fmt.Sprint(files(t, dir))
		if want == "" {
			want = got
		}
		assert.Equal(t, want, got)
		one, err := r.Record(1)
		require.NoError(t, err)
		assert.Equal(t, "cell 1", one.Title)
		_, err = r.Record(2)
		require.ErrorIs(t, err, os.ErrNotExist)
	}
	other := study(5, 4)
	for i := range other.Cells {
		other.Cells[i].Seed = 2
	}
	a, err := lab.Run(t.Context(), study(5, 4), lab.Options{Dir: t.TempDir()})
	require.NoError(t, err)
	b, err := lab.Run(t.Context(), other, lab.Options{Dir: t.TempDir()})
	require.NoError(t, err)
	assert.NotEqual(t, a.Hash(), b.Hash())
}

// If a writer stops at any point, the next one runs only the missing trials, and the results are
// the same.
func TestResume(t *testing.T) {
	whole := t.TempDir()
	_, err := lab.Run(t.Context(), study(3, 3), lab.Options{Dir: whole, Workers: 2, Records: 1})
	require.NoError(t, err)
	want := files(t, whole)
	lines := strings.SplitAfter(want["trials.csv"], "\n")
	require.Len(t, lines, 1+9*3+1)
	for _, tt := range []struct {
		text  string
		again int
		note  string
	}{
		{"", 9, ""},
		{lines[0][:20], 9, ""},
		{lines[0], 9, ""},
		{strings.Join(lines[:1+3], ""), 8, ""},
		{strings.Join(lines[:1+3], "") + lines[4][:9], 8, "the last row is incomplete"},
		{strings.Join(lines[:1+3+2], "") + lines[6][:40], 8, "the last row is incomplete"},
		{want["trials.csv"], 0, ""},
	} {
		dir := t.TempDir()
		require.NoError(t, os.CopyFS(dir, os.DirFS(whole)))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "trials.csv"), []byte(tt.text), 0o600))
		require.NoError(t, os.Remove(filepath.Join(dir, "summary.csv")))
		left := filepath.Join(dir, "flows", ".part-0.csv-1")
		require.NoError(t, os.MkdirAll(filepath.Dir(left), 0o700))
		require.NoError(t, os.WriteFile(left, nil, 0o600))
		require.NoError(t, os.Chtimes(left, time.Time{}, time.Now().Add(-2*time.Hour)))
		var played atomic.Int32
		s := study(3, 3)
		s.Play = func(cell *plan.Cell, trial int, o simulation.Options) (*result.Trial, *result.Record, error) {
			played.Add(1)
			return drawn(cell, trial, o)
		}
		r, err := lab.Run(t.Context(), s, lab.Options{Dir: dir, Workers: 2, Records: 1})
		require.NoError(t, err)
		assert.EqualValues(t, tt.again, played.Load())
		assert.Equal(t, want, files(t, dir))
		assert.Contains(t, strings.Join(r.Notes, "\n"), tt.note)
	}
}

func TestMoreTrialsContinueARun(t *testing.T) {
	dir, whole := t.TempDir(), t.TempDir()
	_, err := lab.Run(t.Context(), study(2, 3), lab.Options{Dir: dir})
	require.NoError(t, err)
	_, err = lab.Run(t.Context(), study(2, 8), lab.Options{Dir: dir})
	require.NoError(t, err)
	_, err = lab.Run(t.Context(), study(2, 8), lab.Options{Dir: whole})
	require.NoError(t, err)
	assert.Equal(t, files(t, whole), files(t, dir))

	r, err := lab.Run(t.Context(), study(2, 3), lab.Options{Dir: dir})
	require.NoError(t, err)
	assert.Len(t, r.Runs, 6)
	assert.Contains(t, r.Notes[0], "10 more runs")
}

func TestOtherExperiment(t *testing.T) {
	dir := t.TempDir()
	_, err := lab.Run(t.Context(), study(1, 1), lab.Options{Dir: dir})
	require.NoError(t, err)
	for want, change := range map[string]func(*lab.Study){
		"with other settings": func(*lab.Study) {},
		`as "drawn"`:          func(s *lab.Study) { s.Name = "other" },
		"with seed 1":         func(s *lab.Study) { s.Seed = 2 },
		"another version of the program, 1 (this is 2)": func(s *lab.Study) { s.Version = "2" },
	} {
		before := files(t, dir)
		s := study(1, 1)
		s.Mark = "ffffffff"
		change(s)
		_, err := lab.Run(t.Context(), s, lab.Options{Dir: dir})
		require.ErrorIs(t, err, lab.ErrOther)
		require.ErrorContains(t, err, want)
		_, err = lab.RunPart(t.Context(), s, lab.Options{Dir: dir}, lab.Part{Number: 0})
		require.ErrorIs(t, err, lab.ErrOther)
		assert.Equal(t, before, files(t, dir), "no file has changed")
	}
	// The rows of results name their experiment, even without run.json.
	require.NoError(t, os.Remove(filepath.Join(dir, "run.json")))
	s := study(1, 1)
	s.Mark = "ffffffff"
	_, err = lab.Run(t.Context(), s, lab.Options{Dir: dir})
	require.ErrorContains(t, err, "trials.csv:2: not a file of results: the row belongs to experiment 3f0c9a11")
}

func TestInvalidResults(t *testing.T) {
	dir := t.TempDir()
	_, err := lab.Run(t.Context(), study(2, 2), lab.Options{Dir: dir})
	require.NoError(t, err)
	path := filepath.Join(dir, "trials.csv")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	lines := strings.SplitAfter(string(text), "\n")
	for want, bad := range map[string]string{
		"no cell 7: the last is 1": strings.ReplaceAll(string(text), "11,1,", "11,7,"),
		`flow "c", expected "a"`:   strings.ReplaceAll(string(text), ",a,", ",c,"),
		"has 1 flows, expected 2":  lines[0] + strings.Join(lines[2:], ""),
		"two different results of": string(text) + strings.ReplaceAll(strings.Join(lines[1:4], ""), ",60,", ",61,"),
	} {
		require.NoError(t, os.WriteFile(path, []byte(bad), 0o600))
		_, err = lab.Run(t.Context(), study(2, 2), lab.Options{Dir: dir})
		require.ErrorIs(t, err, result.ErrFile)
		require.ErrorContains(t, err, want)
		_, err = lab.Read(dir)
		require.ErrorContains(t, err, want)
	}
	// The error for an edited line says what to do.
	require.NoError(t, os.WriteFile(path, []byte(lines[0]+"1,2\n"+lines[1]), 0o600))
	_, err = lab.Run(t.Context(), study(2, 2), lab.Options{Dir: dir})
	require.ErrorContains(t, err, "trials.csv:2: not a file of results: 2 fields: must be")
	require.ErrorContains(t, err, "start again with `node lab run --fresh`")
	// Reading the same run twice changes nothing.
	require.NoError(t, os.WriteFile(path, []byte(string(text)+strings.Join(lines[1:4], "")), 0o600))
	_, err = lab.Run(t.Context(), study(2, 2), lab.Options{Dir: dir})
	require.NoError(t, err)
	again, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(text), string(again))
}

// Machines that each run one cell get the same results as one machine that runs all cells.
func TestSingleCells(t *testing.T) {
	whole, dir := t.TempDir(), t.TempDir()
	_, err := lab.Run(t.Context(), study(4, 3), lab.Options{Dir: whole, Records: 4})
	require.NoError(t, err)
	var busy sync.WaitGroup
	for _, cell := range []int{3, 0, 2, 2} {
		busy.Go(func() {
			r, err := lab.RunPart(t.Context(), study(4, 3), lab.Options{Dir: dir, Records: 4}, lab.Part{Number: cell})
			assert.NoError(t, err)
			assert.Len(t, r.Runs, 3)
		})
	}
	busy.Wait()
	r, err := lab.Merge(dir)
	require.NoError(t, err)
	cells, runs := r.Missing()
	assert.Equal(t, []int{1}, cells)
	assert.Equal(t, 3, runs)
	assert.Contains(t, r.Notes[0], "runs merged from parts: 9")
	assert.Contains(t, files(t, dir)["run.json"], `"mark"`)
	assert.NotContains(t, files(t, dir)["run.json"], `"hash"`, "some runs are missing")

	_, err = lab.RunPart(t.Context(), study(4, 3), lab.Options{Dir: dir, Records: 4}, lab.Part{Number: 1})
	require.NoError(t, err)
	r, err = lab.Read(dir)
	require.NoError(t, err)
	cells, _ = r.Missing()
	assert.Empty(t, cells, "also before Merge")
	_, err = lab.Run(t.Context(), study(4, 3), lab.Options{Dir: dir, Records: 4})
	require.NoError(t, err)
	got := files(t, dir)
	for i := range 4 {
		delete(got, fmt.Sprintf("cells/%d.csv", i))
	}
	assert.Equal(t, files(t, whole), got)

	_, err = lab.RunPart(t.Context(), study(4, 3), lab.Options{Dir: dir}, lab.Part{Number: 4})
	require.ErrorIs(t, err, lab.ErrUsage)
	require.ErrorContains(t, err, "0 to 3")
}

func TestDirectoryIsLocked(t *testing.T) {
	dir := t.TempDir()
	s := study(1, 1)
	s.Play = func(cell *plan.Cell, trial int, o simulation.Options) (*result.Trial, *result.Record, error) {
		_, err := lab.Run(t.Context(), study(1, 1), lab.Options{Dir: dir})
		assert.ErrorIs(t, err, lab.ErrBusy)
		return drawn(cell, trial, o)
	}
	_, err := lab.Run(t.Context(), s, lab.Options{Dir: dir})
	require.NoError(t, err)
}

func TestFinishedRunsAreKept(t *testing.T) {
	dir := t.TempDir()
	stop := errors.New("stopped")
	for _, fail := range []func(context.CancelCauseFunc) error{
		func(cancel context.CancelCauseFunc) error { cancel(stop); return nil },
		func(context.CancelCauseFunc) error { return stop },
		func(context.CancelCauseFunc) error { panic("BUG: stopped") },
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		s := study(2, 4)
		s.Play = func(cell *plan.Cell, trial int, o simulation.Options) (*result.Trial, *result.Record, error) {
			if trial == 2 {
				if err := fail(cancel); err != nil {
					return nil, nil, err
				}
				<-ctx.Done()
			}
			return drawn(cell, trial, o)
		}
		_, err := lab.Run(ctx, s, lab.Options{Dir: dir, Workers: 1})
		require.ErrorContains(t, err, "stopped")
		r, err := lab.Read(dir)
		require.NoError(t, err)
		assert.Len(t, r.Runs, 4)
	}
	_, err := lab.Run(t.Context(), study(2, 4), lab.Options{Dir: dir})
	require.NoError(t, err)
}

// A repeated trial whose result differs from the stored one is an error.
func TestRepeatedRunDiffers(t *testing.T) {
	dir := t.TempDir()
	_, err := lab.Run(t.Context(), study(1, 1), lab.Options{Dir: dir})
	require.NoError(t, err)
	s := study(1, 1)
	s.Play = func(cell *plan.Cell, trial int, o simulation.Options) (*result.Trial, *result.Record, error) {
		r, record, err := drawn(cell, trial, o)
		r.Hash++
		return r, record, err
	}
	_, err = lab.Run(t.Context(), s, lab.Options{Dir: dir, Records: 1})
	require.ErrorContains(t, err, "trial 0 of cell 0 had result")
}

func TestUntil(t *testing.T) {
	s := study(2, 200)
	s.Play = func(cell *plan.Cell, trial int, o simulation.Options) (*result.Trial, *result.Record, error) {
		r, record, err := drawn(cell, trial, o)
		if cell.Index == 1 { // without spread, five trials suffice
			r.Flows[0].Values[result.Goodput], r.Flows[1].Values[result.Goodput] = 1, 1
		}
		return r, record, err
	}
	dir := t.TempDir()
	r, err := lab.Run(t.Context(), s, lab.Options{Dir: dir, Until: 0.01, Workers: 3})
	require.NoError(t, err)
	again, err := lab.Run(t.Context(), s, lab.Options{Dir: t.TempDir(), Until: 0.01})
	require.NoError(t, err)
	assert.Equal(t, r.Hash(), again.Hash())
	n := map[int]int{}
	for _, g := range r.Groups() {
		n[g.Cell] = g.N
		if g.Flow != "" {
			number := g.Numbers[result.Goodput]
			assert.Less(t, number.Precision(), 0.01)
		}
	}
	assert.Equal(t, 5, n[1])
	assert.Greater(t, n[0], 5)
	assert.Less(t, n[0], 200)
	r, err = lab.Read(dir)
	require.NoError(t, err)
	cells, _ := r.Missing()
	assert.Empty(t, cells, "the trials that it needed")
	r, err = lab.Run(t.Context(), s, lab.Options{Dir: dir})
	require.NoError(t, err)
	assert.Zero(t, r.Ran, "it continues with the condition of the first run")
	assert.Equal(t, again.Hash(), r.Hash())
	r, err = lab.Run(t.Context(), s, lab.Options{Dir: dir, Until: -1})
	require.NoError(t, err)
	assert.Equal(t, 400-n[0]-n[1], r.Ran, "all trials")
}
