//go:build unix

package node

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tidepool-net/tidepool/internal/tcp"
)

// A probe file that is never read is like a disk that blocks forever. The loop does not wait for
// it, and rows that do not fit are counted.
func TestSlowDiskDoesNotBlockTheLoop(t *testing.T) {
	path := filepath.Join(t.TempDir(), "samples.csv")
	require.NoError(t, unix.Mkfifo(path, 0o600))
	pipe, err := os.OpenFile(path, os.O_RDWR, 0) // a write to the pipe blocks until the test reads
	require.NoError(t, err)
	s := newSampler(path)
	s.start(pipe)
	const rows = 200_000 // about 20 MB
	for range rows {
		s.add(1, &tcp.Info{})
	}
	require.Positive(t, s.missed)

	read := make(chan int)
	f, err := os.Open(path)
	require.NoError(t, err)
	go func() {
		data, _ := io.ReadAll(f)
		read <- strings.Count(string(data), "\n")
	}()
	missed := s.missed
	require.ErrorContains(t, s.close(), "rows are missing")
	assert.Equal(t, 1+rows-missed, <-read, "the header and all other rows")
	require.NoError(t, f.Close())
}
