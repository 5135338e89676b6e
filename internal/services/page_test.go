package services

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/control"
)

// What the system could not write to the end does not get the file's name.
func TestAPageThatIsNotWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page")
	s := &storing{fetch: &control.Fetch{Path: path}, page: &control.Page{}}
	s.t = New(nil, "").newTransfer(t.Context(), path, false, nil)
	var err error
	s.file, err = s.t.createTarget(false, false)
	require.NoError(t, err)
	require.NoError(t, s.file.Close()) // so what follows fails, as it does on a disk that is full
	require.ErrorIs(t, s.done(), os.ErrClosed)
	assert.NoFileExists(t, path)
	assert.FileExists(t, path+".part")
}
