package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/judge/ns3"
)

func TestJudgeRefuses(t *testing.T) {
	for want, args := range map[string][]string{
		`--with "omnet": must be ns3`:                         {"two-tahoe", "--with", "omnet"},
		`--without "loss": must be one of end-growth, double`: {"two-tahoe", "--without", "loss"},
		"two-tahoe: ns-3 cannot simulate a rate that changes": {"two-tahoe"},
		"is neither a preset nor a file":                      {"nothing"},
		"ns-3 not found: `python3 -m pip install --no-deps":   {"../../judge/scenarios/alone.yaml"},
		"--metrics: \"speed\" is not a metric":                {"two-tahoe", "--metrics", "speed"},
		"ns-3 cannot simulate reno's go-back-N recovery": {
			"../../judge/scenarios/alone.yaml", "--set", "flows.0.recovery=gbn",
		},
	} {
		t.Setenv("TIDEPOOL_NS3", "/nonexistent")
		status, text := ran(t, append([]string{"lab", "judge", "-o", t.TempDir()}, args...)...)
		assert.NotZero(t, status, text)
		assert.Contains(t, text, want)
	}
}

// A short experiment runs in both simulators, and the report shows both.
func TestJudge(t *testing.T) {
	if _, err := ns3.Find(t.Context()); errors.Is(err, ns3.ErrNotFound) {
		t.Skip("skip: needs ns3")
	}
	dir := filepath.Join(t.TempDir(), "reno")
	args := []string{
		"lab", "judge", "../../judge/scenarios/rtt-unfairness.yaml", "-o", dir, "--trials", "1",
		"--set", "duration=4s", "--set", "warmup=1s", "--without", "end-growth",
	}
	status, text := ran(t, args...)
	assert.Zero(t, status, text)
	assert.Contains(t, text, "goodput")
	assert.Contains(t, text, "packets/s here")
	report, err := os.ReadFile(filepath.Join(dir, "report.html"))
	require.NoError(t, err)
	assert.Contains(t, string(report), "ns-3.")
	assert.FileExists(t, dir+"-ns3-end-growth/summary.csv")

	status, text = ran(t, args...)
	assert.Zero(t, status, text)
	assert.NotContains(t, text, "packets/s here", "nothing ran again")
}
