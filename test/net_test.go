//go:build unix

package e2e_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/netctl"
)

// stateDir is a state folder with networks, in which commands of the program run.
type stateDir struct {
	t     *testing.T
	state string
}

// newStateDir returns a state folder whose networks are stopped at the end of the test.
func newStateDir(t *testing.T) *stateDir {
	t.Helper()
	// t.TempDir is too long for a socket's path
	state, err := os.MkdirTemp("", "tide") //nolint:usetesting // too long for a socket
	require.NoError(t, err)
	r := &stateDir{t: t, state: state}
	t.Cleanup(func() {
		logs, _ := filepath.Glob(filepath.Join(state, "*", "*.log"))
		for _, path := range logs {
			text, _ := os.ReadFile(path)
			assert.NotContains(t, string(text), "panic:", path)
			assert.NotContains(t, string(text), "DATA RACE", path)
			if t.Failed() {
				t.Logf("%s:\n%s", path, text)
			}
		}
		r.node("net", "down", "--all")
		require.NoError(t, os.RemoveAll(state))
	})
	return r
}

// ran is the result of a command.
type ran struct {
	code     int
	out, err string
}

// node runs the program with args and waits for it.
func (r *stateDir) node(args ...string) ran {
	r.t.Helper()
	cmd := r.command(args...)
	var out, talk bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &talk
	err := cmd.Run()
	if _, exited := err.(*exec.ExitError); err != nil && !exited { //nolint:errorlint // not wrapped
		require.NoError(r.t, err)
	}
	return ran{cmd.ProcessState.ExitCode(), out.String(), talk.String()}
}

func (r *stateDir) command(args ...string) *exec.Cmd {
	cmd := Command(args...)
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+r.state, "NO_COLOR=1")
	return cmd
}

// must runs a command that has to succeed, and returns its output.
func (r *stateDir) must(args ...string) string {
	r.t.Helper()
	got := r.node(args...)
	require.Zero(r.t, got.code, "node %s: %s%s", strings.Join(args, " "), got.out, got.err)
	return got.out
}

// status returns the status of the only network.
func (r *stateDir) status() netctl.Status {
	r.t.Helper()
	var list []netctl.Status
	require.NoError(r.t, json.Unmarshal([]byte(r.node("net", "status", "--json").out), &list))
	require.Len(r.t, list, 1)
	return list[0]
}

// nodeStates returns the state of every node by name.
func (r *stateDir) nodeStates() map[string]netctl.Life {
	r.t.Helper()
	nodeStates := map[string]netctl.Life{}
	for _, n := range r.status().Nodes {
		nodeStates[n.Name] = n.Life
	}
	return nodeStates
}

// pid returns a node's process id.
func (r *stateDir) pid(node string) int {
	r.t.Helper()
	for _, n := range r.status().Nodes {
		if n.Name == node {
			return n.PID
		}
	}
	require.FailNow(r.t, "no such node", node)
	return 0
}

