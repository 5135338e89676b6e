//go:build unix

package services_test

import (
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/control"
)

// A server of a folder follows no link out of it, and a pipe in it does not block a client.
func TestServedFolderIsConfined(t *testing.T) {
	a, b := twoNodes(t)
	dir := t.TempDir()
	inside := filepath.Join(dir, "inside")
	require.NoError(t, os.Mkdir(inside, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "secret"), []byte("secret"), 0o644))
	require.NoError(t, os.Symlink("../secret", filepath.Join(inside, "way")))
	require.NoError(t, os.Symlink("..", filepath.Join(inside, "up")))
	require.NoError(t, syscall.Mkfifo(filepath.Join(inside, "pipe"), 0o644))
	testenv.Ask(t, b, control.Serve{Port: 80, Dir: inside})
	for _, path := range []string{"/../secret", "/%2e%2e/secret", "/way", "/up/secret", "/up/", "/pipe", "/..%2fsecret"} {
		c, err := a.Node.TCP.Dial(t.Context(), netip.MustParseAddrPort("10.0.0.2:80"))
		require.NoError(t, err)
		_, err = io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		require.NoError(t, err)
		text, err := io.ReadAll(c)
		require.NoError(t, err)
		assert.NotContains(t, string(text), "\r\n\r\nsecret", path)
		assert.Regexp(t, `^HTTP/1.1 (3..|4..|500) `, string(text), path)
		require.NoError(t, c.Close())
	}
}
