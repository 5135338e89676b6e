//go:build unix

package e2e_test

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/netctl"
)

// onePID returns the process that all nodes run in.
func (r *stateDir) onePID() int {
	r.t.Helper()
	pid := 0
	for _, n := range r.status().Nodes {
		require.Contains(r.t, []int{0, n.PID}, pid, n.Name)
		pid = n.PID
	}
	require.NotZero(r.t, pid)
	return pid
}

// pings waits until A reaches C, and C reaches A.
func (r *stateDir) pings() {
	r.t.Helper()
	for from, to := range map[string]string{"A": "10.1.0.2", "C": "10.0.0.1"} {
		r.await(from, "a route to "+to, func() bool {
			return r.node("ctl", from, "ping", "-c", "1", "-W", "0.5", to).code == 0
		})
	}
}

// TestOneProcess: the nodes of a network run in one process. Each has its shell, its links can be
// changed as usual, and all nodes share one log.
func TestOneProcess(t *testing.T) {
	t.Parallel()
	r := newStateDir(t)
	dir := CopyNetwork(t, "nets", "a-b-c")
	r.must("net", "up", "--one-process", dir.Dir, "--name", "line")
	pid := r.onePID()
	r.pings()
	assert.Equal(t, 2, r.status().Nodes[1].NeighborsUp, "neighbors are observed")

	t.Log("# links: down and up, loss, a capture")
	r.must("ctl", "B", "down", "if1")
	assert.NotZero(t, r.node("ctl", "A", "ping", "-c", "1", "-W", "0.2", "10.1.0.2").code)
	r.must("ctl", "B", "up", "if1")
	r.pings()
	r.must("ctl", "B", "impair", "if0", "loss", "100%")
	assert.NotZero(t, r.node("ctl", "C", "ping", "-c", "1", "-W", "0.2", "10.0.0.1").code)
	r.must("ctl", "B", "impair", "if0", "off")
	r.pings()

	t.Log("# a changed file is reloaded; a new node restarts all of them")
	dir.Append("B", "link if1 delay 30ms")
	got := r.node("net", "apply")
	require.Zero(t, got.code, got.err)
	assert.Contains(t, got.err, "reloaded: B\nalready running: A C\n")
	assert.Contains(t, r.must("ctl", "B", "impair"), "if1 out: delay 30ms")
	assert.Equal(t, pid, r.onePID())
	r.pings()
	port := strings.TrimPrefix(freeTCPAddr(t), "127.0.0.1:")
	require.NoError(t, os.WriteFile(dir.File("D"),
		[]byte("interface if0 10.9.0.1/24 127.0.0.1:"+port+"\n"), 0o600))
	got = r.node("net", "up", dir.Dir, "--name", "line")
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.err, "network line runs in one process, without D: `node net apply ")
	assert.Equal(t, pid, r.onePID())
	got = r.node("net", "apply")
	require.Zero(t, got.code, got.err)
	assert.Contains(t, got.err, "started: D\nrestarted: A B C\n")
	assert.Contains(t, got.err, "  C, because of the nodes of the network share a process")
	assert.NotEqual(t, pid, r.onePID())
	require.NoError(t, os.Remove(dir.File("D")))
	got = r.node("net", "apply")
	require.Zero(t, got.code, got.err)
	assert.Contains(t, got.err, "stopped: D\n")
	r.pings()

	t.Log("# one log; down stops the process and removes its files")
	folder := filepath.Join(r.state, "tidepool", "line")
	text, err := os.ReadFile(filepath.Join(folder, "network.log"))
	require.NoError(t, err)
	for _, name := range []string{"A", "B", "C"} {
		assert.Regexp(t, `msg=up node=`+name+` pid=`, string(text))
	}
	assert.Equal(t, "line is down: 3 nodes stopped\n", r.node("net", "down").err)
	assert.NoDirExists(t, folder)
}

// TestOneProcessEnds: all nodes end with their process. The next up starts it again.
func TestOneProcessEnds(t *testing.T) {
	t.Parallel()
	r := newStateDir(t)
	dir := CopyNetwork(t, "nets", "a-b-c")
	r.must("net", "up", "--one-process", dir.Dir, "--name", "line")
	pid := r.onePID()
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	r.await("A", "dead", func() bool { return r.nodeStates()["A"] == netctl.Dead })
	assert.Equal(t, 1, strings.Count(r.node("net", "status").out, "network.log"), "one log, once")
	got := r.node("net", "up", dir.Dir, "--name", "line")
	require.Zero(t, got.code, got.err)
	assert.Contains(t, got.err, "started: A B C\n")
	pid = r.onePID()
	r.pings()
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	r.await("A", "dead", func() bool { return r.nodeStates()["A"] == netctl.Dead })
	assert.Contains(t, r.node("net", "down").err,
		"line is down: 0 nodes stopped; crashed before: A, B, C (their logs stay until the next up")
	logs, err := filepath.Glob(filepath.Join(r.state, "tidepool", "line", "*"))
	require.NoError(t, err)
	assert.Len(t, logs, 1, "%v", logs)
}

// TestOneProcessCannotStart: if a node cannot open, no node runs, and nothing is left.
func TestOneProcessCannotStart(t *testing.T) {
	t.Parallel()
	r := newStateDir(t)
	dir := CopyNetwork(t, "nets", "a-b-c")
	text, err := os.ReadFile(dir.File("C"))
	require.NoError(t, err)
	at := regexp.MustCompile(`interface if0 \S+ (\S+)`).FindStringSubmatch(string(text))[1]
	taken, err := net.ListenPacket("udp", at)
	require.NoError(t, err)
	defer taken.Close()
	got := r.node("net", "up", "--one-process", dir.Dir, "--name", "line")
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.err, "C.lnx:")
	assert.Contains(t, got.err, at+": address already in use")
	assert.NoDirExists(t, filepath.Join(r.state, "tidepool", "line"))
	assert.Contains(t, r.node("net", "status").err, "no network is up in ")

	t.Log("# the same if only the process notices it")
	folder := filepath.Join(r.state, "s")
	require.NoError(t, os.Mkdir(folder, 0o700))
	got = r.node("net", "process", folder, dir.File("A"), dir.File("B"), dir.File("C"))
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.err, at+": address already in use")
	left, err := os.ReadDir(folder)
	require.NoError(t, err)
	assert.Empty(t, left)

	t.Log("# a network with a process for each node stays one")
	require.NoError(t, taken.Close())
	r.must("net", "up", dir.Dir, "--name", "line")
	got = r.node("net", "up", "--one-process", dir.Dir, "--name", "line")
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.err, "with one process for each node; `node net down line` stops it")
}