// TestNetworkUpAndDown follows a new user: up, a file transfer, down.
func TestNetworkUpAndDown(t *testing.T) {
	t.Parallel()
	r := newStateDir(t)
	net := CopyNetwork(t, "nets", "ring")
	folder := t.TempDir()
	got := r.node("net", "up", net.Dir, "--name", "ring", "--files", folder)
	require.Zero(t, got.code, got.err)
	assert.Contains(t, got.err, "started: A B R1 R2 R3 R4\nring is up; ")
	assert.Empty(t, got.out, "messages go to standard error")
	got = r.node("net", "up", net.Dir, "--name", "ring", "--state", filepath.Join(r.state, "tidepool"))
	assert.Contains(t, got.err, "ring is up; `node attach A`, `node net status`, `node net down`\n")
	other := filepath.Join(r.state, "other folder")
	small := CopyNetwork(t, "nets", "a-b")
	got = r.node("net", "up", small.Dir, "--name", "small", "--state", other)
	assert.Contains(t, got.err, "small is up; `node attach A --state '"+other+"'`, "+
		"`node net status --state '"+other+"'`, `node net down --state '"+other+"'`\n")
	r.must("net", "down", "--state", other)
	status := r.status()
	assert.Equal(t, "ring", status.Name)
	assert.True(t, status.Well())

	// A second up has nothing to do and keeps the processes.
	got = r.node("net", "up", net.Dir, "--name", "ring")
	assert.Contains(t, got.err, "already running: A B R1 R2 R3 R4")
	assert.Equal(t, status.Nodes[0].PID, r.pid("A"))

	sent, received := filepath.Join(folder, "sent"), filepath.Join(folder, "received")
	require.NoError(t, os.WriteFile(sent, bytes.Repeat([]byte("tide"), 1<<18), 0o600))
	b := r.command("ctl", "B", "recvfile", received, "6000", "--json")
	out, err := b.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, b.Start())
	r.await("B", "a listener", func() bool { return len(r.sockets("B")) == 1 })
	r.await("A", "a route to B", func() bool {
		return r.node("ctl", "A", "ping", "-c", "1", "-W", "0.5", "10.5.0.2").code == 0
	})
	assert.Contains(t, r.must("ctl", "A", "sendfile", sent, "10.5.0.2", "6000"), "Sent 1048576 total")
	text, err := io.ReadAll(out)
	require.NoError(t, err)
	require.NoError(t, b.Wait())
	var moved control.Transfer
	require.NoError(t, json.Unmarshal(text, &moved), "%s", text)
	assert.Equal(t, int64(1<<20), moved.Bytes)
	want, err := os.ReadFile(sent)
	require.NoError(t, err)
	have, err := os.ReadFile(received)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(want, have))

	got = r.node("net", "down")
	assert.Zero(t, got.code)
	assert.Equal(t, "ring is down: 6 nodes stopped\n", got.err)
	left, err := os.ReadDir(filepath.Join(r.state, "tidepool"))
	require.NoError(t, err)
	for _, e := range left {
		assert.False(t, e.IsDir(), "%s stays", e.Name())
	}
	assert.Contains(t, r.node("net", "status").err, "no network is up in ")
}

func (r *stateDir) sockets(node string) (list []control.Socket) {
	r.t.Helper()
	require.NoError(r.t, json.Unmarshal([]byte(r.must("ctl", node, "sockets", "--json")), &list))
	return list
}

// await repeats a check until it holds.
func (r *stateDir) await(node, what string, holds func() bool) {
	r.t.Helper()
	over := time.NewTimer(Soon)
	defer over.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-over.C:
			require.FailNow(r.t, "not soon", "%s: %s", node, what)
		}
	}
}

// TestUpAfterCrash: files left by a crash disturb neither status nor the next up.
func TestUpAfterCrash(t *testing.T) {
	t.Parallel()
	r := newStateDir(t)
	net := CopyNetwork(t, "nets", "a-b-c")
	r.must("net", "up", net.Dir, "--name", "line")
	before := r.pid("A")
	require.NoError(t, syscall.Kill(r.pid("B"), syscall.SIGKILL))
	r.await("B", "dead", func() bool { return r.nodeStates()["B"] == netctl.Dead })

	got := r.node("net", "status")
	assert.Equal(t, 1, got.code)
	assert.Regexp(t, `(?m)^B +dead +-`, got.out)
	assert.Regexp(t, `(?m)^A +up +\d+`, got.out)
	assert.Contains(t, got.out, "B is dead; the end of ")
	assert.Contains(t, got.out, "  time=", "the end of its log")
	got = r.node("ctl", "B", "routes")
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.err, "B: the node does not answer")
	assert.Contains(t, got.err, "`node net status` shows its state")

	got = r.node("net", "up", net.Dir, "--name", "line")
	require.Zero(t, got.code, got.err)
	assert.Contains(t, got.err, "started: B\nalready running: A C\n")
	assert.Equal(t, before, r.pid("A"))

	// Kill all nodes at once, as a power failure does.
	for _, n := range r.status().Nodes {
		require.NoError(t, syscall.Kill(n.PID, syscall.SIGKILL))
	}
	r.await("all", "dead", func() bool {
		for _, life := range r.nodeStates() {
			if life != netctl.Dead {
				return false
			}
		}
		return true
	})
	assert.Contains(t, r.node("net", "up", net.Dir, "--name", "line").err, "started: A B C\n")
	require.NoError(t, syscall.Kill(r.pid("C"), syscall.SIGKILL))
	r.await("C", "dead", func() bool { return r.nodeStates()["C"] == netctl.Dead })
	folder := filepath.Join(r.state, "tidepool", "line")
	assert.Equal(t, "line is down: 2 nodes stopped; crashed before: C "+
		"(their logs stay until the next up: "+folder+")\n", r.node("net", "down").err)
	assert.FileExists(t, filepath.Join(folder, "C.log"))
	assert.NoFileExists(t, filepath.Join(folder, "A.log"))
}

