//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/api"
	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/control"
)

// service is a node that runs under a service manager.
type service struct {
	t      *testing.T
	cmd    *exec.Cmd
	file   string
	text   string // the initial contents of the file
	log    *bufio.Scanner
	states *net.UnixConn
	op     *api.Client
}

// newService starts a node that logs in JSON.
func newService(t *testing.T, args ...string) *service {
	t.Helper()
	folder, err := os.MkdirTemp("", "tide") //nolint:usetesting // t.TempDir's path is too long for a socket
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	s := &service{t: t, file: filepath.Join(folder, "H.lnx"), text: loneText(t)}
	require.NoError(t, os.WriteFile(s.file, []byte(s.text), 0o600))
	s.states, err = net.ListenUnixgram("unixgram",
		&net.UnixAddr{Name: filepath.Join(folder, "notify"), Net: "unixgram"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.states.Close() })
	require.NoError(t, s.states.SetDeadline(time.Now().Add(30*time.Second)))
	socket := filepath.Join(folder, "s")
	s.cmd = exec.CommandContext(t.Context(), nodeProgram(t), append([]string{
		"run", "--daemon", "--socket", socket, "--log-format", "json", s.file,
	}, args...)...)
	s.cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+s.states.LocalAddr().String(),
		"WATCHDOG_USEC=100000")
	log, err := s.cmd.StderrPipe()
	require.NoError(t, err)
	s.log = bufio.NewScanner(log)
	require.NoError(t, s.cmd.Start())
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill() // the process may have exited
		_ = s.cmd.Wait()
	})
	s.op = api.NewClient(api.Endpoint{Socket: socket}, "H")
	t.Cleanup(s.op.Close)
	return s
}

// state reads notifications to the service manager until one starts with want.
func (s *service) state(want string) {
	s.t.Helper()
	buf := make([]byte, 1000)
	for {
		k, err := s.states.Read(buf)
		require.NoError(s.t, err, "waiting for %s", want)
		if got := string(buf[:k]); strings.HasPrefix(got, want) {
			return
		}
	}
}

// line reads the log until a record has the message msg, and returns that record.
func (s *service) line(msg string) map[string]any {
	s.t.Helper()
	for s.log.Scan() {
		var line map[string]any
		require.NoError(s.t, json.Unmarshal(s.log.Bytes(), &line), s.log.Text())
		if line["msg"] == msg {
			return line
		}
	}
	require.FailNow(s.t, "no such line", msg)
	return nil
}

// TestServiceManagerNotifications checks the node's notifications in order: ready, alive,
// reloading, ready, stopping.
func TestServiceManagerNotifications(t *testing.T) {
	s := newService(t)
	s.state("READY=1")
	s.state("WATCHDOG=1")
	s.line("up")

	require.NoError(t, os.WriteFile(s.file, []byte(s.text+"expose 80 3000\n"), 0o600))
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGHUP))
	s.state("RELOADING=1\nMONOTONIC_USEC=")
	s.state("READY=1")
	assert.Equal(t, "expose 80 127.0.0.1:3000", s.line("reloaded")["changes"])

	require.NoError(t, os.WriteFile(s.file, []byte(s.text+"expose 80 4000\nwrong\n"), 0o600))
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGHUP))
	s.state("READY=1")
	bad := s.line("reload failed")
	assert.InDelta(t, 4, bad["line"], 0)
	assert.Equal(t, "wrong", bad["text"])
	doors := testenv.Ask(t, control.Operator(s.op), control.Doors{})
	require.Len(t, doors, 1)
	assert.Equal(t, "127.0.0.1:3000", doors[0].To)

	require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
	s.state("STOPPING=1")
	assert.Equal(t, "terminated", s.line("stopping")["reason"])
	require.Error(t, s.cmd.Wait())
	assert.Equal(t, 143, s.cmd.ProcessState.ExitCode())
}

