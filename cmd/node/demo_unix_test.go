//go:build unix

package main

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var pidWord = regexp.MustCompile(`\(pid (\d+)\)`)

// startDemo starts a demo that takes longer than the test. It returns once the transfer has begun,
// with the process IDs of the nodes A, B and C.
func startDemo(t *testing.T, dir string) (c *exec.Cmd, complaints *bytes.Buffer, pids []int) {
	t.Helper()
	complaints = &bytes.Buffer{}
	c = exec.CommandContext(t.Context(), nodeProgram(t), "demo",
		"--bytes", "200000000", "--loss", "20", "--out", dir)
	c.Stderr = complaints
	stdout, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	in := bufio.NewScanner(stdout)
	for in.Scan() {
		for _, word := range pidWord.FindAllStringSubmatch(in.Text(), -1) {
			pid, err := strconv.Atoi(word[1])
			require.NoError(t, err)
			pids = append(pids, pid)
		}
		if strings.HasPrefix(in.Text(), "C: sendfile") {
			break
		}
	}
	require.Len(t, pids, 3, "stderr: %s", complaints)
	return c, complaints, pids
}

// assertGone checks that the processes have exited and that the file was deleted.
func assertGone(t *testing.T, dir string, pids []int) {
	t.Helper()
	for _, pid := range pids {
		require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH, "process %d is still there", pid)
	}
	assert.NoFileExists(t, filepath.Join(dir, demoSent))
}

func TestDemoInterrupted(t *testing.T) {
	for _, c := range []struct {
		signal syscall.Signal
		stderr string
	}{{syscall.SIGINT, ""}, {syscall.SIGTERM, "node demo: terminated\n"}} {
		dir := t.TempDir()
		demo, complaints, pids := startDemo(t, dir)
		require.NoError(t, demo.Process.Signal(c.signal))
		var exit *exec.ExitError
		require.ErrorAs(t, demo.Wait(), &exit)
		assert.Equal(t, 128+int(c.signal), exit.ExitCode())
		assert.Equal(t, c.stderr, complaints.String(), "Ctrl-C prints no error")
		assertGone(t, dir, pids)
		assert.NoFileExists(t, filepath.Join(dir, demoPart))
		samples, err := os.Stat(filepath.Join(dir, demoProbe))
		require.NoError(t, err)
		assert.Positive(t, samples.Size(), "the nodes have finished their files")
	}
}

func TestDemoNamesTheNodeThatStopped(t *testing.T) {
	for i, name := range []string{"A", "B", "C"} {
		dir := t.TempDir()
		c, complaints, pids := startDemo(t, dir)
		require.NoError(t, syscall.Kill(pids[i], syscall.SIGKILL))
		var exit *exec.ExitError
		require.ErrorAs(t, c.Wait(), &exit)
		assert.Equal(t, 1, exit.ExitCode())
		assert.Contains(t, complaints.String(), "node "+name+": signal: killed")
		assert.Equal(t, 1, strings.Count(complaints.String(), "\n"), "one line: %s", complaints)
		assertGone(t, dir, pids)
	}
}

func TestDemoShowsItsProgressOnATerminal(t *testing.T) {
	for _, size := range []*pty.Winsize{{Rows: 24, Cols: 100}, {}} {
		c := exec.CommandContext(t.Context(), nodeProgram(t), "demo", "--bytes", "3000000",
			"--loss", "10", "--out", t.TempDir())
		terminal, err := pty.StartWithSize(c, size)
		require.NoError(t, err)
		shown, _ := io.ReadAll(terminal) // fails once the terminal is closed
		require.NoError(t, c.Wait())
		assert.Regexp(t, `#{40} 100% .*/s 0:00 left`, string(shown), "%d columns", size.Cols)
	}
}

func TestDemoExplainsAFileThatIsTooLarge(t *testing.T) {
	dir := t.TempDir()
	// ulimit -f limits the size of each file that the demo writes, in units of 1024 or 512 bytes.
	// The file that the second demo generates exceeds the limit.
	c := exec.CommandContext(t.Context(), "sh", "-c",
		`ulimit -f 1000; trap '' XFSZ; exec "$0" demo --bare --keep --bytes 400000 --out "$1"`,
		nodeProgram(t), dir)
	require.NoError(t, c.Run(), "400 kB fit")
	c = exec.CommandContext(t.Context(), "sh", "-c",
		`ulimit -f 1000; trap '' XFSZ; exec "$0" demo --bare --bytes 3000000 --out "$1"`,
		nodeProgram(t), dir)
	var complaints bytes.Buffer
	c.Stderr = &complaints
	var exit *exec.ExitError
	require.ErrorAs(t, c.Run(), &exit)
	assert.Equal(t, 1, exit.ExitCode())
	assert.Regexp(t, `^node demo: generating the file: write .*: file too large\n$`,
		complaints.String())
}
