package e2e_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An unreadable file is reported at once, and no connection is opened.
func TestUnreadableFiles(t *testing.T) {
	t.Parallel()
	n := CopyNetwork(t, "nets", "a-b").StartAll()
	a, b := n.Node("A"), n.Node("B")
	b.MustDo("accept 9000")

	missing := filepath.Join(t.TempDir(), "missing")
	complaint := fails(t, a, Soon, "sendfile %s %s 9000", missing, b.Addr())
	assert.Contains(t, complaint, missing)
	assert.Contains(t, complaint, "no such file")

	dir := t.TempDir()
	complaint = fails(t, a, Soon, "sendfile %s %s 9000", dir, b.Addr())
	assert.Contains(t, complaint, dir)
	assert.Regexp(t, "not a regular file|directory", complaint)

	if os.Getuid() > 0 { // root can read everything
		secret := RandomFile(t, 10, 1)
		require.NoError(t, os.Chmod(secret, 0))
		complaint = fails(t, a, Soon, "sendfile %s %s 9000", secret, b.Addr())
		assert.Contains(t, complaint, "permission denied")
	}
	assert.Len(t, b.Sockets(), 1, "only the listener: no connection was opened")
}

// An unwritable target is reported before any data is sent.
func TestUnwritableTargets(t *testing.T) {
	t.Parallel()
	b := CopyNetwork(t, "nets", "a-b").Start("B")

	nowhere := filepath.Join(t.TempDir(), "no", "such", "folder")
	complaint := fails(t, b, Soon, "recvfile %s 9000", nowhere)
	assert.Contains(t, complaint, nowhere)
	assert.Contains(t, complaint, "no such directory:")

	dir := t.TempDir()
	complaint = fails(t, b, Soon, "recvfile %s 9000", dir)
	assert.Contains(t, complaint, dir)

	if os.Getuid() > 0 { // root can write everywhere
		locked := t.TempDir()
		require.NoError(t, os.Chmod(locked, 0o500))
		complaint = fails(t, b, Soon, "recvfile %s/file 9000", locked)
		assert.Contains(t, complaint, "permission denied")
	}
	assert.Empty(t, b.Sockets(), "no listener")
}

// A file that grows or shrinks while it is sent fails the transfer at both ends.
func TestFileChangesDuringTransfer(t *testing.T) {
	t.Parallel()
	const size = 200 * megabyte
	for name, now := range map[string]int64{"grows": size + 1, "shrinks": size - 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b, c := line(t)
			file := filepath.Join(t.TempDir(), "sparse")
			require.NoError(t, os.WriteFile(file, nil, 0o644))
			require.NoError(t, os.Truncate(file, size))
			d := startReceiver(t, a, c, file, 9000)
			d.send()
			d.started(1)
			// With 100 % loss the transfer stands still while the file changes.
			b.MustDo("lossyforward 100")
			require.NoError(t, os.Truncate(file, now))
			b.MustDo("lossyforward 0")

			sender := fails(t, a, patience, "wait")
			assert.Contains(t, sender, file)
			assert.Contains(t, sender, "changed during the transfer")
			receiver := fails(t, c, Soon, "wait")
			assert.Contains(t, receiver, d.target)
			assert.Contains(t, receiver, "reset")
			assert.FileExists(t, d.target+".part")
			assert.NoFileExists(t, d.target)
		})
	}
}

// A receiver with --force keeps the existing file until the new one is complete.
func TestOldFileIsKeptUntilTransferCompletes(t *testing.T) {
	t.Parallel()
	net := CopyNetwork(t, "nets", "a-b").StartAll()
	a, b := net.Node("A"), net.Node("B")
	target := RandomFile(t, 3*megabyte, 7)
	old := Digest(t, target)
	b.MustDo("recvfile %s 9000 --force --json", target)
	assert.Equal(t, old, Digest(t, target))
	mark := b.Mark()
	file := RandomFile(t, 1000, 8)
	a.MustDo("sendfile %s %s 9000", file, b.Addr())
	b.Transferred(mark, target, Soon)
	assert.Equal(t, Digest(t, file), Digest(t, target))
}
