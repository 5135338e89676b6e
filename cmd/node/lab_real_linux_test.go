package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// childrenOf returns the process IDs of parent's children.
func childrenOf(t *testing.T, parent int) []int {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/stat")
	require.NoError(t, err)
	var list []int
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // the process has just exited
		}
		_, rest, _ := strings.Cut(string(text), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			require.NoError(t, err)
			list = append(list, pid)
		}
	}
	return list
}

// running reports whether a process exists and has not exited.
func running(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(text), ") ")
	return err == nil && !strings.HasPrefix(rest, "Z")
}

// When a signal stops a real-time run, its processes exit too. A resumed run then succeeds.
func TestRealRunLeavesNoProcess(t *testing.T) {
	folder := t.TempDir()
	file, dir := filepath.Join(folder, "moment.yaml"), filepath.Join(folder, "dir")
	require.NoError(t, os.WriteFile(file, []byte(moment), 0o600))
	program := nodeProgram(t)
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGINT, syscall.SIGTERM} {
		c := exec.CommandContext(t.Context(), program, "lab", "run", file, "--real", "-o", dir,
			"--set", "duration=60s", "--no-figures")
		stderr, err := c.StderrPipe()
		require.NoError(t, err)
		require.NoError(t, c.Start())
		out := bufio.NewReader(stderr)
		_, err = out.ReadString('\n') // reads the estimate of the duration
		require.NoError(t, err)
		var children []int
		require.Eventually(t, func() bool {
			children = childrenOf(t, c.Process.Pid)
			return len(children) == 5
		}, time.Minute, time.Millisecond)
		require.NoError(t, c.Process.Signal(signal))
		var rest strings.Builder
		_, _ = out.WriteTo(&rest)
		require.Error(t, c.Wait())
		for _, pid := range children {
			require.Eventually(t, func() bool { return !running(pid) }, time.Minute,
				time.Millisecond)
		}
		if signal != syscall.SIGKILL {
			assert.Equal(t, 128+int(signal), c.ProcessState.ExitCode())
			assert.Contains(t, rest.String(), "1 of 2 runs are complete and stay in ")
		}
	}
	c := exec.CommandContext(t.Context(), program, "lab", "run", file, "-o", dir, "--real",
		"--set", "duration=60s", "--index", "0", "--no-figures")
	text, err := c.CombinedOutput()
	assert.NoError(t, err, string(text))
}