// TestHungNode: status tells a hung node from a dead one, and down stops it too.
func TestHungNode(t *testing.T) {
	t.Parallel()
	r := newStateDir(t)
	net := CopyNetwork(t, "nets", "a-b")
	r.must("net", "up", net.Dir, "--name", "pair")
	pid := r.pid("A")
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	// The signal takes effect after a moment.
	r.await("A", "hung", func() bool { return r.nodeStates()["A"] == netctl.Hung })
	status := r.status()
	assert.Equal(t, netctl.Hung, status.Nodes[0].Life)
	assert.Equal(t, pid, status.Nodes[0].PID)
	assert.Equal(t, netctl.Up, status.Nodes[1].Life)
	got := r.node("net", "up", net.Dir, "--name", "pair")
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.err, "node A runs but does not answer: `node net down pair` stops it")
	assert.Equal(t, "pair is down: 2 nodes stopped\n", r.node("net", "down").err)
	assert.NoFileExists(t, status.Nodes[0].Socket)
}

// TestUpFails: up starts nothing if a file is wrong or a node cannot start.
func TestUpFails(t *testing.T) {
	t.Parallel()
	r := newStateDir(t)
	net := CopyNetwork(t, "nets", "a-b-c")
	taken := testenv.FreePort(t)
	held, err := netListenUDP(taken)
	require.NoError(t, err)
	defer held.Close()
	net.Append("A", "neighbur 10.0.0.9 at 127.0.0.1:1 via if0", "interface if7 10.0.0.1/33 x:y")
	net.Append("C", "route 0.0.0.0/0 by 10.1.0.1")
	got := r.node("net", "up", net.Dir)
	assert.Equal(t, 2, got.code)
	assert.Regexp(t, `A\.lnx:\d+:1: "neighbur" is not a directive \(did you mean neighbor\?\)`, got.err)
	assert.Regexp(t, `A\.lnx:\d+:24: "33" is not a prefix length`, got.err)
	assert.Regexp(t, `C\.lnx:\d+:\d+: `, got.err)
	assert.Contains(t, r.node("net", "status").err, "no network is up in ")

	// A port that another process holds.
	other := NewNetwork(t, map[string]string{"A": "interface if0 10.0.0.1/24 127.0.0.1:5000\n"})
	text := "interface if0 10.0.0.2/24 127.0.0.1:" + portText(taken) + "\n"
	require.NoError(t, os.WriteFile(other.File("B"), []byte(text), 0o600))
	got = r.node("net", "up", other.Dir, "--name", "other")
	assert.Equal(t, 1, got.code)
	assert.Regexp(t, `B\.lnx:1:27: interface if0 cannot have 127\.0\.0\.1:\d+: `, got.err)
	assert.Contains(t, r.node("net", "status").err, "no network is up in ")

	for _, tt := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"net", "up", filepath.Join(net.Dir, "none")}, 2, "no such file; give a folder of .lnx files"},
		{[]string{"net", "up", t.TempDir()}, 2, "no .lnx file in this folder"},
		{[]string{"net", "up", other.Dir, "--name", "../x"}, 2, "must be letters, digits"},
		{
			[]string{
				"net", "up", other.Dir, "--state", filepath.Join(r.state, strings.Repeat("x", 80)),
			}, 2, "choose a shorter --state",
		},
		{[]string{"net", "down"}, 1, "; start one with `node net up FOLDER`"},
		{[]string{"net", "status", "ring"}, 1, "ring: no such network: none is up"},
		{[]string{"attach", "A"}, 1, "A: no such node: no network is up"},
		{[]string{"ctl", "A", "routes"}, 1, "A: no such node: no network is up"},
		{[]string{"ctl", "A"}, 2, "COMMAND is missing"},
		{[]string{"ctl", "http://127.0.0.1:1", "routes"}, 1, "connection refused"},
		{[]string{"net", "--state", other.File("B"), "status"}, 2, "choose another with --state"},
	} {
		got := r.node(tt.args...)
		assert.Equal(t, tt.code, got.code, "%q: %s", tt.args, got.err)
		assert.Contains(t, got.err, tt.says, "%q", tt.args)
		assert.Empty(t, got.out, "%q", tt.args)
	}
}

