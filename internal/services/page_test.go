package services

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/control"
)

// A page that cannot be written completely does not get its final name.
func TestIncompletePageIsNotRenamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page")
	s := &storing{fetch: &control.Fetch{Path: path}, page: &control.Page{}}
	s.t = New(nil, "").newTransfer(t.Context(), path, false, nil)
	var err error
	s.file, err = s.t.createTarget(false, false)
	require.NoError(t, err)
	require.NoError(t, s.file.Close()) // makes the next write fail, as on a full disk
	require.ErrorIs(t, s.done(nil), os.ErrClosed)
	assert.NoFileExists(t, path)
	assert.FileExists(t, path+".part")
}