// After SIGTERM the node logs the connections that are still open when the grace period ends, but
// not those that closed in time.
func TestSIGTERMLogsOpenConnections(t *testing.T) {
	s := newService(t, "--grace", "100ms")
	s.line("up")
	op := control.Operator(s.op)
	testenv.Ask(t, op, control.Listen{Port: 80})
	us := testenv.Ask(t, op, control.Interfaces{})
	c := testenv.Ask(t, op, control.Connect{Addr: us[0].Addr.Addr(), Port: 80})
	testenv.Ask(t, op, control.Write{SID: c.SID, Data: []byte("unread")})
	require.Eventually(t, func() bool { // the listener accepts, and the data arrives
		return slices.ContainsFunc(testenv.Ask(t, op, control.Sockets{}), func(s control.Socket) bool {
			return s.Local == netip.MustParseAddrPort("10.0.0.1:80") && s.RecvQ == 6
		})
	}, time.Minute, time.Millisecond)
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
	s.line("stopping")
	first, second := s.line("connection aborted"), s.line("connection aborted")
	assert.Equal(t, "10.0.0.1:80", first["remote"])
	assert.Equal(t, "10.0.0.1:80", second["local"])
	assert.InDelta(t, 6, second["unread"], 0)
	require.Error(t, s.cmd.Wait())
	assert.Equal(t, 143, s.cmd.ProcessState.ExitCode())
}

// The log level can change while the node runs.
func TestLogLevel(t *testing.T) {
	s := newService(t, "--log-level", "warn")
	s.state("READY=1")
	op := control.Operator(s.op)
	_, err := control.Ask(t.Context(), op, control.Set{Key: "log.level", Value: "loud"})
	require.ErrorIs(t, err, control.ErrUsage)
	got := testenv.Ask(t, op, control.Set{Key: "log.level", Value: "INFO"})
	assert.Equal(t, "info", got.Value)
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
	require.True(t, s.log.Scan())
	assert.Contains(t, s.log.Text(), `"stopping"`, "what was before it is not there")
	require.Error(t, s.cmd.Wait())
}

// Every line of a JSON log is a record, including the first warnings about the file and the last
// record about the signal. The record with the token appears at every level.
func TestJSONLogHasOneRecordPerLine(t *testing.T) {
	s := newService(t, "--listen", "0", "--log-level", "error")
	s.state("READY=1")
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
	var pages []string
	for s.log.Scan() {
		var line struct{ Msg, Page, API string }
		require.NoError(t, json.Unmarshal(s.log.Bytes(), &line), s.log.Text())
		if line.Msg == "serving" {
			pages = append(pages, line.Page)
			assert.Regexp(t, `^http://127\.0\.0\.1:\d+/v1$`, line.API)
		}
	}
	require.Len(t, pages, 1)
	assert.Regexp(t, `/#token=\w+$`, pages[0])
	require.Error(t, s.cmd.Wait())
	assert.Equal(t, 143, s.cmd.ProcessState.ExitCode())
}

// The log of a daemon that cannot start has one record for each error.
func TestDaemonLogsWhyItCannotStart(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "H.lnx")
	require.NoError(t, os.WriteFile(file, []byte("wrong\nworse\n"), 0o600))
	for _, c := range []struct {
		args []string
		want []string // the errors of the records
	}{
		{[]string{file, "--listen", "0"}, []string{"wrong", "worse"}},
		{[]string{file + "x", "--listen", "0"}, []string{"no such file"}},
		{[]string{file}, []string{"--socket or --listen"}},
	} {
		status, text := ran(t, append([]string{"run", "--daemon", "--log-format", "json"}, c.args...)...)
		assert.Equal(t, 2, status, text)
		lines := strings.Split(strings.TrimSpace(text), "\n")
		require.Len(t, lines, len(c.want), text)
		for i, line := range lines {
			var got struct{ Level, Problem string }
			require.NoError(t, json.Unmarshal([]byte(line), &got), line)
			assert.Equal(t, "ERROR", got.Level)
			assert.Contains(t, got.Problem, c.want[i])
		}
	}
	status, text := ran(t, "run", file, "--log-format", "json")
	assert.Equal(t, 2, status)
	assert.Contains(t, text, "needs --daemon")
}