// TestTwoNetworks: networks cannot have the same name, but nodes of different networks can.
func TestTwoNetworks(t *testing.T) {
	t.Parallel()
	r := newStateDir(t)
	one, two := CopyNetwork(t, "nets", "a-b"), CopyNetwork(t, "nets", "a-b")
	r.must("net", "up", one.Dir, "--name", "one")
	got := r.node("net", "up", two.Dir, "--name", "one")
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.err, "network one: a network with that name already exists, from "+one.Dir)
	r.must("net", "up", two.Dir, "--name", "two")
	got = r.node("ctl", "A", "routes")
	assert.Equal(t, 2, got.code)
	assert.Contains(t, got.err, "A: ambiguous name: use one of one/A, two/A")
	assert.Contains(t, r.must("ctl", "two/A", "lr"), "LOCAL:if0")
	got = r.node("net", "down")
	assert.Equal(t, 2, got.code)
	assert.Contains(t, got.err, "several networks are up: choose one of one, two")
	got = r.node("net", "exec", "two", "lr")
	assert.Zero(t, got.code)
	assert.Empty(t, got.err)
	assert.Regexp(t, `(?s)^A:\nT .*LOCAL:if0.*\n\nB:\nT .*LOCAL:if0`, got.out)
	got = r.node("net", "exec", "two", "close", "9")
	assert.Equal(t, 1, got.code)
	assert.Equal(t, "A:\n\nB:\n", got.out)
	assert.Regexp(t, `^A: close: 9: no such socket.*\nB: close: 9: no such socket`, got.err)
	r.must("net", "down", "two")
	assert.Equal(t, "one", r.status().Name)
}

// TestPlan starts a network from a plan without .lnx files, and changes it while it runs.
func TestPlan(t *testing.T) {
	t.Parallel()
	r := newStateDir(t)
	folder := t.TempDir()
	plan := filepath.Join(folder, "mine.net")
	port := portText(firstOf(t, 4))
	write := func(delay string) {
		text := "port " + port + "\nlink A R delay " + delay + "\nlink R B\n"
		require.NoError(t, os.WriteFile(plan, []byte(text), 0o600))
	}
	write("30ms")
	got := r.node("net", "up", plan)
	require.Zero(t, got.code, got.err)
	assert.Contains(t, got.err, "started: A B R\nmine is up; ")
	assert.Contains(t, r.must("ctl", "A", "impair"), "if0 out: delay 30ms")
	assert.Contains(t, r.must("net", "graph"), ">10.1.0.0/24</text>")
	write("1ms")
	got = r.node("net", "apply", plan)
	require.Zero(t, got.code, got.err)
	assert.Contains(t, got.err, "reloaded: A R\n")
	assert.Contains(t, r.must("ctl", "A", "impair"), "if0 out: delay 1ms")
	r.must("net", "down")
	left, err := os.ReadDir(folder)
	require.NoError(t, err)
	assert.Len(t, left, 1, "nothing is written to the plan's folder")
}

// firstOf returns the first of n consecutive free UDP ports.
func firstOf(t *testing.T, n int) uint16 {
	t.Helper()
	for {
		first := testenv.FreePort(t)
		held := 1
		for held < n && testenv.HoldPort(int(first)+held) {
			held++
		}
		if held == n {
			return first
		}
	}
}

