package main

import (
	"encoding/csv"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
)

// moment is an experiment of two seconds.
const moment = `name: moment
duration: 2s
path: {down: {delay: 10ms, rate: 10Mbit/s, queue: 1bdp, loss: 1%}, up: {delay: 10ms}}
flows: [{name: file, cc: cubic, size: 100kB}, {name: bulk, cc: reno, start: 200ms}]
expect: [{value: utilisation > 0.1, source: s}]
`

// linesOf returns the lines of a file.
func linesOf(t *testing.T, path ...string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	require.NoError(t, err)
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// A real-time run and a virtual-time run write the same kinds of files. The results say which run
// is which, and whether the real-time run kept to its schedule. The test does not check by how much
// the run was late, because that depends on the machine.
func TestRealAndVirtualTime(t *testing.T) {
	testenv.NeedLong(t)
	folder := t.TempDir()
	file, dir := filepath.Join(folder, "moment.yaml"), filepath.Join(folder, "dir")
	require.NoError(t, os.WriteFile(file, []byte(moment), 0o600))
	program := nodeProgram(t)
	node := func(args ...string) (string, int) {
		c := exec.CommandContext(t.Context(), program, args...)
		text, err := c.CombinedOutput()
		if err != nil {
			require.NotNil(t, c.ProcessState, err)
		}
		return string(text), c.ProcessState.ExitCode()
	}
	stderr, status := node("lab", "run", file, "--real", "-o", dir)
	require.Zero(t, status, stderr)
	assert.Contains(t, stderr, "1 run in real time, one after the other: up to 3.0 s")
	assert.Regexp(t, `real time: (kept time|could not keep time): packets left up to `, stderr)
	assert.Contains(t, stderr, "of real time")

	rows, err := csv.NewReader(strings.NewReader(
		strings.Join(linesOf(t, dir, "trials.csv"), "\n"))).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 1+2*3)
	at := map[string]int{}
	for i, name := range rows[0] {
		at[name] = i
	}
	for i, row := range rows[1:] {
		clock, live := row[at["clock"]], i >= 3
		assert.Equal(t, live, strings.HasPrefix(clock, "real"), clock)
		assert.Equal(t, live, row[at["hash"]] == "0000000000000000")
		if row[at["finished"]] != "true" { // the machine may be too busy
			assert.True(t, live)
			assert.Contains(t, row[at["note"]], "out of time: ")
		} else if row[at["flow"]] == "file" {
			assert.Equal(t, "100000", row[at["delivered"]])
		}
		assert.Equal(t, live && row[at["flow"]] == "", row[at["late_limit"]] != "")
	}
	for _, name := range []string{"-0.csv", "-0-segments.csv", "-0-progress.csv", "-1.csv"} {
		virtual, live := linesOf(t, dir, "flows", "0"+name), linesOf(t, dir, "flows", "1"+name)
		assert.Equal(t, virtual[0], live[0], name)
		assert.Greater(t, len(live), 10, name)
	}
	page := strings.Join(linesOf(t, dir, "report.html"), "\n")
	assert.Contains(t, page, "Real and virtual time")
	assert.Contains(t, page, "only of the runs in virtual time")
	assert.Contains(t, page, "real time: ")
	assert.FileExists(t, filepath.Join(dir, "plots", "0-beside-cwnd.svg"))

	stderr, status = node("lab", "run", dir)
	require.Zero(t, status, stderr)
	assert.Contains(t, stderr, "all existed before")
	stderr, status = node("lab", "run", file, "-o", dir)
	assert.Equal(t, 1, status)
	assert.Contains(t, stderr, "it was run also in real time (--real)")
	stderr, status = node("lab", "check", dir)
	assert.Zero(t, status, stderr)

	stderr, status = node("lab", "run", file, "--real", "--index", "1", "-o",
		filepath.Join(folder, "cell"))
	require.Zero(t, status, stderr)
	assert.Regexp(t, `real time: (kept time|could not keep time): packets left up to `, stderr)
	assert.NotContains(t, stderr, "hash ", "a real-time run has no hash")

	other := filepath.Join(folder, "other")
	stderr, status = node("lab", "run", file, "--real", "-o", other,
		"--end", "tcp=/no/such/program")
	assert.Equal(t, 1, status)
	assert.Contains(t, stderr, "cannot start the run in real time")
	assert.Contains(t, stderr, "/no/such/program")
	stderr, status = node("lab", "run", file, "--real", "-o", other, "--end", "qiuc=node-quic")
	assert.Equal(t, 2, status)
	assert.Contains(t, stderr, "--end qiuc=node-quic: protocol must be tcp, rcp, rdt or quic")
}

// An experiment that cannot run in real time fails before it writes any file, and the error gives
// the line and column.
func TestExperimentsThatCannotRunInRealTime(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dir")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"tahoe-low-published"}, "tahoe-low-published.yaml:23:29: the notebook's own senders"},
		{[]string{"fence-16"}, "it cannot run in real time, where path.up.loss is none"},
		{[]string{"rip-3"}, "--real: rip-3 runs only in virtual time"},
		{[]string{"reassembly-cases"}, "--real: reassembly-cases runs only in virtual time"},
		{[]string{"tahoe-low", "--until", "ci<5%"}, "--real and --until cannot be used together"},
		{[]string{"tahoe-low", "--at-most", "1m"}, "12 min; --at-most 12m3s allows that, and --set duration=40s,"},
	} {
		out, stderr, status := runLab(append([]string{"run", "--real", "-o", dir}, c.args...)...)
		assert.Equal(t, 2, status, c.args)
		assert.Empty(t, out)
		assert.Contains(t, stderr, c.want)
		assert.NoDirExists(t, dir, c.args)
	}
}
