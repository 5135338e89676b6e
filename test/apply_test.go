//go:build unix

package e2e_test

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/netctl"
)

// TestApplyKeepsConnections changes a link's delay, and gives a host another route and a port
// forward. No process restarts, and a connection stays open.
func TestApplyKeepsConnections(t *testing.T) {
	t.Parallel()
	r := newStateDir(t)
	dir := CopyNetwork(t, "nets", "a-b-c")
	r.must("net", "up", dir.Dir, "--name", "line")
	before := map[string]int{"A": r.pid("A"), "B": r.pid("B"), "C": r.pid("C")}
	r.must("ctl", "C", "accept", "6000")
	r.await("A", "a route to C", func() bool {
		return r.node("ctl", "A", "ping", "-c", "1", "-W", "0.5", "10.1.0.2").code == 0
	})
	r.must("ctl", "A", "connect", "10.1.0.2", "6000")

	dir.Append("B", "link if1 delay 30ms")
	dir.Append("A", "route 10.99.0.0/16 via 10.0.0.2", "expose 80 3000")
	got := r.node("net", "apply", dir.Dir, "--name", "line")
	require.Zero(t, got.code, got.err)
	assert.Contains(t, got.err, "reloaded: A B\nalready running: C\n")
	for name, pid := range before {
		assert.Equal(t, pid, r.pid(name), name)
	}
	assert.Contains(t, r.must("ctl", "B", "impair"), "if1 out: delay 30ms")
	assert.Contains(t, r.must("ctl", "A", "routes"), "10.99.0.0/16")
	assert.Contains(t, r.must("ctl", "A", "doors"), "127.0.0.1:3000")
	r.must("ctl", "A", "s", "0", "still here")
	assert.Contains(t, r.must("ctl", "C", "recv", "1", "10", "y"), "still here")
	assert.Contains(t, r.node("net", "apply", dir.Dir, "--name", "line").err,
		"already running: A B C", "the network remembers the applied files")
	dir.Append("C", "route 10.98.0.0/16 via 10.1.0.1")
	assert.Contains(t, r.node("net", "apply").err,
		"reloaded: C\nalready running: A B\nline is up", "the only network needs no --name")

	// The port of a port forward is taken: apply changes nothing and reports where the port was
	// configured.
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	dir.Append("A", "publish "+taken.Addr().String()+" 10.1.0.2:80")
	got = r.node("net", "apply", dir.Dir, "--name", "line")
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.err, "A.lnx:")
	assert.Contains(t, got.err, "address already in use")
	assert.Equal(t, before["A"], r.pid("A"))
	assert.NotContains(t, r.must("ctl", "A", "doors"), taken.Addr().String())
}

// TestApplyWrongFile: one wrong file prevents all changes, also on nodes with correct files.
func TestApplyWrongFile(t *testing.T) {
	t.Parallel()
	r := newStateDir(t)
	dir := CopyNetwork(t, "nets", "a-b-c")
	r.must("net", "up", dir.Dir, "--name", "line")
	pid := r.pid("B")
	dir.Append("B", "link if0 loss 5%")
	dir.Append("C", "link if0 los 5%", "rout")
	got := r.node("net", "apply", dir.Dir, "--name", "line")
	assert.Equal(t, 2, got.code)
	assert.Equal(t, 2, strings.Count(got.err, filepath.Base(dir.File("C"))+":"), got.err)
	assert.Equal(t, pid, r.pid("B"))
	assert.NotContains(t, r.must("ctl", "B", "impair"), "loss 5%")

	text, err := os.ReadFile(dir.File("C"))
	require.NoError(t, err)
	text = []byte(strings.Replace(string(text), "link if0 los 5%\nrout\n", "", 1))
	require.NoError(t, os.WriteFile(dir.File("C"), text, 0o600))
	got = r.node("net", "apply", dir.Dir, "--name", "line")
	require.Zero(t, got.code, got.err)
	assert.Contains(t, got.err, "reloaded: B")
	assert.Contains(t, r.must("ctl", "B", "impair"), "if0 out: loss 5%")
}

