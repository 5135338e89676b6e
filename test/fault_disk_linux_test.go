package e2e_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A full disk fails the transfer at both ends. The disk is a file system of one megabyte, which
// only root can mount.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("no tmpfs: %v", err)
	}
	t.Cleanup(func() { assert.NoError(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	net := CopyNetwork(t, "nets", "a-b").StartAll()
	target := filepath.Join(dir, "target")
	a, b := net.Node("A"), net.Node("B")
	file := RandomFile(t, 4*megabyte, 1)
	b.Receive(target, 9000)
	sender := fails(t, a, patience, "sendfile %s %s 9000", file, b.Addr())
	assert.Contains(t, sender, file)
	assert.Contains(t, sender, "reset")
	receiver := fails(t, b, Soon, "wait")
	assert.Contains(t, receiver, target)
	assert.Contains(t, receiver, "no space left on device")
	assert.Contains(t, receiver, target+".part")
	assert.NoFileExists(t, target)
	assert.FileExists(t, target+".part", "the received part is kept")
}
