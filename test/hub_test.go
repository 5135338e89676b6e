package e2e_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	ci "github.com/tidepool-net/tidepool/internal/ci/testenv"
)

// startHub starts a hub and returns the address of its page.
func startHub(t *testing.T, args ...string) (*exec.Cmd, string) {
	t.Helper()
	cmd := Command(append([]string{"hub", "--http", "127.0.0.1:0"}, args...)...)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { // the hub may have exited
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	text, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	return cmd, strings.TrimSpace(text)
}

// Three nodes of different years join a hub and transfer a file. After the hub stops and starts
// again, the nodes are still joined, and the counters are kept.
func TestHub(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	students := filepath.Join(dir, "class.txt")
	names := []string{"ada", "bob", "carol"}
	require.NoError(t, os.WriteFile(students, []byte("ada ada-token-0123456\n"+
		"bob bob-token-0123456\ncarol carol-token-0123456\n"), 0o600))
	args := []string{
		"--students", students, "--state", filepath.Join(dir, "hub.json"),
		"--listen-udp", fmt.Sprintf("127.0.0.1:%d", ci.FreePort(t)),
	}
	hub, page := startHub(t, args...)
	var nodes []*Node
	for i, grammar := range []string{"new", "2018", "2013"} {
		r := node(t, "", "hub", "lnx", names[i], "--grammar", grammar, "--state", args[3],
			"--port", fmt.Sprint(ci.FreePort(t)))
		file := filepath.Join(dir, names[i]+".lnx")
		require.NoError(t, os.WriteFile(file, []byte(r.out), 0o600), r.err)
		joined, err := http.PostForm(page+"/join", url.Values{
			"token": {names[i] + "-token-0123456"},
		})
		require.NoError(t, err)
		text, err := io.ReadAll(joined.Body)
		require.NoError(t, err)
		require.NoError(t, joined.Body.Close())
		require.Equal(t, http.StatusOK, joined.StatusCode, "%s", text)
		nodes = append(nodes, Start(t, file))
	}
	ada, carol := nodes[0], nodes[2]
	ada.AwaitRoute(netip.MustParseAddr("10.77.3.2"))
	carol.AwaitRoute(netip.MustParseAddr("10.77.1.2"))
	startTransfer(t, ada, carol, 300_000, 9000).done(Soon)

	type view struct {
		Students []struct {
			Name   string
			Joined bool
			To     []struct {
				Reach     string
				Bytes     uint64 `json:"tcp_bytes"`
				Completed int
			}
		}
	}
	look := func() (v view) {
		r, err := http.Get(page + "/api/view")
		require.NoError(t, err)
		require.NoError(t, json.NewDecoder(r.Body).Decode(&v))
		require.NoError(t, r.Body.Close())
		return v
	}
	ada.Eventually(Soon, "the transfer on the page", func() bool {
		return look().Students[0].To[2].Completed == 1
	})
	check := func() {
		v := look()
		require.Len(t, v.Students, 3)
		for i, s := range v.Students {
			assert.Equal(t, names[i], s.Name)
			assert.True(t, s.Joined)
		}
		to := v.Students[0].To[2]
		assert.Equal(t, "both-ways", to.Reach)
		assert.InDelta(t, 300_000, to.Bytes, 100, "the file, and what sendfile adds")
		assert.Equal(t, "none", v.Students[0].To[1].Reach)
	}
	check()
	require.NoError(t, hub.Process.Signal(syscall.SIGTERM))
	_ = hub.Wait() // the exit status is that of a signal
	assert.Equal(t, 143, hub.ProcessState.ExitCode())
	_, page = startHub(t, args...)
	check()
	ada.AwaitRoute(netip.MustParseAddr("10.77.3.2"))
	carol.AwaitRoute(netip.MustParseAddr("10.77.1.2"))
	startTransfer(t, ada, carol, 100_000, 9001).done(Soon)
}

func TestHubFaults(t *testing.T) {
	t.Parallel()
	students := filepath.Join(t.TempDir(), "class.txt")
	require.NoError(t, os.WriteFile(students, []byte("ada\nb!b\n"), 0o600))
	state := filepath.Join(t.TempDir(), "hub.json")
	require.NoError(t, os.WriteFile(state, []byte(`{"network": "10.77.0.0/16", "public": "a:1",
		"students": [{"name": "ada", "slot": 1}]}`), 0o600))
	const usage, failure = 2, 1
	for _, x := range []struct {
		want string
		code int
		args []string
	}{
		{"class.txt:2:1: invalid name", usage, []string{"--students", students}},
		{"--network \"x\": must be", usage, []string{"--network", "x"}},
		{"--network 10.0.0.0/8: must be", usage, []string{"--network", "10.0.0.0/8"}},
		{"no-such-file", usage, []string{"--students", "no-such-file"}},
		{"--http \"x\": must be HOST:PORT", usage, []string{"--http", "x"}},
		{"--listen-udp \"127.0.0.1:x\": must be", usage, []string{"--listen-udp", "127.0.0.1:x"}},
		{"--public \"x\": must be HOST:PORT", usage, []string{"--public", "x"}},
		{"--rate -1: must be above 0", usage, []string{"--rate", "-1"}},
		{"--most 900: must be 1 to 250", usage, []string{"--most", "900"}},
		{"listen tcp 192.0.2.1:80: ", failure, []string{"--http", "192.0.2.1:80"}},
		{
			"a hub writes this file when it starts", failure,
			[]string{"lnx", "ada", "--state", students + ".json"},
		},
		{
			"--grammar \"2019\": must be new, 2018 or 2013", usage,
			[]string{"lnx", "ada", "--grammar", "2019", "--state", state},
		},
	} {
		args := append([]string{"hub", "--listen-udp", "127.0.0.1:0", "--http", "127.0.0.1:0"}, x.args...)
		if x.args[0] == "lnx" {
			args = append([]string{"hub"}, x.args...)
		}
		r := node(t, "", args...)
		assert.Equal(t, x.code, r.code, x.args)
		assert.Contains(t, r.err, x.want)
	}
}
