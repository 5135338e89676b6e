package api

import (
	"io"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/control"
)

func mustPrefix(text string) netip.Prefix { return netip.MustParsePrefix(text) }

func mustAddr(text string) netip.Addr { return netip.MustParseAddr(text) }

// door is a server over TCP with a page.
type door struct {
	at, token string
	http      *http.Client
}

func newDoor(t *testing.T) *door {
	t.Helper()
	l, err := ListenTCP(t.Context(), "0")
	require.NoError(t, err)
	s := New(Config{Nodes: map[string]control.Operator{}, Page: fstest.MapFS{
		"index.html": {Data: []byte("<!doctype html>")}, "page.js": {Data: []byte("1")},
		"page.css": {Data: []byte("a{}")}, "page.svg": {Data: []byte("<svg/>")},
	}})
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	d := &door{at: l.Addr().String(), token: l.Token(), http: &http.Client{Transport: &http.Transport{}}}
	t.Cleanup(func() {
		d.http.CloseIdleConnections()
		s.Close()
		require.NoError(t, <-ended)
	})
	return d
}

func (d *door) ask(
	t *testing.T, method, path string, headers map[string]string,
) (status int, body string, head http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+d.at+path, nil)
	require.NoError(t, err)
	for name, value := range headers {
		if name == "Host" {
			r.Host = value
			continue
		}
		r.Header.Set(name, value)
	}
	resp, err := d.http.Do(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(text), resp.Header
}

// TestThePage is for everybody here, and may load nothing from elsewhere.
func TestThePage(t *testing.T) {
	d := newDoor(t)
	for path, as := range map[string]string{
		"/": "text/html; charset=utf-8", "/index.html": "text/html; charset=utf-8",
		"/page.js": "text/javascript; charset=utf-8", "/page.css": "text/css; charset=utf-8",
		"/page.svg": "image/svg+xml",
	} {
		status, body, head := d.ask(t, "GET", path, nil)
		assert.Equal(t, 200, status, path)
		assert.NotEmpty(t, body, path)
		assert.Equal(t, as, head.Get("Content-Type"), path)
		policy := head.Get("Content-Security-Policy")
		assert.Contains(t, policy, "default-src 'none'")
		assert.Contains(t, policy, "frame-ancestors 'none'")
		assert.NotContains(t, policy, "unsafe")
		assert.NotContains(t, policy, "http")
		assert.Equal(t, "nosniff", head.Get("X-Content-Type-Options"))
		assert.Equal(t, "no-referrer", head.Get("Referrer-Policy"))
		status, body, _ = d.ask(t, "GET", path, map[string]string{"If-None-Match": head.Get("ETag")})
		assert.Equal(t, 304, status)
		assert.Empty(t, body)
	}
	status, body, _ := d.ask(t, "GET", "/none", nil)
	assert.Equal(t, 401, status, "what is no file of the page is the API's: %s", body)
	status, _, _ = d.ask(t, "POST", "/", nil)
	assert.Equal(t, 401, status)
	status, body, _ = d.ask(t, "GET", "/", map[string]string{"Host": "evil.example"})
	assert.Equal(t, 403, status, "a name of its own for our address: %s", body)
}

// TestTheSession: the token is good for a cookie, and the cookie for this page alone.
func TestTheSession(t *testing.T) {
	d := newDoor(t)
	other := newDoor(t)
	status, _, head := d.ask(t, "POST", sessionPath, nil)
	assert.Equal(t, 401, status)
	assert.Empty(t, head.Get("Set-Cookie"))
	status, _, head = d.ask(t, "POST", sessionPath, map[string]string{
		"Authorization": "Bearer " + d.token,
	})
	require.Equal(t, 204, status)
	set := head.Get("Set-Cookie")
	assert.Contains(t, set, "; HttpOnly; SameSite=Strict")
	assert.NotContains(t, set, d.token, "who reads the cookie does not have the token")
	cookie, _, _ := strings.Cut(set, ";")
	own := "http://" + d.at
	for _, tt := range []struct {
		method, cookie, origin, site string
		status                       int
		says                         string
	}{
		{"GET", cookie, "", "same-origin", 200, ""},
		{"GET", cookie, own, "", 200, ""},
		{"GET", cookie, "", "", 200, ""},
		{"GET", cookie, "", "none", 200, ""},
		{"POST", cookie, "", "none", 403, "Sec-Fetch-Site is none"},
		{"GET", cookie, "", "same-site", 403, "Sec-Fetch-Site is same-site"},
		{"GET", cookie, "", "cross-site", 403, "not from this page"},
		{"GET", cookie + "x", "", "same-origin", 401, "a browser opens the address"},
		{"GET", "x=y", "", "", 401, "a token is needed"},
		{"POST", cookie, own, "same-origin", 204, ""},
		{"POST", cookie, own, "", 204, ""},
		{"POST", cookie, "", "same-origin", 204, ""},
		{"POST", cookie, "", "", 403, "neither Origin nor Sec-Fetch-Site"},
		{"POST", cookie, "http://" + other.at, "same-site", 403, "is another one"},
		{"POST", cookie, "http://" + other.at, "", 403, "is another one"},
		{"POST", cookie, "null", "", 403, "may not ask"},
		{"POST", cookie, "http://evil.example", "cross-site", 403, "may not ask"},
	} {
		headers := map[string]string{"Cookie": tt.cookie}
		if tt.origin != "" {
			headers["Origin"] = tt.origin
		}
		if tt.site != "" {
			headers["Sec-Fetch-Site"] = tt.site
		}
		path := "/v1"
		if tt.method == "POST" {
			path = sessionPath
		}
		status, body, _ := d.ask(t, tt.method, path, headers)
		assert.Equal(t, tt.status, status, "%+v: %s", tt, body)
		assert.Contains(t, body, tt.says, "%+v", tt)
	}
	status, _, _ = other.ask(t, "GET", "/v1", map[string]string{"Cookie": cookie})
	assert.Equal(t, 401, status, "another server's cookie")
}