// TestApply changes the nodes whose files changed, and no others.
func TestApply(t *testing.T) {
	t.Parallel()
	r := newStateDir(t)
	net := CopyNetwork(t, "nets", "a-b-c")
	r.must("net", "up", net.Dir, "--name", "line")
	a, b := r.pid("A"), r.pid("B")
	net.Append("B", "link if0 mtu 1300")
	require.NoError(t, os.Remove(net.File("C")))
	got := r.node("net", "up", net.Dir, "--name", "line")
	assert.Contains(t, got.err, "changed since they were started: B; `node net apply ")
	got = r.node("net", "apply", net.Dir, "--name", "line")
	require.Zero(t, got.code, got.err)
	assert.Contains(t, got.err, "reloaded: B\nstopped: C\nalready running: A\n")
	assert.Equal(t, a, r.pid("A"))
	assert.Equal(t, b, r.pid("B"), "a new MTU needs no new process")
	net.Append("B", "tcp profile 004")
	got = r.node("net", "apply", net.Dir, "--name", "line")
	assert.Contains(t, got.err, "restarted: B\n  B, because of tcp profile: was none, is 004\n"+
		"already running: A\n")
	assert.NotEqual(t, b, r.pid("B"))
	assert.Equal(t, map[string]netctl.Life{"A": netctl.Up, "B": netctl.Up}, r.nodeStates())
	net.Append("A", "bogus")
	got = r.node("net", "apply", net.Dir, "--name", "line")
	assert.Equal(t, 2, got.code)
	assert.Equal(t, a, r.pid("A"), "the same process")
}

// TestNetworksInJSON: each command prints one JSON document, or a line for each answer if there are
// several answers.
func TestNetworksInJSON(t *testing.T) {
	r := newStateDir(t)
	net := CopyNetwork(t, "nets", "a-b")
	document := func(args ...string) (m map[string]any) {
		t.Helper()
		got := r.node(args...)
		assert.Zero(t, got.code, got.err)
		assert.Empty(t, got.err)
		require.NoError(t, json.Unmarshal([]byte(got.out), &m), got.out)
		return m
	}
	none := []any{}
	up := document("net", "up", "--json", net.Dir, "--name", "pair")
	assert.Equal(t, map[string]any{
		"network": "pair", "source": net.Dir, "folder": filepath.Join(r.state, "tidepool", "pair"),
		"started": []any{"A", "B"}, "reloaded": none, "restarted": none, "ended": none,
		"left": none, "stale": none,
	}, up)
	net.Append("A", "link if0 delay 1ms")
	assert.Equal(t, []any{"A"}, document("net", "up", "--json", net.Dir, "--name", "pair")["stale"])
	assert.Equal(t, []any{"A"}, document("net", "apply", "--json")["reloaded"])
	shape := document("net", "graph", "--json")
	assert.Equal(t, "pair", shape["name"])
	assert.Len(t, shape["nodes"], 2)

	lines := func(want int, args ...string) (all []map[string]any) {
		t.Helper()
		for line := range strings.Lines(r.must(args...)) {
			var m map[string]any
			require.NoError(t, json.Unmarshal([]byte(line), &m), line)
			all = append(all, m)
		}
		require.Len(t, all, want)
		return all
	}
	for i, l := range lines(2, "net", "exec", "--json", "pair", "routes") {
		assert.Equal(t, []string{"A", "B"}[i], l["node"])
		assert.NotEmpty(t, l["answer"])
	}
	assert.Equal(t, "B", lines(1, "net", "exec", "--json", "B", "interfaces", "-s")[0]["node"])
	assert.Equal(t, "B", lines(1, "net", "exec", "B", "interfaces", "--json")[0]["node"])
	assert.Equal(t, "A", lines(2, "net", "exec", "pair", "interfaces", "--json")[0]["node"])
	missing := r.node("net", "exec", "pair", "close", "9", "--json")
	assert.Equal(t, 1, missing.code)
	assert.Regexp(t, `^\{"node":"A","answer":\{"error":"close: 9: no such socket[^"]*","status":1\}\}\n`+
		`\{"node":"B",.*\}\n$`, missing.out)
	assert.Regexp(t, `^A: close: 9: .*\nB: close: 9: .*\n$`, missing.err)
	status := r.command("net", "status", ".")
	status.Dir = filepath.Join(t.TempDir(), "pair.net")
	require.NoError(t, os.Mkdir(status.Dir, 0o700))
	require.NoError(t, status.Run(), "a folder selects the network of that name")
	got := r.node("net", "exec", "Z", "ping")
	assert.Equal(t, 1, got.code)
	assert.Equal(t, "node net exec: Z: no such network; "+
		"Z: no such node: the nodes are pair/A, pair/B\n", got.err)
	got = r.node("net", "down", "--json")
	assert.JSONEq(t, `[{"network":"pair","ended":["A","B"],"dead":[],"logs":[]}]`, got.out)
	assert.Empty(t, got.err)
}

