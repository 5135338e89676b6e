//go:build unix

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
)

// loneText returns a node's file with free ports and a neighbor that does not exist.
func loneText(t *testing.T) string {
	t.Helper()
	ports := testenv.FreePorts(t, 2)
	return fmt.Sprintf("interface if0 10.0.0.1/24 127.0.0.1:%d\n"+
		"neighbor 10.0.0.2 at 127.0.0.1:%d via if0\n", ports[0], ports[1])
}

func loneFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "H.lnx")
	require.NoError(t, os.WriteFile(path, []byte(loneText(t)), 0o600))
	return path
}

func TestSignalsSetTheExitStatusOfAScript(t *testing.T) {
	for signal, status := range map[syscall.Signal]int{
		syscall.SIGINT: 130, syscall.SIGTERM: 143, syscall.SIGHUP: 129,
	} {
		c := exec.CommandContext(t.Context(), nodeProgram(t), "run", loneFile(t))
		in, err := c.StdinPipe()
		require.NoError(t, err)
		out, err := c.StdoutPipe()
		require.NoError(t, err)
		var complaints strings.Builder
		c.Stderr = &complaints
		require.NoError(t, c.Start())
		_, err = io.WriteString(in, "routes\nsleep\n")
		require.NoError(t, err)
		_, err = bufio.NewReader(out).ReadString('\n')
		require.NoError(t, err)
		require.NoError(t, c.Process.Signal(signal))
		require.Error(t, c.Wait())
		assert.Equal(t, status, c.ProcessState.ExitCode(), signal)
		if signal == syscall.SIGINT {
			assert.Empty(t, complaints.String(), "Ctrl-C prints no error")
		} else {
			assert.Equal(t, "node run: "+signal.String()+"\n", complaints.String())
		}
	}
}

// TestCtrlCStopsTheCommandAndNotTheNode types commands into a node on a terminal.
func TestCtrlCStopsTheCommandAndNotTheNode(t *testing.T) {
	home := t.TempDir()
	// Reads from a terminal have no deadline, but they return when the node exits.
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	c := exec.CommandContext(ctx, nodeProgram(t), loneFile(t))
	c.Env = append(os.Environ(), "XDG_STATE_HOME="+home, "TERM=xterm", "NO_COLOR=1")
	tty, err := pty.StartWithSize(c, &pty.Winsize{Rows: 24, Cols: 80})
	require.NoError(t, err)
	defer tty.Close()
	screen := bufio.NewReader(tty)
	await := func(want string) {
		t.Helper()
		var seen strings.Builder
		for !strings.HasSuffix(seen.String(), want) {
			b, err := screen.ReadByte()
			require.NoError(t, err, "waiting for %q, saw %q", want, seen.String())
			seen.WriteByte(b)
		}
	}
	typed := func(keys string) {
		t.Helper()
		_, err := tty.WriteString(keys)
		require.NoError(t, err)
	}

	t.Log("# a connection request without an answer")
	await("H> ")
	typed("ping 10.0.0.2\r")
	await("bytes of data.\r\n")
	typed("\x03")
	await("ping statistics ---\r\n")
	await(" packets transmitted, 0 received") // the count depends on timing
	await("H> ")

	t.Log("# the node is there as before")
	typed("li\r")
	await(" if0  10.0.0.1/24   up\r\n")
	await("H> ")
	typed("\x04")
	require.NoError(t, c.Wait())
	history, err := os.ReadFile(filepath.Join(home, "tidepool", "history"))
	require.NoError(t, err)
	assert.Equal(t, "ping 10.0.0.2\nli\n", string(history))
}

// A command that only prints exits when its reader closes the pipe, even if the command has nothing
// to print.
func TestCommandsEndWhenTheirReaderIsGone(t *testing.T) {
	s := newService(t)
	s.state("READY=1")
	beside := loneFile(t)
	for _, command := range []string{
		"events --json", "capture all tcp", "capture all tcp -w -", "trace tcp", "trace tcp --json",
		"watch -n 1000 rip",
	} {
		for _, args := range [][]string{
			{"run", beside, "-c", command},
			{"ctl", filepath.Join(filepath.Dir(s.file), "s"), command},
		} {
			reader, out, err := os.Pipe()
			require.NoError(t, err)
			c := exec.CommandContext(t.Context(), nodeProgram(t), args...)
			c.Stdout = out
			require.NoError(t, c.Start())
			require.NoError(t, out.Close())
			require.NoError(t, reader.Close())
			require.Error(t, c.Wait())
			status, _ := c.ProcessState.Sys().(syscall.WaitStatus)
			assert.True(t, status.ExitStatus() == 128+int(syscall.SIGPIPE) ||
				status.Signal() == syscall.SIGPIPE, "%q: %v", args, c.ProcessState)
		}
	}
}
