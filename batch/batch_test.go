package batch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fake is an engine whose parts take two questions to end. It loses the parts in lost, once each.
type fake struct {
	lost    map[int]int // how often a part fails
	done    map[int]bool
	queued  []int
	asked   int
	silent  int // how many questions are not answered
	submits [][]int
	limits  []time.Duration
}

func (*fake) Name() string                       { return "fake" }
func (*fake) Limit(context.Context) (int, error) { return 0, nil }
func (*fake) Script(*Job, []int) string          { return "" }

func (f *fake) Submit(_ context.Context, j *Job, parts []int) (string, error) {
	f.submits = append(f.submits, parts)
	f.limits = append(f.limits, j.Time)
	f.queued, f.asked = parts, 0
	return "7", nil
}

func (f *fake) Tasks(context.Context, *Job) (Tasks, error) {
	if f.silent > 0 {
		f.silent--
		return Tasks{}, ErrSilent
	}
	if f.asked++; f.asked < 3 {
		return Tasks{Waiting: len(f.queued)}, nil
	}
	for _, p := range f.queued {
		if f.lost[p]--; f.lost[p] < 0 {
			f.done[p] = true
		}
	}
	f.queued = nil
	return Tasks{}, nil
}

func (f *fake) missing(parts int) (list []int) {
	for p := range parts {
		if !f.done[p] {
			list = append(list, p)
		}
	}
	return list
}

// run returns a run of four parts on the engine, which appends its lines to the list.
func (f *fake) run(t *testing.T, lines *[]string) *Run {
	t.Helper()
	j := &Job{Name: "x", Dir: t.TempDir(), Parts: 4, Time: time.Minute, Memory: 64 << 20}
	require.NoError(t, os.MkdirAll(j.logs(), 0o777))
	f.done = map[int]bool{}
	if f.lost == nil {
		f.lost = map[int]int{}
	}
	return &Run{
		Job: j, Engine: f, Retries: 2, Interval: time.Second,
		Missing:  func() ([]int, error) { return f.missing(4), nil },
		Done:     func() (int, error) { return 4 - len(f.missing(4)), nil },
		Tell:     func(line string) { *lines = append(*lines, line) },
		Progress: func(int, Tasks, time.Duration) {},
	}
}

func TestRunQueuesFailedPartsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		f := &fake{lost: map[int]int{1: 1, 3: 2}}
		r := f.run(t, &lines)
		log := filepath.Join(r.logs(), "7-1.txt")
		require.NoError(t, os.WriteFile(log, []byte("one\nno space left on device\n"), 0o600))
		queued, err := r.Start(t.Context())
		require.NoError(t, err)
		require.True(t, queued)
		require.NoError(t, r.Wait(t.Context()))
		assert.Equal(t, [][]int{{0, 1, 2, 3}, {1, 3}, {3}}, f.submits)
		assert.Equal(t, []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute}, f.limits)
		assert.Contains(t, lines[1], "2 parts failed and are queued again; part 1: no space left on device")

		queued, err = r.Start(t.Context())
		require.NoError(t, err)
		assert.False(t, queued, "nothing is missing")
		again, err := Read(r.Dir)
		require.NoError(t, err)
		assert.Equal(t, "7", again.Task)
	})
}

func TestRunGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		f := &fake{lost: map[int]int{2: 9}}
		r := f.run(t, &lines)
		_, err := r.Start(t.Context())
		require.NoError(t, err)
		err = r.Wait(t.Context())
		require.EqualError(t, err, "parts 2 failed 3 times; they left no message; the batch system may have ended them")

		f = &fake{lost: map[int]int{0: 9, 1: 9, 2: 9, 3: 9}}
		r = f.run(t, &lines)
		_, err = r.Start(t.Context())
		require.NoError(t, err)
		require.ErrorContains(t, r.Wait(t.Context()), "do all machines share this folder?")
	})
}

// An engine that does not answer is asked again: its parts are not queued twice.
func TestRunOutlivesASilentEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		f := &fake{}
		r := f.run(t, &lines)
		_, err := r.Start(t.Context())
		require.NoError(t, err)
		var longest time.Duration
		r.Progress = func(_ int, _ Tasks, silent time.Duration) { longest = max(longest, silent) }
		f.silent = 60
		require.NoError(t, r.Wait(t.Context()))
		assert.Equal(t, 59*time.Second, longest)
		assert.Len(t, f.submits, 1)
	})
}

