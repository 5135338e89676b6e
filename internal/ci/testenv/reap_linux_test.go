package testenv_test

import (
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
)

// step selects the role of a process in this test: the killed test, or its daemon.
const step = "TIDEPOOL_REAP_STEP"

func TestMain(m *testing.M) {
	switch os.Getenv(step) {
	case "test":
		exitOn(testenv.ReapOrphans())
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), step+"=daemon")
		c.Stdout = os.Stdout
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		exitOn(c.Start())
		pause()
	case "daemon":
		_, err := os.Stdout.WriteString("up")
		exitOn(err)
		pause()
	}
	os.Exit(m.Run())
}

// pause waits for the signal that ends this process. The runtime reports an idle select as a
// deadlock.
func pause() {
	for {
		_ = syscall.Pause()
	}
}

func exitOn(err error) {
	if err != nil {
		panic(err)
	}
}

// TestKilledTestLeavesNoDaemon kills a test whose daemon has its own session. Both hold a pipe
// open. The pipe reaches its end when both have exited.
func TestKilledTestLeavesNoDaemon(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	c := exec.CommandContext(t.Context(), os.Args[0])
	c.Env = append(os.Environ(), step+"=test")
	c.Stdout = w
	require.NoError(t, c.Start())
	require.NoError(t, w.Close())
	_, err = io.ReadFull(r, make([]byte, len("up")))
	require.NoError(t, err)

	require.NoError(t, c.Process.Kill())
	require.Error(t, c.Wait())
	require.NoError(t, r.SetReadDeadline(time.Now().Add(time.Minute)))
	_, err = io.Copy(io.Discard, r)
	require.NoError(t, err, "the daemon is still running")
}
