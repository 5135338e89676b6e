package e2e_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// setting returns a setting of the unit file with its specifiers replaced, for the instance A.
func setting(t *testing.T, key, run, etc string) string {
	t.Helper()
	text, err := os.ReadFile(Path("packaging", "tidepool@.service"))
	require.NoError(t, err)
	m := regexp.MustCompile(`(?m)^` + key + `=(.*)$`).FindSubmatch(text)
	require.NotNil(t, m, key)
	return strings.NewReplacer("%t", run, "%i", "A", "/etc/tidepool", etc).Replace(string(m[1]))
}

// started is the process that the unit file starts, and the service manager's socket.
type started struct {
	t       *testing.T
	run     string
	manager *net.UnixConn
	node    *exec.Cmd
}

func startUnit(t *testing.T) *started {
	t.Helper()
	network := CopyNetwork(t, "nets", "a-b")
	s := &started{t: t, run: t.TempDir()}
	require.NoError(t, os.MkdirAll(filepath.Join(s.run, setting(t, "RuntimeDirectory", s.run, "")), 0o755))
	notify := filepath.Join(s.run, "notify")
	var err error
	s.manager, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: notify, Net: "unixgram"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.manager.Close() })
	require.NoError(t, s.manager.SetReadDeadline(time.Now().Add(Soon)))

	words := strings.Fields(setting(t, "ExecStart", s.run, network.Dir))
	s.node = Command(words[1:]...)
	s.node.Env = append(os.Environ(), "NOTIFY_SOCKET="+notify, setting(t, "Environment", "", ""))
	require.NoError(t, s.node.Start())
	t.Cleanup(func() {
		_ = s.node.Process.Kill() // the node may have exited
		_ = s.node.Wait()
	})
	require.Equal(t, "notify", setting(t, "Type", "", ""))
	s.awaitNotify("READY=1")
	return s
}

// awaitNotify waits for a notification to the service manager.
func (s *started) awaitNotify(what string) {
	s.t.Helper()
	buf := make([]byte, 4096)
	for {
		k, err := s.manager.Read(buf)
		require.NoError(s.t, err, what)
		if strings.Contains(string(buf[:k]), what) {
			return
		}
	}
}

// The process that the unit file starts becomes ready, answers on its socket, and ends on request.
func TestUnitFileRunsNode(t *testing.T) {
	t.Parallel()
	s := startUnit(t)
	out, err := Command("ctl", filepath.Join(s.run, "tidepool", "A", "A.sock"), "routes").Output()
	require.NoError(t, err)
	assert.Contains(t, string(out), "10.0.0.0/24")

	require.Equal(t, "/bin/kill -HUP $MAINPID", setting(t, "ExecReload", "", ""))
	require.NoError(t, s.node.Process.Signal(syscall.SIGHUP))
	s.awaitNotify("RELOADING=1")
	s.awaitNotify("READY=1")
	require.NoError(t, s.node.Process.Signal(syscall.SIGTERM))
	s.awaitNotify("STOPPING=1")
	_ = s.node.Wait()
	assert.Equal(t, setting(t, "SuccessExitStatus", "", ""),
		strconv.Itoa(s.node.ProcessState.ExitCode()))
}

// The service manager restarts a hung node. The watchdog ends it with SIGABRT (systemd.service(5)),
// which differs from the exit status for a wrong file.
func TestUnitFileRestartsHungNode(t *testing.T) {
	t.Parallel()
	s := startUnit(t)
	require.Equal(t, "0", setting(t, "LimitCORE", "", ""))
	require.NoError(t, unix.Prlimit(s.node.Process.Pid, unix.RLIMIT_CORE, &unix.Rlimit{}, nil))
	require.Equal(t, "on-failure", setting(t, "Restart", "", ""))
	require.Equal(t, "2", setting(t, "RestartPreventExitStatus", "", ""))
	require.NoError(t, s.node.Process.Signal(syscall.SIGABRT))
	_ = s.node.Wait()
	status, ok := s.node.ProcessState.Sys().(syscall.WaitStatus)
	require.True(t, ok)
	require.True(t, status.Signaled(), s.node.ProcessState.String())
	assert.Equal(t, syscall.SIGABRT, status.Signal())
}

// If the program is installed, systemd-analyze finds no fault in the unit file.
func TestUnitFileIsValid(t *testing.T) {
	t.Parallel()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	text, err := os.ReadFile(Path("packaging", "tidepool@.service"))
	require.NoError(t, err)
	program, err := os.Executable() // any existing program
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "tidepool@A.service")
	require.NoError(t, os.WriteFile(file,
		[]byte(strings.Replace(string(text), "/usr/bin/tidepool", program, 1)), 0o644))
	out, err := exec.Command(analyze, "verify", file).CombinedOutput()
	require.NoError(t, err, string(out))
	assert.NotContains(t, string(out), "tidepool@A") // it checks other units, too
}
