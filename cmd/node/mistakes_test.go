package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
)

// ran runs the program and returns its exit status and its whole output.
func ran(t *testing.T, args ...string) (int, string) {
	t.Helper()
	var out bytes.Buffer
	status := run(args, strings.NewReader(""), &out, &out)
	return status, out.String()
}

// Every command that reads a file reports all errors of the file at once, including those in the
// arguments of impair.
func TestAllErrorsAreReportedAtOnce(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "E.lnx")
	require.NoError(t, os.WriteFile(file, []byte("interface if0 10.0.0.1/24 127.0.0.1:5000\n"+
		"impair if0 loss 200%\n"+
		"impair if0 delay zz\n"+
		"neighbor 10.0.0.9 at 127.0.0.1:5002 via if9\n"+
		"routing rop\n"), 0o600))
	want := []string{"2:17", "3:1", "3:18", "4:41", "5:9"}
	for _, command := range []string{"run", "validate"} {
		status, text := ran(t, command, file)
		assert.Equal(t, 2, status, command)
		var got []string
		for _, m := range regexp.MustCompile(`E\.lnx:(\d+:\d+): .*; expected .`).
			FindAllStringSubmatch(text, -1) {
			got = append(got, m[1])
		}
		assert.Equal(t, want, got, "%s: %s", command, text)
	}
	plan := filepath.Join(t.TempDir(), "p.net")
	require.NoError(t, os.WriteFile(plan, []byte("link A B rate foo\nlink A A\n"), 0o600))
	status, text := ran(t, "validate", plan)
	assert.Equal(t, 2, status)
	assert.Contains(t, text, "p.net:1:15: ")
	assert.Contains(t, text, "p.net:2:8: A is linked to itself")
	assert.Contains(t, text, "2 errors")
}

// A file with errors still counts as a neighbor: validation does not report that its node is
// missing.
func TestInvalidFileCountsAsNeighbor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"A.lnx": "interface if0 10.0.0.1/24 127.0.0.1:5000\nroute x\n",
		"B.lnx": "interface if0 10.0.0.2/24 127.0.0.1:5001\n" +
			"neighbor 10.0.0.1 at 127.0.0.1:5000 via if0\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	for _, args := range [][]string{
		{"validate", dir},
		{"net", "validate", dir},
		{"net", "up", "--state", filepath.Join(dir, "state"), dir},
	} {
		status, text := ran(t, args...)
		assert.Equal(t, 2, status, text)
		assert.Contains(t, text, "A.lnx:2:")
		assert.NotContains(t, text, "no node of this network", args)
	}
	require.NoError(t, os.Remove(filepath.Join(dir, "A.lnx")))
	status, text := ran(t, "validate", dir)
	assert.Zero(t, status, text)
	assert.Contains(t, text, "note: no node of this network has the UDP address 127.0.0.1:5000")
}

// If a port of a network plan is in use, the error says how to change the plan.
func TestPortsOfAPlan(t *testing.T) {
	t.Parallel()
	ports := testenv.FreePorts(t, 1)
	dir := t.TempDir()
	plan := filepath.Join(dir, "p.net")
	require.NoError(t, os.WriteFile(plan,
		fmt.Appendf(nil, "port %d\nlink A B\n", ports[0]), 0o600))
	taken, err := net.ListenPacket("udp4", fmt.Sprintf("127.0.0.1:%d", ports[0]))
	require.NoError(t, err)
	defer taken.Close()
	for _, args := range [][]string{
		{"validate", "--here", plan},
		{"net", "up", "--state", filepath.Join(dir, "state"), plan},
	} {
		status, text := ran(t, args...)
		assert.Equal(t, 1, status, text)
		assert.Contains(t, text, "p.net:1:6: its ports are ")
		assert.Contains(t, text, "; expected a line `port N` with another first port")
		assert.NotContains(t, text, "A.lnx")
	}
}

