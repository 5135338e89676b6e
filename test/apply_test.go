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

	"github.com/tidepool-net/tidepool/test/internal/nodes"
)

// TestApplyLeavesConnectionsAlone: a link gets another delay, a host another route and a door, and
// all processes are the same; a connection goes on.
func TestApplyLeavesConnectionsAlone(t *testing.T) {
	r := newRealm(t)
	dir := nodes.CopyNetwork(t, "nets", "a-b-c")
	r.must("net", "up", dir.Dir, "--name", "line")
	before := map[string]int{"A": r.pid("A"), "B": r.pid("B"), "C": r.pid("C")}
	r.must("ctl", "C", "accept", "6000")
	r.await("A", "a way to C", func() bool {
		return r.node("ctl", "A", "ping", "-c", "1", "-W", "0.5", "10.1.0.2").code == 0
	})
	r.must("ctl", "A", "connect", "10.1.0.2", "6000")

	dir.Append("B", "link if1 delay 30ms")
	dir.Append("A", "route 10.99.0.0/16 via 10.0.0.2", "expose 80 3000")
	got := r.node("net", "apply", dir.Dir, "--name", "line")
	require.Zero(t, got.code, got.err)
	assert.Contains(t, got.err, "reloaded: A B\nruns already: C\n")
	for name, pid := range before {
		assert.Equal(t, pid, r.pid(name), name)
	}
	assert.Contains(t, r.must("ctl", "B", "impair"), "if1 out: delay 30ms")
	assert.Contains(t, r.must("ctl", "A", "routes"), "10.99.0.0/16")
	assert.Contains(t, r.must("ctl", "A", "doors"), "127.0.0.1:3000")
	r.must("ctl", "A", "s", "0", "still here")
	assert.Contains(t, r.must("ctl", "C", "recv", "1", "10", "y"), "still here")
	assert.Contains(t, r.node("net", "apply", dir.Dir, "--name", "line").err,
		"runs already: A B C", "what is known of the files is what they say now")
	dir.Append("C", "route 10.98.0.0/16 via 10.1.0.1")
	assert.Contains(t, r.node("net", "apply").err,
		"reloaded: C\nruns already: A B\nline is up", "alone it is about the only network")

	// A port that is taken: nothing is done, and it is told where that was asked for.
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

// TestApplyOfAWrongFile changes nothing, of the other files either.
func TestApplyOfAWrongFile(t *testing.T) {
	r := newRealm(t)
	dir := nodes.CopyNetwork(t, "nets", "a-b-c")
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

// TestApplyThatStopsOnItsWay says what was changed and what was not, and goes on from there.
func TestApplyThatStopsOnItsWay(t *testing.T) {
	r := newRealm(t)
	dir := nodes.CopyNetwork(t, "nets", "a-b-c")
	r.must("net", "up", dir.Dir, "--name", "line")
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	dir.Append("A", "link if0 delay 1ms")
	dir.Append("B", "publish "+taken.Addr().String()+" 10.1.0.2:80")
	dir.Append("C", "tcp profile 004") // only a new process is that
	pid := r.pid("C")
	got := r.node("net", "apply", dir.Dir, "--name", "line")
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.err, "address already in use")
	assert.Contains(t, got.err, "changed before that, and kept: A\nnot changed: B C; ")
	assert.Equal(t, pid, r.pid("C"))
	require.NoError(t, taken.Close())
	got = r.node("net", "apply", dir.Dir, "--name", "line")
	require.Zero(t, got.code, got.err)
	assert.Contains(t, got.err, "reloaded: B\nstarted anew: C\nruns already: A\n")
}

// TestApplyHandsAPortOn: a node takes the UDP port that another, which comes after it, gives up.
func TestApplyHandsAPortOn(t *testing.T) {
	r := newRealm(t)
	dir := nodes.CopyNetwork(t, "nets", "a-b-c")
	r.must("net", "up", dir.Dir, "--name", "line")
	before := r.pid("A")
	text, err := os.ReadFile(dir.File("A"))
	require.NoError(t, err)
	udp := regexp.MustCompile(`127\.0\.0\.1:\d+`).FindAllString(string(text), 2)
	require.Len(t, udp, 2)
	free := "127.0.0.1:" + strconv.Itoa(int(nodes.FreePort(t)))
	// B moves to another port, and A to the one that B had.
	move := strings.NewReplacer(udp[0], udp[1], udp[1], free)
	for _, name := range []string{"A", "B"} {
		text, err := os.ReadFile(dir.File(name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(dir.File(name), []byte(move.Replace(string(text))), 0o600))
	}
	got := r.node("net", "apply", dir.Dir, "--name", "line")
	require.Zero(t, got.code, got.err)
	assert.Contains(t, got.err, "reloaded: A B\nruns already: C\n")
	assert.Equal(t, before, r.pid("A"))
	r.await("A", "its neighbor", func() bool {
		return r.node("ctl", "A", "ping", "-c", "1", "-W", "0.5", "10.0.0.2").code == 0
	})
}
