//go:build unix

package files_test

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/files"
)

// yard returns a folder with a file, and with names that must not be opened.
func yard(t *testing.T) (dir string, inside *files.Folder) {
	t.Helper()
	top := t.TempDir()
	dir = filepath.Join(top, "files")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "sub"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(top, "secret"), []byte("secret"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), []byte("text"), 0o600))
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	for name, to := range map[string]string{
		"out": "../secret", "away": top, "here": "file", "device": "/dev/null",
		"hangs": "/dev/tty",
	} {
		require.NoError(t, os.Symlink(to, filepath.Join(dir, name)))
	}
	inside, err := files.OpenFolder(dir)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, inside.Close()) })
	return dir, inside
}

// TestNamesThatLeadOut checks that every function that opens files refuses names outside the
// folder.
func TestNamesThatLeadOut(t *testing.T) {
	dir, inside := yard(t)
	for _, name := range []string{
		"", "..", "../secret", "/etc/passwd", filepath.Join(dir, "file"), "sub/../../secret",
		"out", "away/secret", "device", strings.Repeat("a", 5000),
	} {
		_, _, err := inside.Read(name)
		require.Error(t, err, name)
		_, err = inside.Create(name, 0o600)
		require.Error(t, err, name)
		_, err = inside.Edit(name, 0o600)
		require.Error(t, err, name)
		_, err = inside.Sub(name)
		require.Error(t, err, name)
	}
	_, _, err := inside.Read("../secret")
	require.ErrorIs(t, err, files.ErrOutside)
	_, _, err = inside.Read("out")
	require.ErrorIs(t, err, files.ErrOutside)
	for _, name := range []string{"out", "away/secret"} {
		_, err = inside.Stat(name)
		require.ErrorIs(t, err, files.ErrOutside, name)
	}
	text, err := os.ReadFile(filepath.Join(dir, "..", "secret"))
	require.NoError(t, err)
	assert.Equal(t, "secret", string(text))
}

// TestPipesAndDevicesAreNotOpened checks that no function blocks, with a folder and without.
func TestPipesAndDevicesAreNotOpened(t *testing.T) {
	dir, inside := yard(t)
	for _, f := range []*files.Folder{inside, files.Machine()} {
		at := func(name string) string {
			if f == inside {
				return name
			}
			return filepath.Join(dir, name)
		}
		_, _, err := f.Read(at("pipe"))
		require.ErrorIs(t, err, files.ErrNotRegular)
		_, _, err = f.Read(at("sub"))
		require.ErrorIs(t, err, files.ErrNotRegular)
		for _, name := range []string{"pipe", "sub", "here", "device", "out"} {
			_, err = f.Edit(at(name), 0o600)
			require.ErrorIs(t, err, files.ErrNotRegular, name)
			_, err = f.Create(at(name), 0o600)
			require.ErrorIs(t, err, files.ErrNotRegular, name)
		}
		_, err = f.Create(at("file"), 0o600)
		require.ErrorIs(t, err, fs.ErrExist)
	}
	_, _, err := files.Machine().Read("/dev/null")
	require.ErrorIs(t, err, files.ErrNotRegular)
	file, _, err := inside.Read("here")
	require.NoError(t, err, "a link within the folder is followed for reading")
	require.NoError(t, file.Close())
}

// TestPublish checks that an existing file is replaced only on request, and that the file is synced
// first.
func TestPublish(t *testing.T) {
	dir, inside := yard(t)
	for i, f := range []*files.Folder{inside, files.Machine()} {
		at := func(name string) string {
			if f == inside {
				return name
			}
			return filepath.Join(dir, name)
		}
		part, err := f.Edit(at("file.part"), 0o600)
		require.NoError(t, err)
		_, err = io.WriteString(part, "whole")
		require.NoError(t, err)
		require.ErrorIs(t, f.Publish(part, at("file.part"), at("file"), false), fs.ErrExist)
		require.NoError(t, f.Publish(part, at("file.part"), at("sub/new"+string(rune('0'+i))), false))
		require.NoError(t, part.Close())
		_, err = f.Lstat(at("file.part"))
		require.ErrorIs(t, err, fs.ErrNotExist)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "file.part"), []byte("other"), 0o600))
		part, err = f.Edit(at("file.part"), 0o600)
		require.NoError(t, err)
		require.NoError(t, f.Publish(part, at("file.part"), at("file"), true))
		require.NoError(t, part.Close())
		require.ErrorIs(t, f.Publish(part, at("file"), at("named"), true), os.ErrClosed,
			"a file that cannot be synced")
		_, err = f.Lstat(at("named"))
		require.ErrorIs(t, err, fs.ErrNotExist, "it is on disk before it has its name")
		text, err := os.ReadFile(filepath.Join(dir, "file"))
		require.NoError(t, err)
		assert.Equal(t, "other", string(text))
	}
}
