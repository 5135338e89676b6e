package api

import (
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/netip"
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

// TestThePage checks that every local client gets the page, and that the page may load nothing from
// other hosts.
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

// TestOtherServersReceiveNoSecret checks that the page's requests leave no secret in a browser that
// another server on this machine could receive and use here. A browser sends the cookies of a host
// to all of its ports, and so does Go's cookie jar.
func TestOtherServersReceiveNoSecret(t *testing.T) {
	d := newDoor(t)
	var err error
	d.http.Jar, err = cookiejar.New(nil)
	require.NoError(t, err)
	own := map[string]string{
		"Authorization": "Bearer " + d.token, "Origin": "http://" + d.at, "Sec-Fetch-Site": "same-origin",
	}
	for _, path := range []string{"/", "/page.js", "/v1", "/v1/process"} {
		status, body, _ := d.ask(t, "GET", path, own)
		assert.Equal(t, 200, status, "%s: %s", path, body)
	}
	_, _, _ = d.ask(t, "POST", "/v1/session", own) // an earlier version set a cookie here
	var received string
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		received = r.Header.Get("Cookie")
	}))
	defer other.Close()
	r, err := http.NewRequestWithContext(t.Context(), "GET", other.URL+"/v1", nil)
	require.NoError(t, err)
	resp, err := d.http.Do(r)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	assert.Empty(t, received, "a server on another port received it")
	_, port, err := net.SplitHostPort(d.at)
	require.NoError(t, err)
	d.http.Jar = nil
	for _, cookie := range []string{received, "tidepool-" + port + "=" + d.token, "token=" + d.token} {
		for _, method := range []string{"GET", "POST"} {
			status, body, _ := d.ask(t, method, "/v1/process", map[string]string{
				"Cookie": cookie, "Origin": "http://" + d.at, "Sec-Fetch-Site": "same-origin",
			})
			assert.Equal(t, 401, status, "%s with the cookie %q: %s", method, cookie, body)
		}
	}
}

// TestTheTokenOfThePage checks that a request needs the token in its header and must come from this
// machine.
func TestTheTokenOfThePage(t *testing.T) {
	d := newDoor(t)
	other := newDoor(t)
	for _, tt := range []struct {
		token, origin string
		status        int
		says          string
	}{
		{d.token, "http://" + d.at, 200, ""},
		{d.token, "", 200, ""},
		{d.token, "null", 403, "is another site"},
		{d.token, "http://evil.example", 403, "is another site"},
		{d.token + "x", "http://" + d.at, 401, "in a browser, open the address"},
		{other.token, "http://" + d.at, 401, "token required"},
		{"", "http://" + other.at, 401, "token required"},
	} {
		headers := map[string]string{"Authorization": "Bearer " + tt.token}
		if tt.origin != "" {
			headers["Origin"] = tt.origin
		}
		status, body, head := d.ask(t, "GET", "/v1", headers)
		assert.Equal(t, tt.status, status, "%+v: %s", tt, body)
		assert.Contains(t, body, tt.says, "%+v", tt)
		assert.Empty(t, head.Get("Access-Control-Allow-Origin"))
	}
	status, _, _ := d.ask(t, "GET", "/v1?token="+d.token, nil)
	assert.Equal(t, 401, status, "a token in a URL ends up in logs")
}
