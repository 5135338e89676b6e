package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestPartsOnAFullDisk: at whatever point the disk becomes full while the parts of a sweep run, one
// line says so. Only the parts that ended well count as done, and their results are the usual
// bytes.
func TestPartsOnAFullDisk(t *testing.T) {
	r := newStateDir(t)
	file := filepath.Join(t.TempDir(), "small.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`name: small
duration: 1s
trials: 2
path: {down: {delay: 5ms, rate: 5Mbit/s, queue: 20000B}, up: {delay: 5ms}}
flows: [{cc: reno}]
`), 0o600))
	part := func(dir, index string) (done string) {
		got := r.node("lab", "run", file, "-o", dir, "--no-figures", "--records", "0", "--parts", "2",
			"--index", index)
		if got.code == 0 {
			text, err := os.ReadFile(filepath.Join(dir, "cells", "part-"+index+"-of-2.csv"))
			require.NoError(t, err)
			return string(text)
		}
		assert.Equal(t, 1, got.code)
		assert.Contains(t, got.err, "no space left on device; free some space and repeat the command: it continues the run")
		assert.Equal(t, 1, strings.Count(got.err, "\n"), got.err)
		assert.NoFileExists(t, filepath.Join(dir, "cells", "part-"+index+"-of-2.csv"))
		return ""
	}
	whole := filepath.Join(t.TempDir(), "whole")
	want := []string{part(whole, "0"), part(whole, "1")}
	failed := [3]int{}
	for pages := 1; failed[0] < 1; pages++ {
		require.Less(t, pages, 40)
		dir := filepath.Join(smallDisk(t, r, pages), "dir")
		got := []string{part(dir, "0"), ""}
		if got[0] != "" {
			assert.Equal(t, want[0], got[0])
			if got[1] = part(dir, "1"); got[1] != "" {
				assert.Equal(t, want[1], got[1])
			}
		}
		missing := 0
		for _, text := range got {
			if text == "" {
				missing++
			}
		}
		failed[missing]++
		watched := r.node("lab", "watch", dir, "--once")
		if missing < 2 {
			assert.Contains(t, watched.out, []string{"2 of 2 runs", "1 of 2 runs"}[missing])
		} else {
			assert.NotContains(t, watched.out, "1 of 2 runs")
		}
	}
	assert.Positive(t, failed[1])
	assert.Positive(t, failed[2])
}
