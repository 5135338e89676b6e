package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestJudgeRefuses(t *testing.T) {
	for want, args := range map[string][]string{
		`--with "omnet": must be ns3`:                       {"two-tahoe", "--with", "omnet"},
		`--reno "fast": must be reno-without-end-growth`:    {"two-tahoe", "--reno", "fast"},
		"two-tahoe: ns-3 does not play a rate that changes": {"two-tahoe"},
		"is neither a preset nor a file":                    {"nothing"},
		"ns-3 not found: `python3 -m pip install --no-deps": {"../../judge/scenarios/alone.yaml"},
		"--metrics: \"speed\" is no metric":                 {"two-tahoe", "--metrics", "speed"},
		"ns-3 does not play reno's go-back-N recovery": {
			"../../judge/scenarios/alone.yaml", "--set", "flows.0.recovery=gbn",
		},
	} {
		t.Setenv("TIDEPOOL_NS3", "/nonexistent")
		status, text := ran(t, append([]string{"lab", "judge", "-o", t.TempDir()}, args...)...)
		assert.NotZero(t, status, text)
		assert.Contains(t, text, want)
	}
}
