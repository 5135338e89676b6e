package services_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/operator"
)

// serveHTTP serves a handler on port 80 of a node.
func serveHTTP(t *testing.T, n *operator.Node, h http.Handler) {
	t.Helper()
	l, err := n.Node.TCP.Listen(netip.MustParseAddrPort("0.0.0.0:80"), 0)
	require.NoError(t, err)
	server := &http.Server{Handler: h}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(net.Listener(l)) }()
	t.Cleanup(func() { _ = server.Close(); <-done })
}

// RFC 9530 §3: every answer has the digest of the whole file, even an answer to a range. The client
// compares it for whole files, including resumed ones.
func TestRFC9530_3_DigestOfAFetchedFile(t *testing.T) {
	a, b := twoNodes(t)
	dir := t.TempDir()
	file, data, digest := someFile(t)
	require.NoError(t, os.Rename(file, filepath.Join(dir, "file")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "index.html"), []byte("index"), 0o644))
	_, err := control.Ask(t.Context(), b, control.Serve{Port: 80, Dir: dir})
	require.NoError(t, err)
	get := func(part []byte, r control.Fetch) (control.Page, string, error) {
		t.Helper()
		target := filepath.Join(t.TempDir(), "target")
		if part != nil {
			require.NoError(t, os.WriteFile(target+".part", part, 0o644))
		}
		r.URL, r.Path = "10.0.0.2/file", target
		page, err := control.Ask(t.Context(), a, r)
		return page, target, err
	}
	for name, tt := range map[string]struct {
		part []byte
		r    control.Fetch
		want bool
	}{
		"whole":             {nil, control.Fetch{}, true},
		"resumed":           {data[:300_000], control.Fetch{Resume: true}, true},
		"already complete":  {data, control.Fetch{Resume: true}, true},
		"a range has none":  {nil, control.Fetch{Range: "5-9"}, false},
		"the whole, ranged": {nil, control.Fetch{Range: "0-"}, false},
	} {
		page, target, err := get(tt.part, tt.r)
		require.NoError(t, err, name)
		assert.Equal(t, tt.want, page.Verified, name)
		assert.FileExists(t, target, name)
		if tt.want {
			assert.Equal(t, digest, page.SHA256, name)
		}
	}
	for name, part := range map[string][]byte{
		"another file's beginning":    bytes.Repeat([]byte("x"), 300_000),
		"another file of that length": bytes.Repeat([]byte("x"), len(data)),
	} {
		_, target, err := get(part, control.Fetch{Resume: true})
		require.ErrorIs(t, err, control.ErrMismatch, name)
		assert.ErrorContains(t, err, digest+" at the server", name)
		assert.ErrorContains(t, err, target+".part: get it again with --force)", name)
		assert.NoFileExists(t, target, name)
		assert.FileExists(t, target+".part", name)
	}
	for path, want := range map[string]bool{"": true, "file": true, "none": false} {
		page, err := control.Ask(t.Context(), a, control.Fetch{URL: "10.0.0.2/" + path})
		require.NoError(t, err, path)
		assert.Equal(t, want, page.Verified, path)
	}
}

// RFC 9530 §2, RFC 9651 §3.2: other servers may send no digest, several digests, digests in two
// lines or with parameters, or an unknown, invalid or wrong digest.
func TestRFC9530_2_DigestsOfOtherServers(t *testing.T) {
	a, b := twoNodes(t)
	sum, other := sha256.Sum256([]byte("text")), sha256.Sum256([]byte("TEXT"))
	right, wrong := base64.StdEncoding.EncodeToString(sum[:]), base64.StdEncoding.EncodeToString(other[:])
	var field atomic.Value
	serveHTTP(t, b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "sha-256=10", r.Header.Get("Want-Repr-Digest"))
		assert.Empty(t, r.Header.Get("Accept-Encoding"), "the digest would be of the encoded page")
		for _, f := range field.Load().([]string) {
			w.Header().Add("Repr-Digest", f)
		}
		_, _ = w.Write([]byte("text"))
	}))
	for _, tt := range []struct {
		fields   []string
		verified bool
		wrong    bool
	}{
		{nil, false, false},
		{[]string{"sha-256=:" + right + ":"}, true, false},
		{[]string{"md5=:AAAA:, sha-256=:" + right + ":;q=1"}, true, false},
		{[]string{"md5=:AAAA:", "sha-256=:" + right + ":"}, true, false},
		{[]string{"sha-512=:" + wrong + ":"}, false, false},
		{[]string{"sha-256=:not base64:"}, false, false},
		{[]string{"sha-256=:AAAA:"}, false, false},
		{[]string{"sha-256"}, false, false},
		{[]string{"sha-256=:" + wrong + ":"}, false, true},
	} {
		field.Store(tt.fields)
		for _, path := range []string{"", filepath.Join(t.TempDir(), "file")} {
			page, err := control.Ask(t.Context(), a, control.Fetch{URL: "10.0.0.2", Path: path})
			if tt.wrong {
				require.ErrorIs(t, err, control.ErrMismatch)
				continue
			}
			require.NoError(t, err)
			assert.Equal(t, tt.verified, page.Verified, "%q into %q", tt.fields, path)
		}
	}
}

// RFC 9530 §4: a client that does not want a digest does not wait for it.
func TestRFC9530_4_NoDigestUnlessWanted(t *testing.T) {
	a, b := twoNodes(t)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), []byte("text"), 0o644))
	_, err := control.Ask(t.Context(), b, control.Serve{Port: 80, Dir: dir})
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
			return a.Node.TCP.Dial(ctx, netip.MustParseAddrPort(addr))
		},
	}}
	for want, has := range map[string]bool{"": false, "sha-512=3": false, "sha-256=0": false, "md5=1, sha-256=5": true} {
		for path, code := range map[string]int{"file": 200, "none": 404, "": 200} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://10.0.0.2/"+path, nil)
			require.NoError(t, err)
			req.Header.Set("Want-Repr-Digest", want)
			answer, err := client.Do(req)
			require.NoError(t, err)
			require.NoError(t, answer.Body.Close())
			assert.Equal(t, code, answer.StatusCode)
			assert.Equal(t, has && path == "file", answer.Header.Get("Repr-Digest") != "", "%s %q", path, want)
		}
	}
}