// TestApplyRollsBack: an apply that fails restores everything, and succeeds after the reported
// error is fixed.
func TestApplyRollsBack(t *testing.T) {
	t.Parallel()
	r := newStateDir(t)
	dir := CopyNetwork(t, "nets", "a-b-c")
	port := strings.TrimPrefix(freeTCPAddr(t), "127.0.0.1:")
	dir.Append("A", "publish "+port+" 10.1.0.2:80")
	before := map[string]string{}
	for _, name := range dir.Names() {
		text, err := os.ReadFile(dir.File(name))
		require.NoError(t, err)
		before[name] = string(text)
	}
	r.must("net", "up", dir.Dir, "--name", "line")
	reach := func() {
		t.Helper()
		r.await("A", "a route to C", func() bool {
			return r.node("ctl", "A", "ping", "-c", "1", "-W", "0.5", "10.1.0.2").code == 0
		})
	}
	reach()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	t.Log("# A and C take each other's UDP port, and B fails")
	udp := regexp.MustCompile(`127\.0\.0\.1:\d+`)
	a, c := udp.FindString(before["A"]), udp.FindString(before["C"])
	swap := strings.NewReplacer(a, c, c, a)
	for _, name := range dir.Names() {
		text := swap.Replace(before[name])
		require.NoError(t, os.WriteFile(dir.File(name), []byte(text), 0o600))
	}
	text, err := os.ReadFile(dir.File("A"))
	require.NoError(t, err)
	text = []byte(strings.Replace(string(text), "publish "+port, "link if0 delay 1ms\n#", 1))
	require.NoError(t, os.WriteFile(dir.File("A"), text, 0o600))
	dir.Append("C", "tcp profile 004", "link if0 delay 1ms") // this change needs a new process
	dir.Append("B", "publish "+port+" 10.1.0.2:80", "publish "+taken.Addr().String()+" 10.1.0.2:80")
	pids := map[string]int{"A": r.pid("A"), "B": r.pid("B"), "C": r.pid("C")}
	ports := func() (all []string) {
		for _, name := range []string{"A", "B", "C"} {
			all = append(all, regexp.MustCompile(`"udp":"[^"]+"`).FindAllString(
				r.must("ctl", name, "interfaces", "--json"), -1)...)
		}
		return all
	}
	faces := ports()
	require.NotEmpty(t, faces)
	for range 2 {
		got := r.node("net", "apply", dir.Dir, "--name", "line")
		assert.Equal(t, 1, got.code)
		assert.Contains(t, got.err, "address already in use")
		assert.Contains(t, got.err, "no node was changed\n")
		assert.NotContains(t, got.err, "but this one")
		for name, pid := range pids {
			assert.Equal(t, pid, r.pid(name), name)
		}
		assert.Equal(t, faces, ports())
		assert.NotContains(t, r.must("ctl", "A", "impair"), "delay")
		assert.Contains(t, r.must("ctl", "A", "doors"), port, "A has its port forward again")
		assert.NotContains(t, r.must("ctl", "B", "doors"), port)
		reach()
	}
	require.NoError(t, taken.Close())
	got := r.node("net", "apply", dir.Dir, "--name", "line")
	require.Zero(t, got.code, got.err)
	assert.Contains(t, got.err, "reloaded: A B\nrestarted: C\n")
	assert.Contains(t, r.must("ctl", "B", "doors"), port, "A has released the port")
	assert.Equal(t, pids["A"], r.pid("A"))
	reach()
}

// freeTCPAddr returns an address with a free TCP port.
func freeTCPAddr(t *testing.T) string {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer free.Close()
	return free.Addr().String()
}

