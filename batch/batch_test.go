package batch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fake is an engine whose parts end after two calls of Tasks. Each part in lost fails as often as
// lost says.
type fake struct {
	lost    map[int]int // how often each part fails
	done    map[int]bool
	queued  []int
	asked   int
	reason  string
	waits   int    // number of calls of Tasks for which all parts wait
	silent  int    // number of calls of Tasks that fail
	refuse  int    // number of submissions that fail
	late    int    // number of calls of Tasks for which results remain invisible
	log     string // what a failing part writes to its log; empty: no log
	submits [][]int
	limits  []time.Duration
}

func (*fake) Name() string                       { return "fake" }
func (*fake) Limit(context.Context) (int, error) { return 0, nil }
func (*fake) Script(*Job, []int) (string, error) { return "", nil }

func (*fake) Gather(context.Context, *Job) (bool, error) { return false, nil }

func (f *fake) Submit(_ context.Context, j *Job, parts []int) (string, error) {
	if f.refuse--; f.refuse >= 0 {
		return "", ErrSilent
	}
	f.submits = append(f.submits, parts)
	f.limits = append(f.limits, j.Time)
	f.queued, f.asked = parts, 0
	return "7", nil
}

func (f *fake) Tasks(_ context.Context, j *Job) (Tasks, error) {
	if f.silent > 0 {
		f.silent--
		return Tasks{}, ErrSilent
	}
	if f.asked++; f.asked < 3+f.waits {
		return Tasks{Waiting: len(f.queued), Reason: f.reason}, nil
	}
	for _, p := range f.queued {
		line := f.log
		if f.lost[p]--; f.lost[p] < 0 {
			f.done[p] = true
			line = filepath.Join(j.Dir, "cells", fmt.Sprintf("part-%d-of-4.csv", p))
		}
		if f.log == "" {
			continue
		}
		if err := os.WriteFile(j.log(p), []byte("one\n"+line+"\n"), 0o600); err != nil {
			return Tasks{}, err
		}
	}
	f.queued = nil
	return Tasks{}, nil
}

func (f *fake) missing(parts int) (list []int) {
	for p := range parts {
		if !f.done[p] || f.late > 0 && f.asked < 3+f.late {
			list = append(list, p)
		}
	}
	return list
}

// run returns a run of four parts on the engine. It appends the run's messages to the list.
func (f *fake) run(t *testing.T, lines *[]string) *Run {
	t.Helper()
	j := &Job{Name: "x", Dir: t.TempDir(), Parts: 4, Time: time.Minute, Memory: 64 << 20}
	require.NoError(t, os.MkdirAll(j.logs(), 0o777))
	if f.done == nil {
		f.done = map[int]bool{}
	}
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
		f := &fake{lost: map[int]int{1: 1, 3: 2}, log: "no space left on device"}
		r := f.run(t, &lines)
		// The log of an earlier task is ignored, even if it is newer.
		old := filepath.Join(r.logs(), "6-1.txt")
		require.NoError(t, os.WriteFile(old, []byte("an old error\n"), 0o600))
		require.NoError(t, os.Chtimes(old, time.Time{}, time.Now().Add(1e6*time.Hour)))
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
	for name, tt := range map[string]struct {
		fake    fake
		want    string
		submits int
	}{
		"a part fails": {
			fake{lost: map[int]int{2: 9}, log: "node lab run: no"},
			"parts 2 failed 3 times; part 2: node lab run: no (DIR/batch/log/7-2.txt)", 3,
		},
		"a part leaves nothing": {
			fake{lost: map[int]int{2: 9}}, "parts 2 failed 3 times; they left no message: the batch" +
				" system may have ended them, or a machine does not share DIR", 3,
		},
		// The first part has run here, to measure it.
		"nothing is shared": {
			fake{lost: map[int]int{1: 9, 2: 9, 3: 9}, done: map[int]bool{0: true}},
			"no part of job 7 wrote a result or a message to DIR: check that all machines share this" +
				" folder, or choose one with -o DIR", 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var lines []string
				f := &tt.fake
				r := f.run(t, &lines)
				_, err := r.Start(t.Context())
				require.NoError(t, err)
				require.EqualError(t, r.Wait(t.Context()), strings.Replace(tt.want, "DIR", r.Dir, 1))
				assert.Len(t, f.submits, tt.submits)
			})
		})
	}
}

