package api

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/control"
)

func TestSocketModeIs0600(t *testing.T) {
	folder := shortFolder(t)
	path := filepath.Join(folder, "s")
	l, err := ListenUnix(t.Context(), path)
	require.NoError(t, err)
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
	assert.Empty(t, l.Token())
	left, err := os.ReadDir(folder)
	require.NoError(t, err)
	assert.Len(t, left, 1, "nothing else stays there")

	_, err = ListenUnix(t.Context(), path)
	require.ErrorIs(t, err, ErrListen)
	require.ErrorContains(t, err, "a node already listens there")
	assert.True(t, Answers(t.Context(), path))
	require.NoError(t, l.Close())
	require.NoFileExists(t, path)
	assert.False(t, Answers(t.Context(), path))
}

// TestSocketLeftByACrash checks that a socket left by a crash refuses connections and is replaced.
func TestSocketLeftByACrash(t *testing.T) {
	path := filepath.Join(shortFolder(t), "s")
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	require.NoError(t, err)
	dead.SetUnlinkOnClose(false)
	require.NoError(t, dead.Close())
	require.FileExists(t, path)
	l, err := ListenUnix(t.Context(), path)
	require.NoError(t, err)
	assert.True(t, Answers(t.Context(), path))
	require.NoError(t, l.Close())
}

// TestReplacedSocketIsNotRemoved checks that the previous owner does not remove a socket that has
// replaced its own.
func TestReplacedSocketIsNotRemoved(t *testing.T) {
	path := filepath.Join(shortFolder(t), "s")
	first, err := ListenUnix(t.Context(), path)
	require.NoError(t, err)
	require.NoError(t, os.Remove(path))
	second, err := ListenUnix(t.Context(), path)
	require.NoError(t, err)
	require.NoError(t, first.Close())
	require.FileExists(t, path)
	require.NoError(t, second.Close())
}

func TestInvalidSocketPaths(t *testing.T) {
	folder := shortFolder(t)
	file := filepath.Join(folder, "f")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for path, says := range map[string]string{
		file:                                     "the file exists and is not a socket",
		filepath.Join(folder, "none", "s"):       "no such file",
		"/" + strings.Repeat("x", longestPath):   "the path has 104 bytes: must be at most 103",
		strings.Repeat("/xxxxxxxx", 10) + "/s":   "the folder's path has 90 bytes: must be at most 88",
		filepath.Join(file, "below", "a", "fil"): "not a directory",
	} {
		_, err := ListenUnix(t.Context(), path)
		require.ErrorIs(t, err, ErrListen, path)
		require.ErrorContains(t, err, says)
	}
}

func TestInvalidListenAddresses(t *testing.T) {
	for address, says := range map[string]string{
		"0.0.0.0:0":      "nothing is encrypted",
		"192.0.2.1:80":   "use ssh -L",
		"example.com:80": "other machines could reach example.com",
		"[::]:80":        "nothing is encrypted",
		"70000":          `"70000": must be a port from 0 to 65535`,
		"x":              `"x": must be a port`,
		"1:2:3":          "must be PORT or 127.0.0.1:PORT",
	} {
		_, err := ListenTCP(t.Context(), address)
		require.ErrorIs(t, err, ErrListen, address)
		require.ErrorContains(t, err, says)
	}
}

// TestAuthorizationOverTCP checks that a client needs the token (RFC 6750 §2.1), and must address
// the server by a name of this machine.
func TestAuthorizationOverTCP(t *testing.T) {
	l, err := ListenTCP(t.Context(), "0")
	require.NoError(t, err)
	s := New(Config{Nodes: map[string]control.Operator{}})
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	at := l.Addr().String()
	assert.True(t, strings.HasPrefix(at, "127.0.0.1:"), at)
	assert.Len(t, l.Token(), 26)
	client := &http.Client{Transport: &http.Transport{}}
	for _, tt := range []struct {
		host, origin, auth string
		status             int
		says               string
	}{
		{"", "", "Bearer " + l.Token(), 200, ""},
		{"localhost:8080", "", "bearer " + l.Token(), 200, ""},
		{"[::1]:8080", "http://" + at, "Bearer " + l.Token(), 200, ""},
		{"", "", "", 401, "`Authorization: Bearer TOKEN`"},
		{"", "", "Bearer x", 401, "the token that the server printed"},
		{"", "", "Basic " + l.Token(), 401, "token required"},
		{"evil.example", "", "Bearer " + l.Token(), 403, `Host "evil.example" is not a name of this server`},
		{"", "http://evil.example", "Bearer " + l.Token(), 403, `Origin "http://evil.example" is another site`},
		{"", "null", "Bearer " + l.Token(), 403, `Origin "null" is another site`},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+at+"/v1", nil)
		require.NoError(t, err)
		r.Host = tt.host
		if tt.origin != "" {
			r.Header.Set("Origin", tt.origin)
		}
		if tt.auth != "" {
			r.Header.Set("Authorization", tt.auth)
		}
		resp, err := client.Do(r)
		require.NoError(t, err)
		assert.Equal(t, tt.status, resp.StatusCode, "%+v", tt)
		if tt.status == http.StatusUnauthorized {
			assert.Equal(t, `Bearer realm="tidepool"`, resp.Header.Get("WWW-Authenticate"))
		}
		if tt.says != "" {
			var p Problem
			require.NoError(t, json.NewDecoder(resp.Body).Decode(&p))
			assert.Contains(t, p.Detail, tt.says)
		}
		require.NoError(t, resp.Body.Close())
	}
	c := NewClient(Endpoint{URL: "http://" + at, Token: l.Token()}, "A")
	_, err = c.Process(t.Context())
	require.NoError(t, err)
	c.Close()
	client.CloseIdleConnections()
	s.Close()
	require.NoError(t, <-ended)
}

// TestUnauthenticatedClientsDoNotUseUpTheLimit checks that the server disconnects an
// unauthenticated client, so that it takes no authenticated client's place.
func TestUnauthenticatedClientsDoNotUseUpTheLimit(t *testing.T) {
	s := New(Config{Nodes: map[string]control.Operator{}})
	l, err := ListenTCP(t.Context(), "0")
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	defer func() { s.Close(); require.NoError(t, <-done) }()
	ask := func(header string) int {
		c, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() }) // closed only after the last client's request
		require.NoError(t, c.SetDeadline(time.Now().Add(20*time.Second)))
		_, err = fmt.Fprintf(c, "GET /v1 HTTP/1.1\r\nHost: localhost\r\n%s\r\n", header)
		require.NoError(t, err)
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		require.NoError(t, err)
		defer resp.Body.Close()
		return resp.StatusCode
	}
	for range maxClients {
		require.Equal(t, http.StatusUnauthorized, ask(""))
	}
	assert.Equal(t, http.StatusOK, ask("Authorization: Bearer "+l.Token()+"\r\n"))
}
