//go:build unix

package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	ci "github.com/tidepool-net/tidepool/internal/ci/testenv"
)

// sweeping is a sweep of runs that take some milliseconds each.
const sweeping = `name: sweeping
duration: 10s
trials: 20
path: {down: {delay: 5ms, rate: 5Mbit/s, queue: 20000B, loss: 0.5%}, up: {delay: 5ms}}
flows: [{cc: reno}]
sweep: {flows.0.cc: [reno, cubic, tahoe, bbr]}
`

// TestAnInterruptedSweepContinues stops a sweep with a signal or by closing its terminal. The next run
// completes it with the same results as a sweep without interruption.
func TestAnInterruptedSweepContinues(t *testing.T) {
	ci.NeedLong(t)
	folder := t.TempDir()
	file := filepath.Join(folder, "sweeping.yaml")
	require.NoError(t, os.WriteFile(file, []byte(sweeping), 0o600))
	whole, dir := filepath.Join(folder, "whole"), filepath.Join(folder, "dir")
	lab := func(dir string) *exec.Cmd {
		return exec.CommandContext(t.Context(), nodeProgram(t), "lab", "run", file, "-o", dir,
			"-j", "1", "--records", "0", "--no-figures")
	}
	text, err := lab(whole).CombinedOutput()
	require.NoError(t, err, string(text))

	rows := 1 // includes the header
	stored := func() int {
		text, _ := os.ReadFile(filepath.Join(dir, "trials.csv")) // the file does not exist at first
		return strings.Count(string(text), "\n")
	}
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGINT, syscall.SIGTERM} {
		c := lab(dir)
		c.Env = append(os.Environ(), "TERM=xterm")
		tty, err := pty.StartWithSize(c, &pty.Winsize{Rows: 24, Cols: 80})
		require.NoError(t, err)
		require.NoError(t, tty.SetReadDeadline(time.Now().Add(60*time.Second)))
		screen := bufio.NewReader(tty)
		for stored() <= rows { // the program shows the progress from the start
			_, err = screen.ReadString('\r')
			require.NoError(t, err)
		}
		require.NoError(t, c.Process.Signal(signal))
		var shown strings.Builder
		_, _ = screen.WriteTo(&shown) // fails once the terminal is closed
		require.Error(t, c.Wait())
		require.NoError(t, tty.Close())
		if signal != syscall.SIGKILL {
			assert.Equal(t, 128+int(signal), c.ProcessState.ExitCode())
			assert.Contains(t, shown.String(), " of 80 runs are complete and stay in ")
		}
		rows = stored()
		assert.Less(t, rows, 1+2*80, "it was stopped")
		assert.NoFileExists(t, filepath.Join(dir, "summary.csv"))
	}
	text, err = lab(dir).CombinedOutput()
	require.NoError(t, err, string(text))
	assert.Contains(t, string(text), " of them now, in ")
	for _, name := range []string{"trials.csv", "summary.csv", "run.json"} {
		want, err := os.ReadFile(filepath.Join(whole, name))
		require.NoError(t, err)
		got, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		assert.Equal(t, string(want), string(got), name)
	}
}

// The command shows how many parts of a job are running or waiting, if the batch system answers on
// this machine.
func TestLabWatchAsksTheBatchSystem(t *testing.T) {
	folder := t.TempDir()
	file, dir := filepath.Join(folder, "sweeping.yaml"), filepath.Join(folder, "dir")
	require.NoError(t, os.WriteFile(file, []byte(sweeping), 0o600))
	_, stderr, status := runLab("run", file, "-o", dir, "--parts", "80", "--index", "0")
	require.Zero(t, status, stderr)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "batch"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "batch", "job.json"),
		[]byte(`{"parts": 80, "engine": "slurm", "task": "7"}`), 0o600))
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	const begin = "1 of 80 runs; 0 of 4 cells complete; 1 of 80 parts done, 79 not started"
	for output, want := range map[string]string{
		"echo 'RUNNING|None'; echo 'PENDING|Resources'":     "; slurm: 1 running, 1 waiting\n",
		"echo 'PENDING|QOSMaxJobsPerUserLimit'":             "; slurm: 0 running, 1 waiting (QOSMaxJobsPerUserLimit)\n",
		"echo 'slurm_load_jobs error: Invalid job id' >&2;": "; slurm has no part left to run: `node lab submit " + dir + " --on slurm` continues\n",
		"exit 1": "\n",
	} {
		script := "#!/bin/sh\n" + output + "\n"
		if strings.Contains(output, "Invalid") {
			script += "exit 1\n"
		}
		require.NoError(t, os.WriteFile(filepath.Join(folder, "squeue"), []byte(script), 0o700)) //nolint:gosec // a fake squeue
		stdout, stderr, status := runLab("watch", dir, "--once")
		assert.Zero(t, status, stderr)
		assert.Equal(t, begin+want, stdout)
	}
}
