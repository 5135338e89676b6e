package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// nodeProgram returns the path of this test's binary under the name node. TestMain has put it on
// PATH.
func nodeProgram(t *testing.T) string {
	t.Helper()
	program, err := exec.LookPath("node")
	require.NoError(t, err)
	// The race detector makes each process sleep for a second before it exits. This test does not
	// need that.
	t.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=10")
	return program
}

// runDemo runs the program's demo and returns its output.
func runDemo(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, complaints bytes.Buffer
	c := exec.CommandContext(t.Context(), nodeProgram(t), append([]string{"demo"}, args...)...)
	c.Stdout, c.Stderr = &out, &complaints
	err = c.Run()
	return out.String(), complaints.String(), err
}

func TestDemoAsJSON(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a folder")
	stdout, stderr, err := runDemo(t, "--bytes", "3000000", "--json", "--out", dir)
	require.NoError(t, err, stderr)
	assert.Empty(t, stderr, "no terminal, no progress")

	in := json.NewDecoder(strings.NewReader(stdout))
	var r demoResult
	require.NoError(t, in.Decode(&r))
	assert.False(t, in.More(), "one object: %s", stdout)
	assert.True(t, strings.HasPrefix(stdout, `{"bytes":3000000,"loss_percent":2,"seconds":`), stdout)
	assert.True(t, r.Match)
	assert.Equal(t, int64(3_000_000), r.Bytes)
	assert.InDelta(t, 3/r.Seconds, r.MBPerS, 0.01*r.MBPerS)
	assert.Positive(t, r.BoundMBPerS)
	assert.GreaterOrEqual(t, r.RouterPackets, uint64(3_000_000/1460), "B forwarded it all")
	assert.Positive(t, r.RouterLost)
	assert.Positive(t, r.Retransmits)

	for _, name := range []string{
		"A.lnx", "B.lnx", "C.lnx", "A.pcapng", "B.pcapng", "C.pcapng",
		"figure.svg", "figure.png", "figure.pdf", "figure.eps", demoProbe, demoSummary,
	} {
		info, err := os.Stat(filepath.Join(dir, name))
		if assert.NoError(t, err) {
			assert.Positive(t, info.Size(), name)
		}
	}
	assert.NoFileExists(t, filepath.Join(dir, demoSent))
	assert.NoFileExists(t, filepath.Join(dir, demoReceived))
	saved, err := os.ReadFile(filepath.Join(dir, demoSummary))
	require.NoError(t, err)
	assert.JSONEq(t, stdout, string(saved))
}

func TestDemoAsText(t *testing.T) {
	dir := t.TempDir()
	stdout, stderr, err := runDemo(t,
		"--bytes", "200000", "--loss", "0", "--keep", "--out", dir, "--pcap-snaplen", "0")
	require.NoError(t, err, stderr)
	assert.Contains(t, stdout, "200,000 bytes in ")
	assert.Contains(t, stdout, "equal in the sent file, at both nodes and in the received file")
	assert.Contains(t, stdout, "document 001")
	sent, err := os.ReadFile(filepath.Join(dir, demoSent))
	require.NoError(t, err)
	received, err := os.ReadFile(filepath.Join(dir, demoReceived))
	require.NoError(t, err)
	assert.True(t, bytes.Equal(sent, received), "both are kept")
	capture, err := os.Stat(filepath.Join(dir, "A.pcapng"))
	require.NoError(t, err)
	assert.Greater(t, capture.Size(), int64(200_000), "whole packets")
}

func TestDemoDirectAndBare(t *testing.T) {
	dir := t.TempDir()
	stdout, stderr, err := runDemo(t, "--direct", "--bare", "--bytes", "1", "--json", "--out", dir)
	require.NoError(t, err, stderr)
	assert.Contains(t, stdout, `"sha256_match":true`)
	assert.NoFileExists(t, filepath.Join(dir, "B.lnx"))
	assert.NoFileExists(t, filepath.Join(dir, "C.pcapng"))
	assert.NoFileExists(t, filepath.Join(dir, "figure.svg"))
	assert.FileExists(t, filepath.Join(dir, demoSummary))
}

func TestDemoWithoutIPv4(t *testing.T) {
	dir := t.TempDir()
	stdout, stderr, err := runDemo(t,
		"--family", "6", "--bytes", "300000", "--json", "--out", dir, "--pcap-snaplen", "0")
	require.NoError(t, err, stderr)
	var r demoResult
	require.NoError(t, json.Unmarshal([]byte(stdout), &r))
	assert.True(t, r.Match)
	assert.Equal(t, 1400-40-20-12, r.MSS, "IPv6 headers, and timestamps")
	assert.FileExists(t, filepath.Join(dir, "figure.svg"))
	router, err := os.ReadFile(filepath.Join(dir, "B.lnx"))
	require.NoError(t, err)
	assert.NotContains(t, string(router), "10.")
	assert.Contains(t, string(router), "routing ripng")
}

func TestDemoOfAnEmptyFile(t *testing.T) {
	stdout, stderr, err := runDemo(t, "--bytes", "0", "--json", "--out", t.TempDir())
	require.NoError(t, err, stderr)
	assert.Contains(t, stdout, `"sha256_match":true`)
}

func TestDemoExitStatus(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, c := range []struct {
		args []string
		want int
	}{
		{[]string{"--loss", "200"}, 2},
		{[]string{"--nothing"}, 2},
		{[]string{"--out", file, "--bytes", "1"}, 1},
	} {
		stdout, stderr, err := runDemo(t, c.args...)
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit, "%v", c.args)
		assert.Equal(t, c.want, exit.ExitCode(), "%v: %s", c.args, stderr)
		assert.Empty(t, stdout)
	}
}

func TestDemoComparesAlgorithms(t *testing.T) {
	dir := t.TempDir()
	stdout, stderr, err := runDemo(t, "--cc", "all", "--bytes", "2000000", "--out", dir)
	require.NoError(t, err, stderr)
	assert.Regexp(t, `\n +reno +cubic +bbr\n  throughput, MB/s +[0-9.]+ +[0-9.]+ +[0-9.]+\n`, stdout)
	assert.Contains(t, stdout, "halves its window at each loss")
	assert.Regexp(t, `SHA-256 [0-9a-f]{64}\n +equal in the sent file[^\n]+\n$`, stdout)
	for _, name := range []string{
		"figure.svg", "figure.pdf", "figure.eps", demoSummary, "reno/figure.svg", "cubic/A.pcapng", "bbr/" + demoProbe,
	} {
		assert.FileExists(t, filepath.Join(dir, name))
	}
	assert.NoFileExists(t, filepath.Join(dir, "bbr", demoReceived))

	stdout, stderr, err = runDemo(t, "--bytes", "1000", "--cc", "bbr", "--json", "--out", dir)
	require.NoError(t, err, stderr)
	assert.Contains(t, stdout, `"congestion":"bbr"`)
	assert.NoDirExists(t, filepath.Join(dir, "reno"), "an earlier demonstration's")

	stdout, stderr, err = runDemo(t, "--cc", "all", "--bytes", "0", "--json", "--direct", "--out", dir)
	require.NoError(t, err, stderr)
	var c demoComparison
	require.NoError(t, json.Unmarshal([]byte(stdout), &c))
	require.Len(t, c.Runs, 3)
	assert.Equal(t, "cubic", c.Runs[1].Congestion)
}
