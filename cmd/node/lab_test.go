package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	ci "github.com/tidepool-net/tidepool/internal/ci/testenv"
)

func runLab(args ...string) (stdout, stderr string, status int) {
	var out, talk strings.Builder
	status = run(append([]string{"lab"}, args...), strings.NewReader(""), &out, &talk)
	return out.String(), talk.String(), status
}

func TestLab(t *testing.T) {
	out, _, status := runLab("list")
	require.Zero(t, status)
	assert.Contains(t, out, "rip-random-1000")

	out, _, status = runLab("run", "rip-line-3")
	require.Zero(t, status)
	assert.Contains(t, out, "3 routers, 2 links, diameter 2 hops, 6 routes")
	assert.Contains(t, out, "cut silently")
	again, _, _ := runLab("run", "rip-line-3")
	assert.Equal(t, out, again, "virtual time")
	other, _, _ := runLab("run", "rip-line-3", "--seed", "2")
	assert.NotEqual(t, out, other)

	out, _, status = runLab("run", "rip-ring-3", "--dialect", "rip2", "--json")
	require.Zero(t, status)
	var got struct {
		Network struct {
			Dialect string
			Phases  []struct {
				Name      string
				Converged time.Duration `json:"converged_ns"`
				Messages  struct{ Responses int }
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(out), &got))
	assert.Equal(t, "rip2", got.Network.Dialect)
	require.Len(t, got.Network.Phases, 6)
	assert.Positive(t, got.Network.Phases[0].Converged)
	assert.Positive(t, got.Network.Phases[0].Messages.Responses)
}

// A run prints that its only expectation holds, and its log names the link's queue.
func TestLabRun(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "moment.yaml")
	require.NoError(t, os.WriteFile(file, []byte(moment), 0o600))
	out, stderr, status := runLab("run", file, "--no-figures", "-o", filepath.Join(dir, "out"),
		"--set", "path.down.queue={type: codel, limit: 50pkt}")
	require.Zero(t, status, stderr)
	assert.Contains(t, out, "\n1 expectation: it passes\n")
	lines := linesOf(t, dir, "out", "links", "0-down.log")
	assert.Equal(t, "# queue: codel [packets=50]", lines[2])
}

// The first example of the reference runs, and its expectations hold.
func TestLabRunsTheFirstExampleOfTheReference(t *testing.T) {
	t.Parallel()
	ci.NeedLong(t)
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "EXPERIMENTS.md"))
	require.NoError(t, err)
	_, text, _ = bytes.Cut(text, []byte("```yaml\n"))
	text, _, whole := bytes.Cut(text, []byte("```"))
	require.True(t, whole)
	dir := t.TempDir()
	file := filepath.Join(dir, "first.yaml")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	out, stderr, status := runLab("run", file, "--no-figures", "--trials", "1",
		"--set", "duration=50s", "-o", filepath.Join(dir, "out"))
	require.Zero(t, status, stderr)
	assert.Contains(t, out, "\n6 expectations: all pass\n")
}

// The table of a single run shows counts as whole numbers, even if the flow did not finish.
func TestLabCountsOfAnUnfinishedFlow(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "hole.yaml")
	require.NoError(t, os.WriteFile(file, []byte("name: hole\nduration: 4s\n"+
		"path: {down: {delay: 10ms, rate: 10Mbit/s, loss: 100%}}\n"+
		"flows: [{cc: cubic, size: 1MB}]\n"), 0o600))
	out, stderr, status := runLab("run", file, "--no-figures", "--metrics", "sent,completion",
		"-o", filepath.Join(dir, "out"))
	require.Zero(t, status, stderr)
	assert.Regexp(t, `(?m)^cubic +0/1 +3 +never$`, out)
	assert.Contains(t, out, "1 of 1 did not finish: cubic, trial 0: out of time: 0 of 1000000 bytes")
}

func TestLabMisuse(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"run"}, "an experiment is missing: a preset of"},
		{[]string{"run", "rip-cuont"}, "did you mean rip-count?"},
		{[]string{"run", "rip-line-99"}, "2 to 15"},
		{[]string{"run", "rip-count", "--dialect", "ospf"}, "must be rip, rip2 or ripng"},
		{[]string{"run", "rip-count", "--seed", "-1"}, "seed"},
		{[]string{"run", "tahoe-low", "--dialect", "rip2"}, "tahoe-low has no RIP routers"},
		{[]string{"run", "tahoe-low", "--cc", ""}, "--cc is empty"},
		{[]string{"compare", "nosuch", "nosuch"}, "nosuch: no such folder"},
		{[]string{"plot", "nosuch"}, "nosuch: no such folder"},
	} {
		out, talk, status := runLab(tt.args...)
		assert.Equal(t, 2, status, tt.args)
		assert.Empty(t, out)
		assert.Contains(t, talk, tt.want)
	}
}

// The command shows a sweep from its first part to its last. It prints a line for each change and
// draws the cells that are complete. It does not change the folder.
func TestLabWatch(t *testing.T) {
	folder := t.TempDir()
	file, dir := filepath.Join(folder, "moment.yaml"), filepath.Join(folder, "dir")
	page := filepath.Join(folder, "page.html")
	require.NoError(t, os.WriteFile(file, []byte(`name: moment
duration: 500ms
path: {down: {delay: 5ms, rate: 5Mbit/s}, up: {delay: 5ms}}
flows: [{cc: reno}]
sweep: {flows.0.cc: [reno, cubic]}
expect: [{value: utilisation(cubic) < 2, source: s}]
`), 0o600))
	part := func(index string) {
		_, stderr, status := runLab("run", file, "-o", dir, "--parts", "2", "--index", index)
		require.Zero(t, status, stderr)
	}
	part("0")
	in, out := io.Pipe()
	var stderr strings.Builder
	ended := make(chan int)
	go func() {
		ended <- run([]string{"lab", "watch", dir, "--page", page}, strings.NewReader(""), out, &stderr)
	}()
	lines := bufio.NewScanner(in)
	require.True(t, lines.Scan())
	assert.Equal(t, "1 of 2 runs; 1 of 2 cells complete", lines.Text())
	part("1")
	require.True(t, lines.Scan())
	assert.Equal(t, "2 of 2 runs; 2 of 2 cells complete; 1 check holds", lines.Text())
	assert.Zero(t, <-ended, stderr.String())
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	assert.NotContains(t, string(text), "http-equiv")
	assert.NoFileExists(t, filepath.Join(dir, "report.html"))

	// The log of a failed part says why its results are missing.
	log := filepath.Join(dir, "batch", "log", "7-1.txt")
	require.NoError(t, os.MkdirAll(filepath.Dir(log), 0o700))
	require.NoError(t, os.WriteFile(log, []byte("one\nnode lab run: no\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "batch", "job.json"),
		[]byte(`{"parts": 2, "engine": "local", "task": "7"}`), 0o600))
	require.NoError(t, os.Remove(filepath.Join(dir, "cells", "part-1-of-2.csv")))
	stdout, _, status := runLab("watch", dir, "--once")
	assert.Zero(t, status)
	assert.Equal(t, "1 of 2 runs; 1 of 2 cells complete; 1 of 2 parts done, 1 failed;"+
		" part 1: node lab run: no ("+log+")\n", stdout)
	require.NoError(t, os.WriteFile(log, []byte("one\nstopped\n"), 0o600))
	stdout, _, _ = runLab("watch", dir, "--once")
	assert.Contains(t, stdout, "1 of 2 parts done, 1 stopped\n")
}