// TestApplyRotatesPorts: every node takes a UDP port that another one releases, and a new node also
// takes a TCP port of the removed node.
func TestApplyRotatesPorts(t *testing.T) {
	r := newStateDir(t)
	dir := CopyNetwork(t, "nets", "a-b-c")
	port := strings.TrimPrefix(freeTCPAddr(t), "127.0.0.1:")
	dir.Append("C", "publish "+port+" 10.0.0.1:80")
	r.must("net", "up", dir.Dir, "--name", "line")
	a, b := r.pid("A"), r.pid("B")
	var all []string
	texts := map[string]string{}
	udp := regexp.MustCompile(`interface \S+ \S+ (\S+)`)
	for _, name := range dir.Names() {
		text, err := os.ReadFile(dir.File(name))
		require.NoError(t, err)
		texts[name] = string(text)
		for _, m := range udp.FindAllStringSubmatch(texts[name], -1) {
			all = append(all, m[1])
		}
	}
	require.Len(t, all, 4)
	var turn []string
	for i := range all {
		turn = append(turn, all[i], all[(i+1)%len(all)])
	}
	for _, name := range []string{"A", "B"} {
		text := strings.NewReplacer(turn...).Replace(texts[name])
		require.NoError(t, os.WriteFile(dir.File(name), []byte(text), 0o600))
	}
	require.NoError(t, os.Remove(dir.File("C")))
	d := strings.NewReplacer(turn...).Replace(texts["C"])
	require.NoError(t, os.WriteFile(dir.File("D"), []byte(d), 0o600))
	got := r.node("net", "apply", dir.Dir, "--name", "line")
	require.Zero(t, got.code, got.err)
	assert.Contains(t, got.err, "started: D\nreloaded: A B\nstopped: C\n")
	assert.Equal(t, a, r.pid("A"))
	assert.Equal(t, b, r.pid("B"))
	r.await("A", "a route to D", func() bool {
		return r.node("ctl", "A", "ping", "-c", "1", "-W", "0.5", "10.1.0.2").code == 0
	})
	assert.Contains(t, r.must("ctl", "D", "doors"), port)
}

// TestApplyMovesAPortBetweenNodes: a node takes the UDP port of another node that is reloaded after
// it.
func TestApplyMovesAPortBetweenNodes(t *testing.T) {
	t.Parallel()
	r := newStateDir(t)
	dir := CopyNetwork(t, "nets", "a-b-c")
	r.must("net", "up", dir.Dir, "--name", "line")
	before := r.pid("A")
	text, err := os.ReadFile(dir.File("A"))
	require.NoError(t, err)
	udp := regexp.MustCompile(`127\.0\.0\.1:\d+`).FindAllString(string(text), 2)
	require.Len(t, udp, 2)
	free := "127.0.0.1:" + strconv.Itoa(int(testenv.FreePort(t)))
	// B moves to another port, and A to B's old one.
	move := strings.NewReplacer(udp[0], udp[1], udp[1], free)
	for _, name := range []string{"A", "B"} {
		text, err := os.ReadFile(dir.File(name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(dir.File(name), []byte(move.Replace(string(text))), 0o600))
	}
	got := r.node("net", "apply", dir.Dir, "--name", "line")
	require.Zero(t, got.code, got.err)
	assert.Contains(t, got.err, "reloaded: A B\nalready running: C\n")
	assert.Equal(t, before, r.pid("A"))
	r.await("A", "its neighbor", func() bool {
		return r.node("ctl", "A", "ping", "-c", "1", "-W", "0.5", "10.0.0.2").code == 0
	})
}

// TestApplyFailsHalfway: a node that apply restarts does not start. The error says what state the
// network is in and how to continue.
func TestApplyFailsHalfway(t *testing.T) {
	t.Parallel()
	r := newStateDir(t)
	dir := CopyNetwork(t, "nets", "a-b-c")
	r.must("net", "up", dir.Dir, "--name", "line")
	source := r.status().Source
	dir.Append("B", "link if0 delay 1ms")
	dir.Append("C", "tcp profile 004") // this change needs a new process
	state, err := netctl.OpenState(filepath.Join(r.state, "tidepool"))
	require.NoError(t, err)
	plan := netctl.Plan{Name: "line", Source: source, Program: "false"} // a program that starts no node
	for _, name := range dir.Names() {
		plan.Nodes = append(plan.Nodes, netctl.Member{Name: name, File: dir.File(name)})
	}
	_, err = state.Apply(t.Context(), plan)
	var half *netctl.HalfwayError
	require.ErrorAs(t, err, &half)
	require.ErrorContains(t, err, "node C stopped before it answered")
	require.ErrorContains(t, err, "network line is only partly changed: running the new files: A B; "+
		"not running: C\nfix the error above; `node net apply "+source+" --name line` then continues")
	assert.Equal(t, netctl.Dead, r.nodeStates()["C"])
	assert.Contains(t, r.must("ctl", "B", "impair"), "delay 1ms")
	r.must("net", "apply", source, "--name", "line")
	assert.Equal(t, netctl.Up, r.nodeStates()["C"])
}
