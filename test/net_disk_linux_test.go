package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// nodesOf counts the processes whose command line contains a folder.
func nodesOf(t *testing.T, folder string) (count int) {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	for _, path := range lines {
		text, _ := os.ReadFile(path) // the process may have exited
		if strings.Contains(string(text), folder+"/") {
			count++
		}
	}
	return count
}

// smallDisk mounts a file system with the given number of pages as a state folder. That requires
// root.
func smallDisk(t *testing.T, r *stateDir, pages int) string {
	t.Helper()
	dir := filepath.Join(r.state, fmt.Sprint("disk", pages))
	require.NoError(t, os.Mkdir(dir, 0o700))
	size := fmt.Sprintf("mode=700,size=%d", pages*os.Getpagesize())
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, size); err != nil {
		t.Skipf("no tmpfs: %v", err)
	}
	t.Cleanup(func() {
		r.node("net", "--state", dir, "down", "--all")
		assert.NoError(t, syscall.Unmount(dir, syscall.MNT_DETACH))
	})
	return dir
}

// TestUpOnAFullDisk: at whatever point the disk becomes full, either up prints one error and leaves
// nothing behind, or the network is up.
func TestUpOnAFullDisk(t *testing.T) {
	r := newStateDir(t)
	net := CopyNetwork(t, "nets", "a-b")
	full := 0
	for pages := 1; ; pages++ {
		dir := smallDisk(t, r, pages)
		got := r.node("net", "--state", dir, "up", net.Dir, "--name", "pair")
		if got.code == 0 {
			assert.Equal(t, 2, nodesOf(t, dir))
			assert.Zero(t, r.node("net", "--state", dir, "down").code)
			break
		}
		full++
		assert.Equal(t, 1, got.code)
		assert.Contains(t, got.err, "no space left on device", "%d pages", pages)
		assert.Equal(t, 1, strings.Count(got.err, "\n"), got.err)
		assert.Zero(t, nodesOf(t, dir), "%d pages", pages)
		assert.NoDirExists(t, filepath.Join(dir, "pair"))
		assert.Contains(t, r.node("net", "--state", dir, "status").err, "no network is up in ")
		require.Less(t, pages, 100)
	}
	assert.Positive(t, full)
}

// TestApplyOnAFullDisk: apply changes nothing, the nodes keep running with full logs, and down
// stops them.
func TestApplyOnAFullDisk(t *testing.T) {
	r := newStateDir(t)
	dir := smallDisk(t, r, 64)
	plan := filepath.Join(t.TempDir(), "mine.net")
	write := func(delay string) {
		text := "port " + portText(firstOf(t, 4)) + "\nlink A R delay " + delay + "\nlink R B\n"
		require.NoError(t, os.WriteFile(plan, []byte(text), 0o600))
	}
	write("1ms")
	require.Zero(t, r.node("net", "--state", dir, "up", plan).code)
	hog, err := os.Create(filepath.Join(dir, "hog"))
	require.NoError(t, err)
	for err == nil {
		_, err = hog.Write(make([]byte, os.Getpagesize()))
	}
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.NoError(t, hog.Close())
	text, err := os.ReadFile(filepath.Join(dir, "mine", "A.lnx"))
	require.NoError(t, err)
	write("2ms")
	got := r.node("net", "--state", dir, "apply", plan)
	assert.Equal(t, 1, got.code)
	assert.Regexp(t, `^node net apply: network mine: .*: no space left on device\n$`, got.err)
	now, err := os.ReadFile(filepath.Join(dir, "mine", "A.lnx"))
	require.NoError(t, err)
	assert.Equal(t, string(text), string(now))
	assert.Zero(t, r.node("net", "--state", dir, "status").code)
	for range 50 { // each command logs a line
		assert.Zero(t, r.node("ctl", "--state", dir, "A", "down if0").code)
		assert.Zero(t, r.node("ctl", "--state", dir, "A", "up if0").code)
	}
	assert.Contains(t, r.node("ctl", "--state", dir, "A", "impair").out, "delay 1ms")
	require.NoError(t, os.Remove(hog.Name()))
	got = r.node("net", "--state", dir, "apply", plan)
	require.Zero(t, got.code, got.err)
	assert.Contains(t, got.err, "reloaded: A B R\n")
	assert.Equal(t, "mine is down: 3 nodes stopped\n", r.node("net", "--state", dir, "down").err)
}

// TestReadOnlyStateFolder: commands that write print one error, and the running nodes still answer.
func TestReadOnlyStateFolder(t *testing.T) {
	r := newStateDir(t)
	net := CopyNetwork(t, "nets", "a-b")
	dir := smallDisk(t, r, 64)
	require.Zero(t, r.node("net", "--state", dir, "up", net.Dir, "--name", "pair").code)
	net.Append("A", "link if0 delay 1ms")
	// The same folder, mounted read-only at another path.
	view := filepath.Join(r.state, "view")
	require.NoError(t, os.Mkdir(view, 0o700))
	require.NoError(t, syscall.Mount(dir, view, "", syscall.MS_BIND, ""))
	t.Cleanup(func() { assert.NoError(t, syscall.Unmount(view, syscall.MNT_DETACH)) })
	require.NoError(t, syscall.Mount("", view, "", syscall.MS_REMOUNT|syscall.MS_BIND|
		syscall.MS_RDONLY, ""))
	for _, words := range [][]string{
		{"up", net.Dir, "--name", "other"},
		{"up", net.Dir, "--name", "pair"},
		{"apply", net.Dir, "--name", "pair"},
		{"down"},
	} {
		got := r.node(append([]string{"net", "--state", view}, words...)...)
		assert.Equal(t, 1, got.code, words)
		assert.Regexp(t, "^node net "+words[0]+": state folder: .*: read-only file system\n$",
			got.err)
	}
	assert.Zero(t, r.node("net", "--state", view, "status").code)
	assert.Zero(t, r.node("ctl", "--state", view, "A", "routes").code)
	assert.Equal(t, 2, nodesOf(t, dir))
	assert.Zero(t, r.node("net", "--state", dir, "down").code)
}
