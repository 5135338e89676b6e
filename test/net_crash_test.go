//go:build unix

package e2e_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/netctl"
)

// interruptedUp is a `net up` that hangs while it opens a node's log. It has already started the
// nodes before that one.
type interruptedUp struct {
	r    *stateDir
	cmd  *exec.Cmd
	talk bytes.Buffer
	pipe string
}

// interruptUp starts a `net up` that hangs at a node: the node's log is a pipe without a reader.
func (r *stateDir) interruptUp(dir, name, node string) *interruptedUp {
	r.t.Helper()
	folder := filepath.Join(r.state, "tidepool", name)
	require.NoError(r.t, os.MkdirAll(folder, 0o700))
	h := &interruptedUp{r: r, pipe: filepath.Join(folder, node+".log")}
	require.NoError(r.t, syscall.Mkfifo(h.pipe, 0o600))
	h.cmd = r.command("net", "up", dir, "--name", name)
	h.cmd.Stderr = &h.talk
	require.NoError(r.t, h.cmd.Start())
	return h
}

// notedPID returns the process id in a node's pid file. The process may have exited.
func (r *stateDir) notedPID(network, node string) int {
	text, _ := os.ReadFile(filepath.Join(r.state, "tidepool", network, node+".pid"))
	pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return pid
}

// TestUpIsKilled: status lists the nodes that a killed up has started, the next up reuses them, and
// down stops them.
func TestUpIsKilled(t *testing.T) {
	r := newStateDir(t)
	net := CopyNetwork(t, "nets", "ring")
	kill := func() {
		t.Helper()
		up := r.interruptUp(net.Dir, "ring", "R2")
		for _, name := range []string{"A", "B", "R1"} {
			r.await(name, "up", func() bool { return r.node("ctl", name, "routes").code == 0 })
		}
		require.NoError(t, up.cmd.Process.Kill())
		require.Error(t, up.cmd.Wait())
		require.NoError(t, os.Remove(up.pipe))
	}
	kill()
	got := r.node("net", "status")
	assert.Equal(t, 1, got.code)
	assert.Regexp(t, `(?m)^R1 +up `, got.out)
	assert.Regexp(t, `(?m)^R2 +dead `, got.out)
	before := r.pid("R1")
	got = r.node("net", "up", net.Dir, "--name", "ring")
	require.Zero(t, got.code, got.err)
	assert.Contains(t, got.err, "started: R2 R3 R4\nalready running: A B R1\n")
	assert.Equal(t, before, r.pid("R1"))
	require.Zero(t, r.node("net", "down").code)

	t.Log("# the same with down instead")
	kill()
	assert.Equal(t, "ring is down: 3 nodes stopped; crashed before: R2, R3, R4\n",
		r.node("net", "down").err)
	r.must("net", "up", net.Dir, "--name", "ring")

	t.Log("# up waits for a node that does not answer yet")
	a := r.pid("A")
	require.NoError(t, syscall.Kill(a, syscall.SIGKILL))
	r.await("A", "dead", func() bool { return r.nodeStates()["A"] == netctl.Dead })
	pipe := filepath.Join(r.state, "tidepool", "ring", "A.log")
	require.NoError(t, os.Remove(pipe))
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	up := r.command("net", "up", net.Dir, "--name", "ring")
	require.NoError(t, up.Start())
	log, err := os.Open(pipe) // unblocks both processes
	require.NoError(t, err)
	defer log.Close()
	r.await("A", "its process", func() bool {
		pid := r.notedPID("ring", "A")
		return pid > 0 && pid != a && syscall.Kill(pid, syscall.SIGSTOP) == nil
	})
	require.NoError(t, up.Process.Kill())
	_ = up.Wait() // it may have received an answer
	require.NoError(t, os.Remove(pipe))
	var talk bytes.Buffer
	next := r.command("net", "up", net.Dir, "--name", "ring")
	next.Stderr = &talk
	require.NoError(t, next.Start())
	require.NoError(t, syscall.Kill(r.notedPID("ring", "A"), syscall.SIGCONT))
	require.NoError(t, next.Wait(), talk.String())
	assert.Contains(t, talk.String(), "already running: A B R1 R2 R3 R4\n")
}

// TestNodeIsKilledDuringUp: up reports how the node died, and stops the others.
func TestNodeIsKilledDuringUp(t *testing.T) {
	r := newStateDir(t)
	net := CopyNetwork(t, "nets", "a-b-c")
	up := r.interruptUp(net.Dir, "line", "C")
	r.await("A", "up", func() bool { return r.node("ctl", "A", "routes").code == 0 })
	require.NoError(t, syscall.Kill(r.notedPID("line", "A"), syscall.SIGKILL))
	r.await("A", "dead", func() bool { return r.node("ctl", "A", "routes").code != 0 })
	log, err := os.Open(up.pipe)
	require.NoError(t, err)
	defer log.Close()
	require.Error(t, up.cmd.Wait())
	assert.Equal(t, 1, up.cmd.ProcessState.ExitCode())
	assert.Contains(t, up.talk.String(), "node A stopped before it answered: signal: killed")
	assert.Contains(t, r.node("net", "status").err, "no network is up in ")
	r.must("net", "up", net.Dir, "--name", "line")
}

