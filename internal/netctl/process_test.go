package netctl

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestReusedProcessNumber checks that a process that reuses the PID of a dead node is not killed.
func TestReusedProcessNumber(t *testing.T) {
	if !locks {
		return // without locks, a PID alone is not proof of a running node
	}
	other := exec.CommandContext(t.Context(), "sleep", "60")
	require.NoError(t, other.Start())
	n := &Network{dir: t.TempDir()}
	require.NoError(t, os.WriteFile(n.process("A").pid(), []byte(strconv.Itoa(other.Process.Pid)), 0o600))
	ran, err := n.process("A").stop(t.Context())
	require.NoError(t, err)
	assert.False(t, ran)
	assert.NoFileExists(t, n.process("A").pid(), "what is left of it is swept")
	require.NoError(t, other.Process.Kill())
	require.EqualError(t, other.Wait(), "signal: killed", "and not by us before")
}

// TestStartKeepsALockedPIDFile checks that start does not change the PID file of a running node.
func TestStartKeepsALockedPIDFile(t *testing.T) {
	if !locks {
		return
	}
	n := &Network{dir: t.TempDir()}
	held, err := os.Create(n.process("A").pid())
	require.NoError(t, err)
	defer held.Close()
	require.True(t, tryLock(held))
	_, err = held.WriteString("4711\n")
	require.NoError(t, err)
	_, err = n.start(Plan{Program: "/does/not/exist"}, []Member{{Name: "A"}})
	require.ErrorIs(t, err, ErrBusy)
	pid, locked := n.process("A").holder()
	assert.True(t, locked)
	assert.Equal(t, 4711, pid)
}

// TestRunningNodeKeepsItsFolder checks that withdraw keeps the folder while a node runs.
func TestRunningNodeKeepsItsFolder(t *testing.T) {
	if !locks {
		return
	}
	n := &Network{dir: filepath.Join(t.TempDir(), "one")}
	require.NoError(t, os.Mkdir(n.dir, 0o700))
	held, err := os.Create(n.process("A").pid())
	require.NoError(t, err)
	require.True(t, tryLock(held))
	require.NoError(t, n.withdraw(t.Context(), Plan{Nodes: []Member{{Name: "A"}, {Name: "B"}}}))
	assert.FileExists(t, n.process("A").pid())
	require.NoError(t, held.Close())
	require.NoError(t, n.withdraw(t.Context(), Plan{Nodes: []Member{{Name: "A"}, {Name: "B"}}}))
	assert.NoDirExists(t, n.dir)
}
