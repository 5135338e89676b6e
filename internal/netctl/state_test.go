package netctl

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The tests in test/ run real processes of the program.

func state(t *testing.T, networks map[string][]string) *State {
	t.Helper()
	s, err := MakeState(filepath.Join(t.TempDir(), "state"))
	require.NoError(t, err)
	for name, nodes := range networks {
		n := &Network{dir: filepath.Join(s.root, name)}
		n.manifest.Name = name
		for _, node := range nodes {
			n.manifest.Nodes = append(n.manifest.Nodes, Member{Name: node})
		}
		require.NoError(t, os.MkdirAll(n.dir, 0o700))
		require.NoError(t, n.save(n.manifest))
	}
	return s
}

func TestNodesAreFoundByName(t *testing.T) {
	s := state(t, map[string][]string{"one": {"A", "B"}, "two": {"A", "C"}})
	for ref, want := range map[string]string{"B": "one", "C": "two", "two/A": "two", "one/A": "one"} {
		got, err := s.Find(ref)
		require.NoError(t, err, ref)
		assert.Equal(t, want, got.Network)
		assert.Equal(t, filepath.Join(s.root, want, got.Node+".sock"), got.Socket)
	}
	_, err := s.Find("A")
	require.ErrorIs(t, err, ErrAmbiguous)
	require.EqualError(t, err, "A: ambiguous name: use one of one/A, two/A")
	_, err = s.Find("one/C")
	require.ErrorIs(t, err, ErrNoNode)
	require.EqualError(t, err, "one/C: no such node: the nodes are one/A, one/B, two/A, two/C")
	_, err = state(t, nil).Find("A")
	require.ErrorContains(t, err, "no network is up in ")
}

func TestNetworksAreFoundByName(t *testing.T) {
	s := state(t, map[string][]string{"one": {"A"}, "two": {"A"}})
	n, err := s.Network("two")
	require.NoError(t, err)
	assert.Equal(t, "two", n.Name())
	_, err = s.Network("")
	require.ErrorIs(t, err, ErrAmbiguous)
	_, err = s.Network("three")
	require.EqualError(t, err, "three: no such network: the networks are one, two")
	only, err := state(t, map[string][]string{"one": {"A"}}).Network("")
	require.NoError(t, err)
	assert.Equal(t, "one", only.Name())
	_, err = state(t, nil).Network("")
	require.ErrorIs(t, err, ErrNoNetwork)
}

// TestOtherFilesAreNotNetworks checks that other files in the folder are ignored, and that a broken
// manifest is an error.
func TestOtherFilesAreNotNetworks(t *testing.T) {
	s := state(t, map[string][]string{"one": {"A"}})
	require.NoError(t, os.MkdirAll(filepath.Join(s.root, "empty"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(s.root, ".x.lock"), nil, 0o600))
	list, err := s.Networks()
	require.NoError(t, err)
	assert.Len(t, list, 1)
	path := filepath.Join(s.root, "one", manifestName)
	require.NoError(t, os.WriteFile(path, []byte("{"), 0o600))
	_, err = s.Networks()
	require.ErrorContains(t, err, path+": ")
	require.ErrorContains(t, err, "remove the folder if its nodes have stopped")
}

func TestNames(t *testing.T) {
	for _, name := range []string{"A", "R1-2", "a.b", "_x", "9"} {
		require.NoError(t, CheckName(name), name)
	}
	for _, name := range []string{"", ".", "..", ".x", "-x", "a/b", "a b", "é", "a\n"} {
		require.ErrorIs(t, CheckName(name), ErrUsage, "%q", name)
	}
}

// TestOneCommandAtATime checks that only one command at a time changes a network.
func TestOneCommandAtATime(t *testing.T) {
	s := state(t, nil)
	leave, err := s.enter(t.Context(), "one")
	require.NoError(t, err)
	if locks {
		_, err = s.enter(t.Context(), "one")
		require.ErrorIs(t, err, ErrBusy)
	}
	other, err := s.enter(t.Context(), "two")
	require.NoError(t, err)
	other()
	leave()
	leave, err = s.enter(t.Context(), "one")
	require.NoError(t, err)
	leave()
}

// TestMissingStateFolder checks that a missing folder has no networks and that listing them does
// not create it.
func TestMissingStateFolder(t *testing.T) {
	root := filepath.Join(t.TempDir(), "none")
	s, err := OpenState(root)
	require.NoError(t, err)
	list, err := s.Networks()
	require.NoError(t, err)
	assert.Empty(t, list)
	_, err = s.Network("ring")
	require.EqualError(t, err, "ring: no such network: none is up in "+root+
		"; start one with `node net up FOLDER`")
	_, err = s.Find("A")
	require.ErrorContains(t, err, "no network is up in "+root)
	assert.NoDirExists(t, root)
	_, err = MakeState(root)
	require.NoError(t, err)
	assert.DirExists(t, root)
}

// TestStateFolderWritableByOthers checks that a folder that other users can write to is rejected.
func TestStateFolderWritableByOthers(t *testing.T) {
	if !locks {
		return // the mode of a file does not show its owner on this system
	}
	open := filepath.Join(t.TempDir(), "open")
	require.NoError(t, os.Mkdir(open, 0o700))
	require.NoError(t, os.Chmod(open, 0o777)) //nolint:gosec // tests exactly this
	_, err := OpenState(open)
	require.ErrorIs(t, err, ErrUsage)
	require.ErrorContains(t, err, "other users may write to it: `chmod go-w` forbids that; choose another with --state")
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(t.TempDir(), link))
	_, err = OpenState(link)
	require.ErrorContains(t, err, "it is not a folder")
}

