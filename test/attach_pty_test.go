//go:build unix

package e2e_test

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/term"

	"github.com/tidepool-net/tidepool/internal/netctl"
)

// screen records the output of a terminal.
type screen struct {
	mu    sync.Mutex
	text  bytes.Buffer
	fresh chan struct{}
}

func (s *screen) read(f *os.File) {
	part := make([]byte, 4096)
	for {
		n, err := f.Read(part)
		s.mu.Lock()
		s.text.Write(part[:n])
		s.mu.Unlock()
		select {
		case s.fresh <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

// await waits until the terminal shows a text, and discards the output up to it.
func (s *screen) await(t *testing.T, what string) {
	t.Helper()
	over := time.NewTimer(Soon)
	defer over.Stop()
	for {
		s.mu.Lock()
		text := s.text.String()
		if i := strings.Index(text, what); i >= 0 {
			s.text.Next(i + len(what))
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		select {
		case <-s.fresh:
		case <-over.C:
			require.FailNow(t, "not shown", "%q; there is %q", what, text)
		}
	}
}

// TestCtrlCStopsTheCommand also checks that Ctrl-D detaches and that the network keeps running.
func TestCtrlCStopsTheCommand(t *testing.T) {
	t.Parallel()
	r := newStateDir(t)
	r.must("net", "up", CopyNetwork(t, "nets", "a-b").Dir, "--name", "pair")
	cmd := r.command("attach", "A")
	cmd.SysProcAttr = nil // the terminal starts its own session
	cmd.Env = append(cmd.Env, "TERM=xterm")
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 100})
	require.NoError(t, err)
	defer terminal.Close()
	shown := &screen{fresh: make(chan struct{}, 1)}
	go shown.read(terminal)
	enter := func(keys string) {
		_, err := terminal.WriteString(keys)
		require.NoError(t, err)
	}
	shown.await(t, "attached to node A; Ctrl-D leaves, the node keeps running")
	shown.await(t, "A> ")
	enter("ping -i 0.05 10.0.0.2\r")
	shown.await(t, "icmp_seq=3")
	enter("\x03")
	shown.await(t, "ping statistics")
	shown.await(t, "rtt min/avg/max/mdev")
	shown.await(t, "A> ")
	enter("neigh\t\r")
	shown.await(t, "UDPAddr")
	shown.await(t, "A> ")
	enter("\x03") // at the prompt, Ctrl-C discards the line
	enter("recvfile never 6000\r")
	shown.await(t, "waits for a connection on port 6000, in the background")
	enter("cancel 1\r")
	shown.await(t, "stopped (no sender had connected)")
	// Ctrl-D works only at a prompt. If it arrives earlier, or after the end, it is lost. So repeat
	// it.
	left := make(chan error, 1)
	go func() { left <- cmd.Wait() }()
	for end := time.Now().Add(patience); ; {
		_, _ = terminal.WriteString("\x04")
		select {
		case err := <-left:
			require.NoError(t, err)
			assert.True(t, r.status().Well())
			return
		case <-time.After(100 * time.Millisecond):
			require.True(t, time.Now().Before(end), "Ctrl-D does not leave")
		}
	}
}

// TestTerminalIsRestored: however an attached shell ends, it restores the terminal and prints one
// line that says why.
func TestTerminalIsRestored(t *testing.T) {
	r := newStateDir(t)
	net := CopyNetwork(t, "nets", "a-b").Dir
	r.must("net", "up", net, "--name", "pair")
	self := func(cmd *exec.Cmd) int { return cmd.Process.Pid }
	theNode := func(*exec.Cmd) int { return r.pid("A") }
	const gone = "node attach: A stopped; `node net status` shows its state"
	for _, tt := range []struct {
		name, keys, shown string
		whom              func(*exec.Cmd) int
		by                syscall.Signal
		code              int
		told              string
	}{
		{"a half-typed line", "half typed", "half typed", theNode, syscall.SIGKILL, 1, gone},
		{"a picture", "watch -n 0.1 li\r", "Every 0.1s: li", theNode, syscall.SIGKILL, 1, gone},
		{"packets", "capture all\r", "until Ctrl-C", theNode, syscall.SIGTERM, 1, gone},
		{
			"a transfer", "recvfile got 9000\r", "waits for a connection", theNode,
			syscall.SIGTERM, 1, gone,
		},
		{"a shell that is ended", "half typed", "half typed", self, syscall.SIGTERM, 143, ""},
		{"a picture that is ended", "watch li\r", "Every 2s: li", self, syscall.SIGHUP, 129, ""},
	} {
		cmd := r.command("attach", "A")
		cmd.SysProcAttr = nil
		cmd.Env = append(cmd.Env, "TERM=xterm")
		terminal, tty, err := pty.Open()
		require.NoError(t, err)
		require.NoError(t, pty.Setsize(terminal, &pty.Winsize{Rows: 24, Cols: 100}))
		before, err := term.GetState(int(tty.Fd()))
		require.NoError(t, err)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
		require.NoError(t, cmd.Start())
		shown := &screen{fresh: make(chan struct{}, 1)}
		go shown.read(terminal)
		shown.await(t, "A> ")
		_, err = terminal.WriteString(tt.keys)
		require.NoError(t, err)
		shown.await(t, tt.shown)
		require.NoError(t, syscall.Kill(tt.whom(cmd), tt.by), tt.name)
		if strings.Contains(tt.keys, "watch") {
			shown.await(t, "\x1b[?1049l") // back to the main screen
		}
		shown.await(t, tt.told)
		_ = cmd.Wait() // the exit status is checked below
		assert.Equal(t, tt.code, cmd.ProcessState.ExitCode(), tt.name)
		after, err := term.GetState(int(tty.Fd()))
		require.NoError(t, err)
		assert.Equal(t, before, after, tt.name)
		require.NoError(t, terminal.Close())
		require.NoError(t, tty.Close())
		if tt.code == 1 {
			r.await("A", "dead", func() bool { return r.nodeStates()["A"] == netctl.Dead })
			r.must("net", "up", net, "--name", "pair")
		}
	}
}
