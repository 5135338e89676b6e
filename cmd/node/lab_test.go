package main

import (
	"bytes"
	"encoding/json"
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
	assert.Contains(t, out, "3 routers, 2 wires, diameter 2 hops, 6 routes")
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

// A run prints that its one expectation holds, and its log names the link's queue.
func TestLabRun(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "moment.yaml")
	require.NoError(t, os.WriteFile(file, []byte(moment), 0o600))
	out, said, status := runLab("run", file, "--no-figures", "-o", filepath.Join(dir, "out"),
		"--set", "path.down.queue={type: codel, limit: 50pkt}")
	require.Zero(t, status, said)
	assert.Contains(t, out, "\n1 expectation: it passes\n")
	lines := linesOf(t, dir, "out", "links", "0-down.log")
	assert.Equal(t, "# queue: codel [packets=50]", lines[2])
}

// The first example of the reference runs, and its expectations hold.
func TestLabRunsTheReferencesFirstFile(t *testing.T) {
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
	out, said, status := runLab("run", file, "--no-figures", "--trials", "1", "--set", "duration=50s",
		"-o", filepath.Join(dir, "out"))
	require.Zero(t, status, said)
	assert.Contains(t, out, "\n6 expectations: all pass\n")
}

// Counts in the table of a single run are whole numbers, even if the flow did not finish.
func TestLabCountsOfAHole(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "hole.yaml")
	require.NoError(t, os.WriteFile(file, []byte("name: hole\nduration: 4s\n"+
		"path: {down: {delay: 10ms, rate: 10Mbit/s, loss: 100%}}\n"+
		"flows: [{cc: cubic, size: 1MB}]\n"), 0o600))
	out, said, status := runLab("run", file, "--no-figures", "--metrics", "sent,completion",
		"-o", filepath.Join(dir, "out"))
	require.Zero(t, status, said)
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
		{[]string{"run", "rip-count", "--dialect", "ospf"}, "want rip or rip2"},
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
