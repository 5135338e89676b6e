package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	ci "github.com/tidepool-net/tidepool/internal/ci/testenv"
)

// clean matches the summary for a node without faults. On a busy machine, a retransmission of the
// node can be late in one of three runs.
var clean = regexp.MustCompile(`\n\d+ checks in [\d.]+ s: \d+ pass(, \d+ skipped)?(, [12] flaky)?\n$`)

// The examiner finds no fault in our own node, which it starts as a node of each generation of the
// course. The short variant runs a few checks for one generation.
func TestExamineOurNode(t *testing.T) {
	t.Parallel()
	profiles := []string{"course-2024"}
	args := []string{"--only", "tcp/ack-*", "--only", "ip/forward*", "--only", "transfer/*-loss-2"}
	if ci.Long() {
		profiles, args = []string{"course-2016", "course-2022", "course-2023", "course-2024"}, nil
	}
	for _, profile := range profiles {
		dir := t.TempDir()
		r := node(t, "", append([]string{
			"examine", "--profile", profile, "--command", Command().Path + " run --keep-going {lnx}",
			"--out", dir, "--jobs", "8",
		}, args...)...)
		assert.Regexp(t, clean, r.out, "%s", r.err)
		page, err := os.ReadFile(filepath.Join(dir, "report.html"))
		require.NoError(t, err)
		assert.Contains(t, string(page), "Examination of")
	}
}

// An error about a wrong name or file has its position.
func TestExamineErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	profile := filepath.Join(dir, "p.yaml")
	require.NoError(t, os.WriteFile(profile, []byte("base: course-2024\ncommands:\n  lisen: a {port}\n"),
		0o644))
	rubric := filepath.Join(dir, "r.yaml")
	require.NoError(t, os.WriteFile(rubric,
		[]byte("parts:\n- name: A\n  points: 1\n  checks: [tcp/finn-*]\n"), 0o644))
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--only", "tcp/handshake-pasive"}, "did you mean tcp/handshake-passive?"},
		{[]string{"--profile", "course-2020"}, "did you mean course-20"},
		{[]string{"--profile", "course-2022"}, "--command must say how to start the node"},
		{[]string{"--profile", profile, "--command", "x"}, `p.yaml:3:3: unknown command "lisen"`},
		{[]string{"--rubric", rubric}, "r.yaml:4:12: no check has this name"},
	} {
		r := node(t, "", append([]string{"examine"}, c.args...)...)
		assert.Equal(t, 2, r.code, c.args)
		assert.Contains(t, r.err, c.want)
	}
}

// With --json, the report is the only object on the output, also if a check did not pass.
func TestExamineJSON(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.check"), []byte("rfc course\nlevel course\n"+
		"area a\nstory s\nrule r\nbug b\n\nsend S\nexpect S.\n"), 0o644))
	r := node(t, "", "examine", "--json", "--checks", dir)
	var got struct {
		Good   bool
		Checks []struct{ Verdict string }
	}
	require.NoError(t, json.Unmarshal([]byte(r.out), &got), "%s", r.out)
	assert.False(t, got.Good)
	require.Len(t, got.Checks, 1)
	assert.Equal(t, "fail", got.Checks[0].Verdict)
}
