package e2e_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tidepool-net/tidepool/test/internal/nodes"
)

// The same with a real file system of one megabyte, for which one must be root.
func TestASmallDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("no tmpfs: %v", err)
	}
	t.Cleanup(func() { assert.NoError(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	net := nodes.CopyNetwork(t, "nets", "a-b").StartAll()
	target := filepath.Join(dir, "target")
	fullDisk(t, net.Node("A"), net.Node("B"), target)
	assert.FileExists(t, target+".part", "what came is kept")
}