// A shared folder shows results a minute late. The run waits for them, and no part runs twice.
func TestRunWaitsForASlowFolder(t *testing.T) {
	for _, log := range []string{"", "used"} {
		synctest.Test(t, func(t *testing.T) {
			var lines []string
			f := &fake{late: 61, log: log}
			r := f.run(t, &lines)
			_, err := r.Start(t.Context())
			require.NoError(t, err)
			require.NoError(t, r.Wait(t.Context()))
			assert.Len(t, f.submits, 1)
			assert.Equal(t, "4 parts have ended without a result or a message in "+r.Dir+
				": waiting 1m30s, because a shared folder may be slow", lines[1])
		})
	}
}

// A job that cannot be recorded, for example because the folder is full, is not queued.
func TestRunRecordsAJobBeforeItIsQueued(t *testing.T) {
	var lines []string
	f := &fake{}
	r := f.run(t, &lines)
	require.NoError(t, os.Mkdir(filepath.Join(r.Dir, folder, jobFile), 0o777))
	_, err := r.Start(t.Context())
	require.Error(t, err)
	assert.Empty(t, f.submits)
}

// The run asks again if the engine does not answer, and queues no part twice.
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

// If the engine does not answer when failed parts are to be queued again, the run tries later.
func TestRunQueuesAgainAfterSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		f := &fake{lost: map[int]int{1: 1}, log: "failed"}
		r := f.run(t, &lines)
		_, err := r.Start(t.Context())
		require.NoError(t, err)
		f.refuse = 2
		require.NoError(t, r.Wait(t.Context()))
		assert.Equal(t, [][]int{{0, 1, 2, 3}, {1}}, f.submits)
		assert.Equal(t, 2*time.Minute, f.limits[1])
	})
}

// The run reports once why no part runs.
func TestRunTellsWhyPartsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		f := &fake{reason: "QOSMaxJobsPerUserLimit", waits: 9}
		r := f.run(t, &lines)
		_, err := r.Start(t.Context())
		require.NoError(t, err)
		require.NoError(t, r.Wait(t.Context()))
		assert.Equal(t, "4 parts wait: QOSMaxJobsPerUserLimit", lines[1])
		assert.Len(t, lines, 2)
	})
}