// TestLastLogLines checks that lastLogLines returns at most the requested number of lines of a log
// of any length.
func TestLastLogLines(t *testing.T) {
	n := &Network{dir: t.TempDir()}
	assert.Empty(t, n.process("A").lastLogLines(3, 0).lines)
	require.NoError(t, os.WriteFile(n.process("A").log(), []byte("one\ntwo\nthree\nfour\n\n"), 0o600))
	assert.Equal(t, []string{"two", "three", "four"}, n.process("A").lastLogLines(3, 0).lines)
	assert.Equal(t, []string{"four"}, n.process("A").lastLogLines(3, 14).lines, "only later lines")
	long := make([]byte, 3*logTail)
	for i := range long {
		long[i] = 'x'
	}
	require.NoError(t, os.WriteFile(n.process("A").log(), append(long, "\nend\n"...), 0o600))
	last := n.process("A").lastLogLines(3, 0).lines
	assert.Len(t, last, 2)
	assert.Equal(t, "end", last[1])
	assert.Less(t, len(last[0]), logTail)
}

// TestCrashDump checks that the cause of a crash is found at the start of a long dump, and
// that a crash before a restart is not reported.
func TestCrashDump(t *testing.T) {
	n := &Network{dir: t.TempDir()}
	const up = "time=2026-11-22T11:36:07.135Z level=INFO msg=up node=A\n"
	dump := "panic: it broke\n\ngoroutine 1 [running]:\nmain.main()\n\tmain.go:7 +0x1\n" +
		strings.Repeat("goroutine 7 [select]:\n", 3000)
	write := func(text string) {
		require.NoError(t, os.WriteFile(n.process("A").log(), []byte(text), 0o600))
	}
	for _, first := range []string{
		"panic: it broke", "fatal error: all goroutines are asleep - deadlock!",
		"SIGSEGV: segmentation violation",
	} {
		write(up + strings.Replace(dump, "panic: it broke", first, 1) + "rip    0x4985c1\ngs     0x0\n")
		got := n.process("A").lastLogLines(5, 0)
		assert.True(t, got.crashed, first)
		require.Len(t, got.lines, crashLines)
		assert.Equal(t, []string{first, "", "goroutine 1 [running]:", "main.main()"}, got.lines[:4])
	}
	write(up + dump + up)
	got := n.process("A").lastLogLines(2, 0)
	assert.False(t, got.crashed, "it was started again")
	assert.Equal(t, strings.TrimSpace(up), got.lines[1])
}

// TestLogsOfCrashedNodes checks that logs of crashed nodes stay after their network is stopped, and
// are deleted when it starts again.
func TestLogsOfCrashedNodes(t *testing.T) {
	s := state(t, map[string][]string{"one": {"A", "B", "C"}})
	n, err := s.Network("one")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(n.process("A").log(), []byte("panic: it broke\n"), 0o600))
	require.NoError(t, os.WriteFile(n.process("B").log(), nil, 0o600))
	done, err := s.Down(t.Context(), "one")
	require.NoError(t, err)
	assert.Equal(t, []string{"A", "B", "C"}, done.Dead)
	assert.Equal(t, []string{n.process("A").log()}, done.Logs, "B and C said nothing")
	left, err := os.ReadDir(n.Dir())
	require.NoError(t, err)
	require.Len(t, left, 1)
	assert.Equal(t, "A.log", left[0].Name())
	list, err := s.Networks()
	require.NoError(t, err)
	assert.Empty(t, list)
	_, fresh, err := s.place(Plan{Name: "one"})
	require.NoError(t, err)
	assert.True(t, fresh)
	assert.NoFileExists(t, n.process("A").log())
}

// TestLockFilesAreRemoved checks that the holder of a lock removes the lock's file, and that a
// command takes over the file of a killed one.
func TestLockFilesAreRemoved(t *testing.T) {
	s := state(t, nil)
	path := filepath.Join(s.root, ".one.lock")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	var busy, entered atomic.Int32
	var alone sync.Mutex
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				leave, err := s.enter(t.Context(), "one")
				if err != nil {
					busy.Add(1)
					continue
				}
				if assert.True(t, alone.TryLock() || !locks, "two are in it at once") && locks {
					runtime.Gosched()
					alone.Unlock()
				}
				entered.Add(1)
				leave()
			}
		})
	}
	wg.Wait()
	t.Logf("# %d entered, %d found it busy", entered.Load(), busy.Load())
	assert.Positive(t, entered.Load())
	assert.NoFileExists(t, path)
}