// TestForeignStateFolderIsRefused: up refuses a state folder that contains the network's own files,
// because down would delete them.
func TestForeignStateFolderIsRefused(t *testing.T) {
	r := newStateDir(t)
	net := CopyNetwork(t, "nets", "a-b")
	beside := filepath.Dir(net.Dir)
	require.NoError(t, os.Chmod(beside, 0o700)) //nolint:gosec // other users may not write there
	for range 2 {
		got := r.node("net", "--state", beside, "up", net.Dir)
		assert.Equal(t, 2, got.code)
		assert.Regexp(t, `A\.lnx is there but is not a network; choose another --state, or --name\n$`,
			got.err)
	}
	assert.Equal(t, 2, r.node("net", "--state", beside, "apply", net.Dir).code)
	for _, name := range net.Names() {
		assert.FileExists(t, net.File(name))
	}
	got := r.node("net", "--state", "", "status")
	assert.Equal(t, 2, got.code)
	assert.Contains(t, got.err, "choose one with --state")
}

// TestNetServeEnds: at its end, net serve reports what it did and what keeps running.
func TestNetServeEnds(t *testing.T) {
	r := newStateDir(t)
	net := CopyNetwork(t, "nets", "a-b")
	r.must("net", "up", net.Dir, "--name", "pair")
	for _, down := range []bool{false, true} {
		args := []string{"net", "serve", "pair"}
		if down {
			args = append(args, "--json")
		}
		serve := r.command(args...)
		talk, err := serve.StderrPipe()
		require.NoError(t, err)
		var answer bytes.Buffer
		serve.Stdout = &answer
		require.NoError(t, serve.Start())
		t.Cleanup(func() {
			_ = serve.Process.Kill() // the process may have exited
			_ = serve.Wait()
		})
		lines := bufio.NewScanner(talk)
		for lines.Scan() && !strings.HasPrefix(lines.Text(), "serving 2 nodes of pair") {
			continue
		}
		want := "; its nodes keep running: `node net down pair` stops them"
		if down {
			r.must("net", "down", "pair")
			want = "; it is down"
		}
		require.NoError(t, serve.Process.Signal(os.Interrupt))
		require.True(t, lines.Scan())
		assert.Regexp(t, "^served pair for [0-9ms]+"+want+"$", lines.Text())
		assert.False(t, lines.Scan(), lines.Text())
		require.Error(t, serve.Wait())
		assert.Equal(t, 130, serve.ProcessState.ExitCode())
		if !down {
			assert.Regexp(t, `^page: http://127\.0\.0\.1:\d+/#token=\S+\n`+
				`API: http://127\.0\.0\.1:\d+/v1, with the same token\n$`, answer.String())
			continue
		}
		var place struct{ Page, API, Token string }
		require.NoError(t, json.Unmarshal(answer.Bytes(), &place), answer.String())
		assert.NotEmpty(t, place.Token)
		assert.Regexp(t, `^http://127\.0\.0\.1:\d+/v1$`, place.API)
		assert.Equal(t, strings.TrimSuffix(place.API, "v1")+"#token="+place.Token, place.Page)
	}
}