// TestPortsOfAnotherNetwork: up names the network that holds a port, and starts nothing.
func TestPortsOfAnotherNetwork(t *testing.T) {
	r := newStateDir(t)
	net := CopyNetwork(t, "nets", "a-b")
	port := strings.TrimPrefix(freeTCPAddr(t), "127.0.0.1:")
	net.Append("A", "publish "+port+" 10.0.0.2:80")
	r.must("net", "up", net.Dir, "--name", "one")
	got := r.node("net", "up", net.Dir, "--name", "two")
	assert.Equal(t, 1, got.code)
	text, err := os.ReadFile(net.File("B"))
	require.NoError(t, err)
	at := regexp.MustCompile(`interface if0 \S+ (\S+)`).FindStringSubmatch(string(text))[1]
	assert.Contains(t, got.err, "interface if0 cannot use "+at+": node B of network one uses it; "+
		"expected a free port, or `node net down one` first\n")
	assert.Contains(t, got.err, "publish cannot use 127.0.0.1:"+port+": node A of network one uses it")
	assert.Equal(t, "one", r.status().Name, "no other network is up")

	t.Log("# also for a running node that wants the port")
	third := CopyNetwork(t, "nets", "a-b")
	got = r.node("net", "up", third.Dir, "--name", "three")
	require.Zero(t, got.code, got.err)
	assert.Contains(t, got.err,
		"three is up; `node attach three/A`, `node net status`, `node net down three`\n", "two networks have a node A")
	text, err = os.ReadFile(third.File("B"))
	require.NoError(t, err)
	own := regexp.MustCompile(`interface if0 \S+ (\S+)`).FindStringSubmatch(string(text))[1]
	require.NoError(t, os.WriteFile(third.File("B"),
		[]byte(strings.Replace(string(text), own, at, 1)), 0o600))
	got = r.node("net", "apply", third.Dir, "--name", "three")
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.err, "B.lnx:")
	assert.Contains(t, got.err, "cannot use "+at+": node B of network one uses it")
	assert.Contains(t, got.err, "\nno node was changed\n")
	assert.Contains(t, r.must("ctl", "three/B", "interfaces", "--json"), own)
	r.must("net", "down", "three")

	t.Log("# a port of a network in another state folder: the error names the process")
	other := filepath.Join(r.state, "other")
	got = r.node("net", "--state", other, "up", net.Dir)
	assert.Equal(t, 1, got.code)
	if runtime.GOOS == "linux" {
		assert.Regexp(t, at+`: address already in use; expected a free port; process `+
			strconv.Itoa(r.pid("B"))+` \(.* run --daemon --socket .*B\.lnx.*\) uses this one\n`, got.err)
	}
}

// TestApplyIsKilled: the next apply completes the change.
func TestApplyIsKilled(t *testing.T) {
	r := newStateDir(t)
	net := CopyNetwork(t, "nets", "a-b-c")
	r.must("net", "up", net.Dir, "--name", "line")
	a, b := r.pid("A"), r.pid("B")
	net.Append("A", "link if0 delay 1ms")
	net.Append("C", "tcp profile 004") // this change needs a new process
	log := filepath.Join(r.state, "tidepool", "line", "C.log")
	require.NoError(t, os.Remove(log))
	require.NoError(t, syscall.Mkfifo(log, 0o600))
	apply := r.command("net", "apply", net.Dir, "--name", "line")
	require.NoError(t, apply.Start())
	r.await("C", "ended", func() bool { return r.node("ctl", "C", "routes").code != 0 })
	require.NoError(t, apply.Process.Kill())
	require.Error(t, apply.Wait())
	require.NoError(t, os.Remove(log))
	assert.Contains(t, r.must("ctl", "A", "impair"), "if0 out: delay 1ms")
	got := r.node("net", "apply", net.Dir, "--name", "line")
	require.Zero(t, got.code, got.err)
	assert.Contains(t, got.err, "started: C\n")
	assert.Equal(t, a, r.pid("A"))
	assert.Equal(t, b, r.pid("B"))
	r.await("A", "a route to C", func() bool {
		return r.node("ctl", "A", "ping", "-c", "1", "-W", "0.5", "10.1.0.2").code == 0
	})
}

// TestDownIsKilled: status lists the rest of the network, and the next down stops it.
func TestDownIsKilled(t *testing.T) {
	r := newStateDir(t)
	net := CopyNetwork(t, "nets", "a-b-c")
	r.must("net", "up", net.Dir, "--name", "line")
	b := r.pid("B")
	require.NoError(t, syscall.Kill(b, syscall.SIGSTOP)) // down waits for this node, then kills it
	down := r.command("net", "down", "line")
	require.NoError(t, down.Start())
	r.await("A", "ended", func() bool { return r.node("ctl", "A", "routes").code != 0 })
	require.NoError(t, down.Process.Kill())
	_ = down.Wait() // on a slow machine, down may have finished
	require.NoError(t, syscall.Kill(b, syscall.SIGCONT))
	got := r.node("net", "down", "line")
	if got.code != 0 {
		assert.Contains(t, got.err, "none is up")
	}
	assert.Contains(t, r.node("net", "status").err, "no network is up in ")
	r.must("net", "up", net.Dir, "--name", "line")
}
