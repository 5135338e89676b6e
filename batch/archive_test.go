package batch

import (
	"bytes"
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// folderOf writes files into a new folder of results.
func folderOf(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return dir
}

// textsIn returns the files of a folder.
func textsIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	list := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		require.NoError(t, err)
		text, err := os.ReadFile(path)
		list[filepath.ToSlash(name)] = string(text)
		return err
	}))
	return list
}

func packed(t *testing.T, dir string, piece int) string {
	t.Helper()
	var log bytes.Buffer
	require.NoError(t, Pack(&log, dir, piece))
	return log.String()
}

const (
	ours   = `{"name": "x", "version": "v1", "mark": "abc"}`
	merged = `{"name": "x", "version": "v1", "mark": "abc", "hash": "1"}`
	theirs = `{"name": "x", "version": "v2", "mark": "def"}`
)

func TestArchiveCarriesResults(t *testing.T) {
	noise := make([]byte, 2*pieceSize) // noise, because it cannot be compressed
	_, _ = rand.Read(noise)
	from := folderOf(t, map[string]string{
		"run.json": ours, "cells/part-0-of-2.csv": "a", "flows/0-0.csv": string(noise),
		"trials.csv": "merged elsewhere", ".lock": "", "cells/.part-part-1-of-2.csv-7": "half",
		"batch/job.json": "{}",
	})
	to := folderOf(t, map[string]string{"run.json": merged, "trials.csv": "ours"})
	var a archive
	for !a.whole() {
		require.NoError(t, a.add(packed(t, from, a.next)))
	}
	assert.Equal(t, 3, a.of)
	require.NoError(t, a.unpack(to))
	assert.Equal(t, map[string]string{
		"run.json": merged, "cells/part-0-of-2.csv": "a", "flows/0-0.csv": string(noise),
		"cells/trials.csv": "merged elsewhere", "trials.csv": "ours",
	}, textsIn(t, to))

	a = archive{}
	require.NoError(t, a.add(packed(t, filepath.Join(from, "none"), 0)))
	require.NoError(t, a.unpack(to), "no part has begun")
	require.EqualError(t, a.unpack(filepath.Join(to, "x")), "the volume has no results in x: the "+
		"folder must have the same name as in `node lab submit`")
}

// A transfer that ends early, at any byte, is rejected.
func TestArchiveNoticesACut(t *testing.T) {
	log := packed(t, folderOf(t, map[string]string{"run.json": ours, "cells/a.csv": "b"}), 0)
	for length := range len(log) - 1 {
		require.ErrorIs(t, new(archive).add(log[:length]), errCut, "%d bytes", length)
	}
	for _, wrong := range []string{
		strings.Replace(log, "H4s", "H4t", 1), "a complaint\n" + log,
		packed(t, t.TempDir(), 1), // an archive of one piece
	} {
		require.ErrorIs(t, new(archive).add(wrong), errCut)
	}
}

// If results change between two pieces, they are read again.
func TestArchiveNoticesAChange(t *testing.T) {
	noise := make([]byte, pieceSize)
	_, _ = rand.Read(noise)
	dir := folderOf(t, map[string]string{"flows/0-0.csv": string(noise)})
	var a archive
	require.NoError(t, a.add(packed(t, dir, 0)))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "run.json"), []byte(ours), 0o600))
	require.ErrorIs(t, a.add(packed(t, dir, 1)), errCut)
}

func TestArchiveOfOtherResults(t *testing.T) {
	var a archive
	require.NoError(t, a.add(packed(t, folderOf(t, map[string]string{"run.json": theirs}), 0)))
	to := folderOf(t, map[string]string{"run.json": ours})
	require.EqualError(t, a.unpack(to), "the volume has other results of the same name: x of version v2, "+
		"not x of version v1; choose another folder with -o")
	assert.Equal(t, map[string]string{"run.json": ours}, textsIn(t, to))
}