// A later process waits for what an earlier one queued.
func TestStartFindsAQueuedJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		f := &fake{}
		r := f.run(t, &lines)
		_, err := r.Start(t.Context())
		require.NoError(t, err)
		stopped := errors.New("stopped")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(stopped)
		require.ErrorIs(t, r.Wait(ctx), stopped)

		r.Job, err = Read(r.Dir)
		require.NoError(t, err)
		queued, err := r.Start(t.Context())
		require.NoError(t, err)
		require.True(t, queued)
		require.NoError(t, r.Wait(t.Context()))
		assert.Len(t, f.submits, 1)
		assert.Equal(t, "job 7 has 4 of 4 parts left", lines[1])
	})
}

func TestReadRefusesADamagedFile(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, folder), 0o777))
	require.NoError(t, os.WriteFile(filepath.Join(dir, folder, jobFile), []byte("{"), 0o600))
	_, err := Read(dir)
	require.ErrorContains(t, err, "remove the file to queue all parts that are missing")
}

func TestDivide(t *testing.T) {
	for _, tt := range []struct {
		name        string
		runs, limit int
		need        Need
		parts       int
		time        time.Duration
		megabytes   int64
	}{
		{"a run for each part", 64, 1000, Need{100 * time.Millisecond, 60 << 20}, 64, 2 * time.Minute, 320},
		{"long runs", 10000, 0, Need{90 * time.Second, 1 << 30}, 10000, 7 * time.Minute, 2112},
		{"short runs share parts", 10000, 0, Need{time.Second, 0}, 256, 4 * time.Minute, 320},
		{"the engine's limit", 10000, 1000, Need{90 * time.Second, 0}, 1000, 61 * time.Minute, 320},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var j Job
			j.Divide(tt.runs, tt.limit, tt.need)
			assert.Equal(t, tt.parts, j.Parts)
			assert.Equal(t, tt.time, j.Time)
			assert.Equal(t, tt.megabytes, j.Memory>>20)
		})
	}
}

func TestSlurmScript(t *testing.T) {
	s := &Slurm{config: map[string]string{"SelectTypeParameters": "CR_CPU_MEMORY"}}
	j := &Job{
		Name: "a b", Dir: "/shared/it's", Args: []string{"lab", "run", "/shared/it's", "--index"},
		Parts: 12, AtOnce: 3, Time: 90 * time.Second, Memory: 256 << 20,
	}
	assert.Equal(t, strings.TrimPrefix(`
#!/bin/sh
#SBATCH --job-name='tidepool-a b'
#SBATCH --array=0-3,7,9-10%3
#SBATCH --time=2
#SBATCH --mem=256M
#SBATCH --cpus-per-task=1
#SBATCH --output='/shared/it'\''s/batch/log/%A-%a.txt'
#SBATCH --open-mode=append
#SBATCH --requeue
exec '/shared/it'\''s/batch/node' lab run '/shared/it'\''s' --index "$SLURM_ARRAY_TASK_ID"
`, "\n"), s.Script(j, []int{0, 1, 2, 3, 7, 9, 10}))
}

func TestLocalCommandLines(t *testing.T) {
	j := &Job{Dir: "/d", Args: []string{"lab", "--index"}}
	assert.Equal(t, "/d/batch/node lab --index 0\n/d/batch/node lab --index 2\n",
		(&Local{}).Script(j, []int{0, 2}))
}

func TestSlurmIsNotInstalled(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := (&Slurm{}).Limit(t.Context())
	require.ErrorContains(t, err, "there is no scontrol here")
}

// The messages are those of Slurm 22.05.
func TestSlurmRefusals(t *testing.T) {
	for said, want := range map[string]string{
		"sbatch: error: invalid partition specified: nope\n" +
			"sbatch: error: Batch job submission failed: Invalid partition name specified\n": "sbatch: " +
			"invalid partition specified: nope; Batch job submission failed: Invalid partition name " +
			"specified; sinfo lists the partitions: submit … -- --partition=NAME",
		"sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit " +
			"limit, user's size and/or time limits)\n": "sbatch: Batch job submission failed: Job " +
			"violates accounting/QOS policy (job submit limit, user's size and/or time limits); the " +
			"limit is the cluster's: fewer --parts, or --at-once N, or submit again later",
		"sbatch: error: something else\n": "sbatch: something else",
	} {
		require.EqualError(t, &refused{"sbatch", message("sbatch", said)}, want)
	}
}
