package netctl

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestFilesAreTriedAndUndone checks that undo restores the previous files, removes the new ones,
// and leaves no temporary files.
func TestFilesAreTriedAndUndone(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "A.lnx"), filepath.Join(dir, "B.lnx")
	require.NoError(t, os.WriteFile(a, []byte("before"), 0o600))
	nodes := []Member{
		{Name: "A", File: a, Text: []byte("after")},
		{Name: "B", File: b, Text: []byte("new")},
		{Name: "C", File: filepath.Join(dir, "none", "C.lnx")},
	}
	read := func(path string) string {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		return string(text)
	}
	own, err := draftFiles(nodes)
	require.NoError(t, err)
	assert.Equal(t, "before", read(a))
	require.NoError(t, own.try())
	assert.Equal(t, "after", read(a))
	assert.Equal(t, "new", read(b))
	own.undo()
	assert.Equal(t, "before", read(a))
	assert.NoFileExists(t, b)

	own, err = draftFiles(nodes)
	require.NoError(t, err)
	require.NoError(t, own.try())
	own.discard()
	assert.Equal(t, "after", read(a))
	assert.Equal(t, "new", read(b))

	nodes[2].Text = []byte("it has no folder")
	_, err = draftFiles(nodes)
	require.Error(t, err)
	list, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, list, 2, "nothing else")
}
