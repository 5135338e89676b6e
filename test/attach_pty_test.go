//go:build unix

package e2e_test

import (
	"bytes"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/test/internal/nodes"
)

// screen is what a terminal has shown.
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

// await waits until something is shown, and forgets what is before its end.
func (s *screen) await(t *testing.T, what string) {
	t.Helper()
	over := time.NewTimer(nodes.Soon)
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

// TestCtrlCStopsTheCommand, Ctrl-D leaves, and the network runs on.
func TestCtrlCStopsTheCommand(t *testing.T) {
	t.Parallel()
	r := newRealm(t)
	r.must("net", "up", nodes.CopyNetwork(t, "nets", "a-b").Dir, "--name", "pair")
	cmd := r.command("attach", "A")
	cmd.SysProcAttr = nil // the terminal is its own
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
	shown.await(t, "attached to node A; Ctrl-D leaves, and it runs on")
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
	enter("\x03") // at the prompt it is for the line
	enter("recvfile never 6000\r")
	shown.await(t, "waits for a connection on port 6000, in the background")
	enter("cancel 1\r")
	shown.await(t, "stopped (nobody had connected)")
	// Ctrl-D is for a prompt, and what comes before it is lost; so is a second one after the end.
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
