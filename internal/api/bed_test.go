package api

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/files"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/operator/operatortest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bed is two nodes on one link. One server at a Unix socket serves both.
type bed struct {
	nodes  map[string]control.Operator
	server *Server
	socket string
	http   *http.Client
}

// newBed starts the nodes A (10.0.0.1) and B (10.0.0.2).
func newBed(t *testing.T) *bed {
	t.Helper()
	ports := testenv.FreePorts(t, 2)
	b := &bed{nodes: map[string]control.Operator{}}
	for i, name := range []string{"A", "B"} {
		text := fmt.Sprintf("interface if0 10.0.0.%d/24 127.0.0.1:%d\n"+
			"neighbor 10.0.0.%d at 127.0.0.1:%d via if0\nrouting rip\n",
			i+1, ports[i], 2-i, ports[1-i])
		b.nodes[name] = operatortest.Start(t, node.Config{Seed: 1}, testenv.ParseNode(t, name, text))
	}
	b.serve(t)
	return b
}

// serve serves the nodes on a new socket.
func (b *bed) serve(t *testing.T) {
	t.Helper()
	b.socket = filepath.Join(shortFolder(t), "s")
	l, err := ListenUnix(t.Context(), b.socket)
	require.NoError(t, err)
	here, err := files.OpenFolder(".")
	require.NoError(t, err)
	b.server = New(Config{Nodes: b.nodes, Version: "test", Files: here})
	ended := make(chan error, 1)
	go func() { ended <- b.server.Serve(l) }()
	b.http = throughUnix(b.socket)
	t.Cleanup(func() {
		b.http.CloseIdleConnections()
		b.server.Close()
		require.NoError(t, <-ended)
		require.NoFileExists(t, b.socket)
		require.NoError(t, here.Close())
	})
}

// shortFolder returns a folder whose path is short enough for a socket in it.
func shortFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "tide") //nolint:usetesting // t.TempDir's path is too long on macOS
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(folder)) })
	return folder
}

func throughUnix(path string) *http.Client {
	var dialer net.Dialer
	return &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", path)
		},
	}}
}

// client returns a Client for a node.
func (b *bed) client(t *testing.T, name string) *Client {
	t.Helper()
	c := NewClient(Endpoint{Socket: b.socket}, name)
	t.Cleanup(c.Close)
	return c
}

// do sends a request and returns the response.
func (b *bed) do(
	t *testing.T, method, path, accept, text string,
) (status int, as string, body []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://localhost"+path,
		bytes.NewReader([]byte(text)))
	require.NoError(t, err)
	if accept != "" {
		r.Header.Set("Accept", accept)
	}
	resp, err := b.http.Do(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err = io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, resp.Header.Get("Content-Type"), body
}