// A later process waits for the job that an earlier process queued.
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
		Name: "a b", Dir: "/shared/it's", Args: []string{"lab", "run", "/shared/it's"},
		Parts: 12, AtOnce: 3, Time: 90 * time.Second, Memory: 256 << 20,
	}
	script, err := s.Script(j, []int{0, 1, 2, 3, 7, 9, 10})
	require.NoError(t, err)
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
exec '/shared/it'\''s/batch/node' lab run '/shared/it'\''s' --index="$SLURM_ARRAY_TASK_ID"
`, "\n"), script)
}

func TestLocalCommandLines(t *testing.T) {
	j := &Job{Dir: "/d", Args: []string{"lab"}}
	script, err := (&Local{}).Script(j, []int{0, 2})
	require.NoError(t, err)
	assert.Equal(t, "/d/batch/node lab --index=0\n/d/batch/node lab --index=2\n", script)
}

func TestSlurmIsNotInstalled(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := (&Slurm{}).Limit(t.Context())
	require.ErrorContains(t, err, "scontrol is not in PATH")
}

// The messages are those of Slurm 22.05.
func TestSlurmRefusals(t *testing.T) {
	for output, want := range map[string]string{
		"invalid partition specified: nope\nsbatch: error: Batch job submission failed: Invalid" +
			" partition name specified": "submit … -- --partition=NAME",
		"Batch job submission failed: User's group not permitted to use this partition": "--partition=NAME",
		"AssocMaxSubmitJobLimit\nsbatch: error: Batch job submission failed: Job violates accounting/QOS" +
			" policy (job submit limit, user's size and/or time limits)": "the limit is the cluster's:" +
			" use fewer --parts, a lower --time, or submit again later",
		"Batch job submission failed: Requested time limit is invalid (missing or exceeds some" +
			" limit)": "set a lower limit with --time, such as --time 30m",
		"Batch job submission failed: Invalid account or account/partition combination" +
			" specified": "-- --account=NAME",
		"Batch job submission failed: Invalid qos specification":       "-- --qos=NAME",
		"Batch job submission failed: Invalid job array specification": "fewer --parts",
		"Batch job submission failed: Memory specification can not be satisfied": "set a lower limit" +
			" with --memory MB",
		"Batch job submission failed: Requested node configuration is not available": "no node has" +
			" that much",
	} {
		err := (&refused{slurm, "sbatch", message("sbatch", "sbatch: error: "+output+"\n")}).Error()
		first, _, _ := strings.Cut(output, "\n")
		assert.True(t, strings.HasPrefix(err, "sbatch: "+first), err)
		assert.Contains(t, err, want)
		assert.NotContains(t, err, "\n")
	}
	require.EqualError(t, &refused{slurm, "sbatch", message("sbatch", "sbatch: error: something else\n")},
		"sbatch: something else")
	assert.Equal(t, "Could not establish a configuration source", message("scontrol",
		"scontrol: error: resolve_ctls_from_dns_srv: res_nsearch error: Unknown host\n"+
			"scontrol: error: fetch_config: DNS SRV lookup failed\n"+
			"scontrol: error: _establish_config_source: failed to fetch config\n"+
			"scontrol: fatal: Could not establish a configuration source\n"))
}

func TestSlurmLimits(t *testing.T) {
	for want, config := range map[int]map[string]string{
		1000: {"MaxArraySize": "1001", "MaxJobCount": "10000"},
		499:  {"MaxArraySize": "1001", "MaxJobCount": "500"},
	} {
		got, err := (&Slurm{config: config}).Limit(t.Context())
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	_, err := (&Slurm{config: map[string]string{"MaxArraySize": "0"}}).Limit(t.Context())
	require.ErrorContains(t, err, `MaxArraySize is "0"`)
}

// If a part cannot start or a signal ends it, its log says so.
func TestLocalLogsWhatEndedAPart(t *testing.T) {
	j := &Job{Dir: t.TempDir(), Parts: 1, AtOnce: 1, Task: "local", Args: []string{"-c", "kill -9 $$"}}
	require.NoError(t, os.MkdirAll(j.logs(), 0o777))
	l := &Local{}
	require.Error(t, l.runPart(t.Context(), j, 0))
	line, done, err := j.lastLine(0)
	require.NoError(t, err)
	assert.False(t, done)
	assert.Contains(t, line, j.Program())

	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("skip: needs sh")
	}
	require.NoError(t, os.Symlink(shell, j.Program()))
	require.Error(t, l.runPart(t.Context(), j, 0))
	line, _, err = j.lastLine(0)
	require.NoError(t, err)
	assert.Equal(t, "signal: killed", line)

	// A part that the command stops does not count as failed.
	up := filepath.Join(j.Dir, "up")
	j.Args = []string{"-c", "echo up >'" + up + "'; exec sleep 600"}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	_, err = l.Submit(ctx, j, []int{0})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := os.Stat(up)
		return err == nil
	}, time.Minute, time.Millisecond)
	stop()
	l.Wait()
	messages, stopped, failed, logs := j.ReadLogs([]int{0})
	assert.Empty(t, messages)
	assert.Equal(t, []int{1, 1, 1}, []int{stopped, failed, logs})
}

// A configuration that Kubernetes would reject is an error before anything is written.
func TestPodCheck(t *testing.T) {
	for text, want := range map[string]Pod{
		"": {}, "--image": {Image: "a b"}, "--image ": {Image: "Tidepool"}, "--image  ": {Image: "a:b:c"},
		"--claim": {Claim: "Foo_Bar"}, "--claim ": {Claim: "-a"}, "--claim-size": {ClaimSize: "10Gigs"},
		"--claim-size ": {ClaimSize: "0"}, "--claim-size  ": {ClaimSize: "-1Gi"},
	} {
		if err := want.Check(); text == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, strings.TrimSpace(text)+" \"", "%v", want)
		}
	}
	for _, image := range []string{
		"tidepool", "localhost:5000/a/b_c:v1", "registry.example/tidepool:v0.0.0-2026-abc",
		"r.example/t@sha256:" + strings.Repeat("a", 64),
	} {
		require.NoError(t, Pod{Image: image, Claim: "my.claim-1", ClaimSize: "1.5Ti"}.Check(), image)
	}
}

// Install replaces the program only if it differs, because machines may be running it.
func TestInstallKeepsTheSameProgram(t *testing.T) {
	j := &Job{Dir: t.TempDir()}
	require.NoError(t, j.Install())
	before, err := os.Stat(j.Program())
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o755), before.Mode().Perm())
	require.NoError(t, os.Chmod(j.Program(), 0o600), "the first Install ended before it set the mode")
	require.NoError(t, j.Install())
	after, err := os.Stat(j.Program())
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o755), after.Mode().Perm())
	assert.True(t, os.SameFile(before, after))
	require.NoError(t, os.WriteFile(j.Program(), []byte("another"), 0o700)) //nolint:gosec // a program
	require.NoError(t, j.Install())
	after, err = os.Stat(j.Program())
	require.NoError(t, err)
	assert.Equal(t, before.Size(), after.Size())
	list, err := os.ReadDir(filepath.Dir(j.Program()))
	require.NoError(t, err)
	assert.Len(t, list, 2, "the program and the folder of logs")
}
