package e2e_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/test/internal/nodes"
)

// setting is a setting of the unit file, with its specifiers replaced: the instance is A.
func setting(t *testing.T, key, run, etc string) string {
	t.Helper()
	text, err := os.ReadFile(nodes.Path("packaging", "tidepool@.service"))
	require.NoError(t, err)
	m := regexp.MustCompile(`(?m)^` + key + `=(.*)$`).FindSubmatch(text)
	require.NotNil(t, m, key)
	return strings.NewReplacer("%t", run, "%i", "A", "/etc/tidepool", etc).Replace(string(m[1]))
}

// What the unit file starts is ready, answers where the file says, and ends as it says.
func TestTheUnitFileRunsANode(t *testing.T) {
	t.Parallel()
	network := nodes.CopyNetwork(t, "nets", "a-b")
	run := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(run, setting(t, "RuntimeDirectory", run, "")), 0o755))
	manager, err := net.ListenUnixgram("unixgram",
		&net.UnixAddr{Name: filepath.Join(run, "notify"), Net: "unixgram"})
	require.NoError(t, err)
	defer manager.Close()
	require.NoError(t, manager.SetReadDeadline(time.Now().Add(nodes.Soon)))
	told := func(what string) {
		t.Helper()
		buf := make([]byte, 4096)
		for {
			k, err := manager.Read(buf)
			require.NoError(t, err, what)
			if strings.Contains(string(buf[:k]), what) {
				return
			}
		}
	}

	words := strings.Fields(setting(t, "ExecStart", run, network.Dir))
	node := nodes.Command(words[1:]...)
	node.Env = append(os.Environ(), "NOTIFY_SOCKET="+filepath.Join(run, "notify"))
	require.NoError(t, node.Start())
	t.Cleanup(func() {
		_ = node.Process.Kill() // it may have ended
		_ = node.Wait()
	})
	require.Equal(t, "notify", setting(t, "Type", "", ""))
	told("READY=1")
	out, err := nodes.Command("ctl", filepath.Join(run, "tidepool", "A", "A.sock"), "routes").Output()
	require.NoError(t, err)
	assert.Contains(t, string(out), "10.0.0.0/24")

	require.Equal(t, "/bin/kill -HUP $MAINPID", setting(t, "ExecReload", "", ""))
	require.NoError(t, node.Process.Signal(syscall.SIGHUP))
	told("RELOADING=1")
	told("READY=1")
	require.NoError(t, node.Process.Signal(syscall.SIGTERM))
	told("STOPPING=1")
	_ = node.Wait()
	assert.Equal(t, setting(t, "SuccessExitStatus", "", ""), regexp.MustCompile(`\d+`).FindString(
		node.ProcessState.String()))
}

// systemd has nothing to say about the unit file but that the program is not installed.
func TestTheUnitFileIsSound(t *testing.T) {
	t.Parallel()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("no systemd-analyze here")
	}
	text, err := os.ReadFile(nodes.Path("packaging", "tidepool@.service"))
	require.NoError(t, err)
	program, err := os.Executable() // any that is there
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "tidepool@A.service")
	require.NoError(t, os.WriteFile(file,
		[]byte(strings.Replace(string(text), "/usr/lib/tidepool/node", program, 1)), 0o644))
	out, err := exec.Command(analyze, "verify", file).CombinedOutput()
	require.NoError(t, err, string(out))
	assert.NotContains(t, string(out), "tidepool@A") // it looks at other units too
}
