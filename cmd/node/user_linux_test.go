package main

import (
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/control"
)

// becomes is the user that the daemons of these tests switch to.
const becomes = "nobody"

func needsRoot(t *testing.T) (uid, gid int) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("skip: needs root")
	}
	u, err := user.Lookup(becomes)
	require.NoError(t, err)
	uid, err = strconv.Atoi(u.Uid)
	require.NoError(t, err)
	gid, err = strconv.Atoi(u.Gid)
	require.NoError(t, err)
	return uid, gid
}

// status returns the fields of a thread's or process's status file.
func status(t *testing.T, path string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	fields := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		fields[name] = strings.Join(strings.Fields(value), " ")
	}
	return fields
}

// TestRootDaemonDropsItsPrivileges checks that a daemon drops its privileges in every thread,
// and that the user owns its files. The daemon rejects devices that a reload adds, and says why.
func TestRootDaemonDropsItsPrivileges(t *testing.T) {
	uid, gid := needsRoot(t)
	dir := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755)) //nolint:gosec // the user must be able to enter the folder
	require.NoError(t, os.Chown(dir, uid, gid))
	written := []string{filepath.Join(dir, "a.pcapng"), filepath.Join(dir, "a.csv")}
	s := newService(t, "--user", becomes, "--pcap", written[0], "--probe", written[1])
	s.line("up")

	pid := strconv.Itoa(s.cmd.Process.Pid)
	tasks, err := filepath.Glob("/proc/" + pid + "/task/*/status")
	require.NoError(t, err)
	require.NotEmpty(t, tasks)
	u, g := strconv.Itoa(uid), strconv.Itoa(gid)
	for _, path := range tasks {
		got := status(t, path)
		assert.Equal(t, strings.Join([]string{u, u, u, u}, " "), got["Uid"], path)
		assert.Equal(t, strings.Join([]string{g, g, g, g}, " "), got["Gid"], path)
		assert.Equal(t, g, got["Groups"], path)
		for _, set := range []string{"CapEff", "CapPrm", "CapInh", "CapAmb"} {
			assert.Equal(t, "0000000000000000", got[set], "%s of %s", set, path)
		}
		assert.Equal(t, "1", got["NoNewPrivs"], path)
	}
	for _, path := range written {
		info, err := os.Stat(path)
		require.NoError(t, err)
		stat, ok := info.Sys().(*syscall.Stat_t)
		require.True(t, ok)
		assert.EqualValues(t, uid, stat.Uid, path)
	}

	_, err = control.Ask(t.Context(), control.Operator(s.op),
		control.RecvFile{Path: "received", Port: 9000})
	require.ErrorContains(t, err, "permission denied for this process, which runs as user "+becomes)
	require.NoError(t, os.Chmod(filepath.Dir(s.file), 0o755)) //nolint:gosec // the user reads the new file in this folder
	require.NoError(t, os.Chmod(s.file, 0o644))
	require.NoError(t, os.WriteFile(s.file,
		[]byte(s.text+"interface tun9 10.9.0.1/24 tun:tide9 kernel 10.9.0.2\n"), 0o600))
	_, err = control.Ask(t.Context(), control.Operator(s.op), control.Reload{})
	require.ErrorContains(t, err, "tide9")
	require.ErrorContains(t, err, "gave up root's privileges when it started")

	require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
	require.Error(t, s.cmd.Wait())
	assert.Equal(t, 143, s.cmd.ProcessState.ExitCode())
}

// TestRootDaemonBecomesTheFoldersOwner checks that a daemon that root starts switches to the user
// who owns its folder, unless --user is root.
func TestRootDaemonBecomesTheFoldersOwner(t *testing.T) {
	uid, gid := needsRoot(t)
	dir := t.TempDir()
	require.NoError(t, os.Chown(dir, uid, gid))
	socket := filepath.Join(dir, "s")
	a, err := findAccount("", socket, true)
	require.NoError(t, err)
	require.NotNil(t, a)
	assert.Equal(t, account{becomes, uid, gid}, *a)
	for _, c := range []struct {
		name   string
		daemon bool
	}{{"root", true}, {"0", true}, {"", false}} {
		a, err = findAccount(c.name, socket, c.daemon)
		require.NoError(t, err)
		assert.Nil(t, a, c)
	}
}

// TestUnknownUser checks that an unknown user is an error before the node opens anything.
func TestUnknownUser(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	out, err := exec.CommandContext(t.Context(), nodeProgram(t), "run", "--daemon", "--socket", socket,
		"--user", "no-such-user", loneFile(t)).CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(out), `--user "no-such-user": no such user on this machine`)
	assert.NoFileExists(t, socket)
}
