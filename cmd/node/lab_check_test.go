package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
)

// checksOf returns the names that `lab check --list` prints for args.
func checksOf(t *testing.T, args ...string) []string {
	t.Helper()
	out, text, status := runLab(append([]string{"check", "--list"}, args...)...)
	assert.Zero(t, status, text)
	var names []string
	lines := strings.Split(strings.TrimSpace(out), "\n")
	for _, line := range lines[:len(lines)-1] {
		names = append(names, strings.Fields(line)[0])
	}
	return names
}

// An argument that is not a preset's name selects all presets that begin with it. Presets without
// expectations are left out, and each preset is checked once.
func TestCheckOfPresetFamilies(t *testing.T) {
	testenv.NeedNoRace(t)
	assert.Equal(t, []string{"rmcat-5.1", "rmcat-5.2", "rmcat-5.4"},
		checksOf(t, "rmcat-5.1", "rmcat-5")[:3])
	assert.Len(t, checksOf(t, "rmcat"), 7)
	assert.NotContains(t, checksOf(t, "pantheon-1*"), "pantheon-13", "it expects nothing")
	assert.Equal(t, []string{"fence"}, checksOf(t, "fence"))
	assert.Greater(t, len(checksOf(t, "fence*")), 4)
	for args, want := range map[string]string{
		"panteon":               "did you mean pantheon?",
		"pantheon-3":            "pantheon-3: its file has no expectations",
		"rip-line-4":            "has no expectations: it has no file",
		"reassembly-cases":      "has no expectations: it has no file",
		"nowhere/at-all.yaml":   "no such file",
		"--list --markdown":     "--list runs nothing",
		"--list rmcat nonsense": "is neither a preset nor a file",
	} {
		out, text, status := runLab(append([]string{"check"}, strings.Fields(args)...)...)
		assert.Equal(t, 2, status, args)
		assert.Contains(t, text, want)
		assert.Empty(t, out, args)
	}
	_, text, status := runLab("run", "pantheon")
	assert.Equal(t, 2, status)
	assert.Contains(t, text, "did you mean pantheon-1, pantheon-2, pantheon-3, pantheon-4 or one of 14 more")
}

// A report says which warm-up it excludes, prints sizes in readable units, and says how to repeat
// the run: by the preset's name, or by a path relative to the report's folder. It never contains an
// absolute path.
func TestReportContents(t *testing.T) {
	testenv.NeedLong(t)
	t.Chdir(t.TempDir())
	page := func(dir string) string {
		text, err := os.ReadFile(filepath.Join(dir, "report.html"))
		require.NoError(t, err)
		return string(text)
	}
	out, stderr, status := runLab("run", "tahoe-low", "--trials", "2", "--seed", "7",
		"--set", "duration=30s")
	require.Zero(t, status, stderr)
	assert.Contains(t, out, "means exclude the first 20 s, counts include it")
	dir := filepath.Dir(strings.Fields(out[strings.LastIndex(out, "\nlab"):])[0])
	text := page(dir)
	assert.Contains(t, text, "<dd>the first 20 s are left out of means, extremes and shares;")
	assert.Contains(t, text, "measured from here")
	assert.Contains(t, text, "<code>node lab run lab/"+filepath.Base(dir)+" --fresh</code>, or in "+
		"this page’s folder <code>node lab run . --fresh</code>")

	require.NoError(t, os.WriteFile("mine.yaml", []byte(moment), 0o600))
	away := t.TempDir()
	out, stderr, status = runLab("run", "mine.yaml", "-o", away,
		"--sweep", "flows.0.size=1234567B,1500B")
	require.Zero(t, status, stderr)
	assert.Regexp(t, `(?m)^1.23 MB `, out)
	assert.Regexp(t, `(?m)^1500B `, out)
	text = page(away)
	assert.Contains(t, text, "1.23 MB")
	assert.NotContains(t, text, away)
	assert.NotContains(t, text, "left out")
	assert.Contains(t, text, "<dd>in this page’s folder <code>node lab run . --fresh</code>")
	summary, err := os.ReadFile(filepath.Join(away, "summary.csv"))
	require.NoError(t, err)
	assert.Contains(t, string(summary), "1234567B")

	hash := regexp.MustCompile(`hash \w+`).FindString(out)
	t.Chdir(away)
	out, stderr, status = runLab("run", ".", "--fresh")
	require.Zero(t, status, stderr)
	assert.Contains(t, out, hash)
}

func TestAPresetIsRepeatedByItsName(t *testing.T) {
	testenv.NeedNoRace(t)
	t.Chdir(t.TempDir())
	for _, line := range []string{"check-slow-start", "check-slow-start --seed 3 --trials 2"} {
		out, stderr, status := runLab(append([]string{"run"}, strings.Fields(line)...)...)
		require.Zero(t, status, stderr)
		dir := filepath.Dir(strings.Fields(out[strings.LastIndex(out, "\nlab"):])[0])
		text, err := os.ReadFile(filepath.Join(dir, "report.html"))
		require.NoError(t, err)
		assert.Contains(t, string(text), "<dd><code>node lab run "+line+" --fresh</code></dd>")
	}
}
