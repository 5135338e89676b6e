package e2e_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/test/internal/nodes"
)

// What cannot be read is told at once, and nobody is called for it.
func TestFilesThatCannotBeSent(t *testing.T) {
	t.Parallel()
	n := nodes.CopyNetwork(t, "nets", "a-b").StartAll()
	a, b := n.Node("A"), n.Node("B")
	b.MustDo("accept 9000")

	missing := filepath.Join(t.TempDir(), "missing")
	complaint := fails(t, a, nodes.Soon, "sendfile %s %s 9000", missing, b.Addr())
	assert.Contains(t, complaint, missing)
	assert.Contains(t, complaint, "no such file")

	dir := t.TempDir()
	complaint = fails(t, a, nodes.Soon, "sendfile %s %s 9000", dir, b.Addr())
	assert.Contains(t, complaint, dir)
	assert.Regexp(t, "not a regular file|directory", complaint)

	if os.Getuid() > 0 { // root reads everything
		secret := nodes.RandomFile(t, 10, 1)
		require.NoError(t, os.Chmod(secret, 0))
		complaint = fails(t, a, nodes.Soon, "sendfile %s %s 9000", secret, b.Addr())
		assert.Contains(t, complaint, "permission denied")
	}
	assert.Len(t, b.Sockets(), 1, "only the listener: nobody has connected")
}

// What cannot be written is told before anybody sends.
func TestTargetsThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	b := nodes.CopyNetwork(t, "nets", "a-b").Start("B")

	nowhere := filepath.Join(t.TempDir(), "no", "such", "folder")
	complaint := fails(t, b, nodes.Soon, "recvfile %s 9000", nowhere)
	assert.Contains(t, complaint, nowhere)
	assert.Contains(t, complaint, "there is no folder")

	dir := t.TempDir()
	complaint = fails(t, b, nodes.Soon, "recvfile %s 9000", dir)
	assert.Contains(t, complaint, dir)

	if os.Getuid() > 0 { // root writes everywhere
		locked := t.TempDir()
		require.NoError(t, os.Chmod(locked, 0o500))
		complaint = fails(t, b, nodes.Soon, "recvfile %s/file 9000", locked)
		assert.Contains(t, complaint, "permission denied")
	}
	assert.Empty(t, b.Sockets(), "nobody listens")
}

// A file that is sent must stay as it is: whether it grows or shrinks, both ends say that this is
// not the file.
func TestAFileThatChangesWhileItIsSent(t *testing.T) {
	const size = 200 * megabyte
	for name, now := range map[string]int64{"grows": size + 1, "shrinks": size - 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b, c := line(t)
			file := filepath.Join(t.TempDir(), "sparse")
			require.NoError(t, os.WriteFile(file, nil, 0o644))
			require.NoError(t, os.Truncate(file, size))
			d := expect(t, a, c, file, 9000)
			d.send()
			d.started(1)
			// The transfer stands still while the file changes.
			b.MustDo("lossyforward 100")
			require.NoError(t, os.Truncate(file, now))
			b.MustDo("lossyforward 0")

			sender := fails(t, a, patience, "wait")
			assert.Contains(t, sender, file)
			assert.Contains(t, sender, "changed during the transfer")
			receiver := fails(t, c, nodes.Soon, "wait")
			assert.Contains(t, receiver, d.target)
			assert.Contains(t, receiver, "reset")
			assert.FileExists(t, d.target+".part")
			assert.NoFileExists(t, d.target)
		})
	}
}

// A receiver that stands on an old file truncates it, and keeps it until the new one is whole.
func TestTheOldFileStaysUntilTheNewIsWhole(t *testing.T) {
	t.Parallel()
	net := nodes.CopyNetwork(t, "nets", "a-b").StartAll()
	a, b := net.Node("A"), net.Node("B")
	target := nodes.RandomFile(t, 3*megabyte, 7)
	old := nodes.Digest(t, target)
	b.MustDo("recvfile %s 9000 --force --json", target)
	assert.Equal(t, old, nodes.Digest(t, target))
	mark := b.Mark()
	file := nodes.RandomFile(t, 1000, 8)
	a.MustDo("sendfile %s %s 9000", file, b.Addr())
	b.Transferred(mark, target, nodes.Soon)
	assert.Equal(t, nodes.Digest(t, file), nodes.Digest(t, target))
}