// An address in use is not a usage error, whether a file or a flag contains the address: the exit
// status is 1. If there is also a usage error, the exit status is 2.
func TestAddressesInUse(t *testing.T) {
	t.Parallel()
	udp, err := net.ListenPacket("udp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer udp.Close()
	tcp, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer tcp.Close()
	ports := testenv.FreePorts(t, 1)
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	busy := file("A.lnx", "interface if0 10.0.0.1/24 "+udp.LocalAddr().String()+"\n")
	open := file("B.lnx", fmt.Sprintf("interface if0 10.0.0.1/24 127.0.0.1:%d\n", ports[0]))
	wrong := file("C.lnx", "interface if0 10.0.0.1/24 "+udp.LocalAddr().String()+"\nroute x\n")
	const used = "address already in use"
	_, port, err := net.SplitHostPort(tcp.Addr().String())
	require.NoError(t, err)
	for _, c := range []struct {
		args   []string
		status int
		says   []string
	}{
		{[]string{"run", busy}, 1, []string{"A.lnx:1:27: ", used}},
		{[]string{"net", "up", "--state", filepath.Join(dir, "s"), busy}, 1, []string{"A.lnx:1:27: ", used}},
		{[]string{"validate", "--here", busy}, 1, []string{"A.lnx:1:27: ", used}},
		{[]string{"validate", "--here", wrong}, 2, []string{"C.lnx:2:"}},
		{[]string{"validate", "--here", busy, wrong}, 2, []string{"C.lnx:2:", used}},
		{
			[]string{"run", open, "--listen", port},
			1,
			[]string{"127.0.0.1:" + port + ": cannot listen: " + used, "use a free port"},
		},
		{[]string{"run", open, "--listen", "0.0.0.0:" + port}, 2, []string{"other machines could reach"}},
	} {
		status, text := ran(t, c.args...)
		assert.Equal(t, c.status, status, "%v: %s", c.args, text)
		for _, want := range c.says {
			assert.Contains(t, text, want, "%v", c.args)
		}
	}
}

// With --json, a failed command prints the error as JSON and also to standard error.
func TestFailuresAsJSON(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bad := filepath.Join(dir, "A.lnx")
	require.NoError(t, os.WriteFile(bad, []byte("wrong\nworse\n"), 0o600))
	state := filepath.Join(dir, "state")
	for _, c := range []struct {
		args     []string
		status   int
		problems int
		says     string
	}{
		{[]string{"net", "--state", state, "up", bad, "--json"}, 2, 2, "not a directive"},
		{[]string{"net", "--state", state, "up", bad + "x", "--json"}, 2, 0, "no such file"},
		{[]string{"net", "--state", state, "down", "--json"}, 1, 0, "no such network"},
		{[]string{"net", "--state", state, "graph", "x", "--json"}, 1, 0, "no such network"},
		{[]string{"net", "--state", state, "graph", "nets/nope", "--json"}, 2, 0, "nets/nope: no such folder or file"},
		{[]string{"net", "--state", state, "exec", "A", "routes", "--json"}, 1, 0, "no such node"},
		{[]string{"net", "exec", "A", "routes", "--json", "--state", state}, 1, 0, "no network is up in " + state},
		{[]string{"net", "--state", state, "down", "--json", "--x"}, 2, 0, "unknown flag"},
		{[]string{"ctl", "--state", state, "A", "routes", "--json"}, 1, 0, "no such node"},
		{[]string{"ctl", "--state", state, "A", "routes --json"}, 1, 0, "no such node"},
		{[]string{"ctl", "A", "routes", "--json", "--state", state}, 1, 0, "no network is up in " + state},
		{[]string{"validate", bad + "x", "--json"}, 2, 0, "no such file"},
		{[]string{"run", bad, "--json", "-c", "routes"}, 2, 2, "not a directive"},
	} {
		var out, talk bytes.Buffer
		status := run(c.args, strings.NewReader(""), &out, &talk)
		assert.Equal(t, c.status, status, c.args)
		assert.Contains(t, talk.String(), c.says, c.args)
		var got failure
		require.NoError(t, json.Unmarshal(out.Bytes(), &got), "%v: %s", c.args, out.String())
		assert.Equal(t, c.status, got.Status, c.args)
		assert.Contains(t, got.Error, c.says, c.args)
		assert.Len(t, got.Problems, c.problems, c.args)
	}
}

// If the path is not a node's file, the error names the command that accepts the path.
func TestPathsThatAreNotNodes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plan := filepath.Join(dir, "p.net")
	require.NoError(t, os.WriteFile(plan, []byte("link A B\n"), 0o600))
	for path, want := range map[string]string{
		dir:                         "a folder is a network: `node net up " + dir + "` runs it",
		plan:                        "a plan is a network: `node net up " + plan + "` runs it",
		filepath.Join(dir, "B.lnx"): "B.lnx: no such file; give an .lnx file",
	} {
		status, text := ran(t, "run", path)
		assert.Equal(t, 2, status, path)
		assert.Contains(t, text, want)
	}
	status, text := ran(t, "validate", filepath.Join(dir, "nope"))
	assert.Equal(t, 2, status)
	assert.Contains(t, text, "nope: no such file; give an .lnx file, a folder of them, or a .net file")
}

// The program rejects flags without the other flag that they need and flags with an invalid value.
func TestInvalidFlagCombinations(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "A.lnx")
	require.NoError(t, os.WriteFile(file, []byte("interface if0 10.0.0.1/24 127.0.0.1:0\n"), 0o600))
	spaces := filepath.Join(dir, "it's a network")
	require.NoError(t, os.Mkdir(spaces, 0o700))
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"run", file, "--grace", "1s"}, "--grace needs --daemon"},
		{[]string{"run", file, "--grace", "1x"}, `--grace "1x": must be a time like 10s or 1m30s`},
		{[]string{"run", file, "--pprof"}, "--files and --pprof need --socket"},
		{[]string{"run", file, "--files", "/nope"}, "--files and --pprof need --socket or --listen"},
		{[]string{"link", "--files", "/nope", "--", "true"}, "--files and --pprof need --socket"},
		{[]string{"net", "down", "X", "Y"}, `unexpected argument: "Y" (use --all to stop every network)`},
		{[]string{"net", "down", "--all", "X"}, `unexpected argument: "X"; --all stops every network`},
		{[]string{"lab", "collect", "a", "b"}, `unexpected argument: "b" (see`},
		{[]string{"link", "delay", "1ms", "downlink", "los", "2%"}, "\n    delay 1ms downlink los 2%\n                       ^^^\n"},
		{[]string{"run", spaces}, "`node net up '" + dir + `/it'\''s a network'` + "` runs it"},
		{[]string{"completion", "csh"}, `unknown command "csh"`},
		{[]string{"link", "delay", "1ms", "curl", "-s"}, "in -s; write -- before COMMAND if the flag"},
		{[]string{"link", "delay", "1ms", "curl"}, "^^^^\nwrite -- before COMMAND\nsee "},
		{[]string{"link", "delay", "1ms", "--"}, "COMMAND is missing after --"},
		{[]string{"in", "x:A", "--"}, "COMMAND is missing after --"},
		{[]string{"in", "x:A", "ls", "-l"}, "in -l; write -- before COMMAND if the flag"},
		{[]string{"in", "x:A", "ls"}, "write -- before COMMAND"},
		{[]string{"net", "generate", "random", "5", "99", "--plan"}, "the number of pairs of routers"},
	} {
		status, text := ran(t, c.args...)
		assert.Equal(t, 2, status, text)
		assert.Contains(t, text, c.want)
	}
	good := filepath.Join(dir, "B.lnx")
	require.NoError(t, os.WriteFile(good, []byte("interface if0 10.0.0.1/24 127.0.0.1:5999\n"), 0o600))
	for path, want := range map[string]string{
		dir:                        " is a folder; must be a file",
		filepath.Join(dir, "none"): ": no such file; give a script, with commands of the shell",
	} {
		status, text := ran(t, "run", good, "--script", path)
		assert.Equal(t, 2, status, text)
		assert.Contains(t, text, "--script: "+path+want)
	}
	many := strings.Repeat("neighbor x\n", 200)
	require.NoError(t, os.WriteFile(file, []byte(many), 0o600))
	status, text := ran(t, "run", file)
	assert.Equal(t, 2, status)
	lines := strings.Split(strings.TrimSpace(text), "\n")
	assert.Contains(t, lines[0], "A.lnx:1:1")
	assert.Contains(t, lines[len(lines)-1], "more errors follow; these are the first 100")
}

// If the token is missing or wrong, the error says how to pass it.
func TestTokens(t *testing.T) {
	t.Setenv("TIDEPOOL_TOKEN", "")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"type":"/v1/problems/token-needed","status":401,"detail":"no"}`)
	}))
	defer server.Close()
	const how = ": use --token TOKEN, or set TIDEPOOL_TOKEN"
	status, text := ran(t, "ctl", server.URL, "routes")
	assert.Equal(t, 1, status)
	assert.Contains(t, text, server.URL+": the server needs a token"+how)
	status, text = ran(t, "ctl", "--token", "x", server.URL, "routes")
	assert.Equal(t, 1, status)
	assert.Contains(t, text, server.URL+": the server refused this token"+how)
}

// The error for a file that is not a capture names the file and the expected format.
func TestTraceOfAFileThatIsNotACapture(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "x.pcapng")
	require.NoError(t, os.WriteFile(file, []byte("hello, this is no capture"), 0o600))
	status, text := ran(t, "trace", file)
	assert.Equal(t, 1, status)
	assert.Contains(t, text, "node trace: "+file+": not a pcapng file: use a capture")
}

// The program prints its version in all the usual forms.
func TestVersion(t *testing.T) {
	t.Parallel()
	status, text := ran(t, "--version")
	assert.Zero(t, status, text)
	_, want := ran(t, "version")
	assert.Equal(t, want, text)
}

// After an unknown flag, Tab completes nothing and prints nothing.
func TestTabAfterAnUnknownFlag(t *testing.T) {
	t.Parallel()
	for _, request := range []string{"__complete", "__completeNoDesc"} {
		_, text := ran(t, request, "run", "-zz", "")
		assert.Equal(t, ":4\n", text)
		_, text = ran(t, request, "run", "--log-format", "json", "--log-l")
		assert.Contains(t, text, "--log-level")
	}
}
