package services_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/operator"
	"github.com/tidepool-net/tidepool/internal/operator/operatortest"
	"github.com/tidepool-net/tidepool/internal/services"
)

func fetchPage(t *testing.T, n *operator.Node, req control.Fetch) control.Page {
	t.Helper()
	page := testenv.Ask(t, n, req)
	assert.Positive(t, page.Seconds)
	return page
}

func TestFrontPage(t *testing.T) {
	a, b := twoNodes(t)
	said := make(chan string, 10)
	stop := b.Node.Watchers.Watch(func(e control.Event) {
		if m, ok := e.(control.Message); ok {
			said <- m.Text
		}
	})
	defer stop()
	sock := testenv.Ask(t, b, control.Serve{Port: 80})
	assert.Equal(t, "LISTEN", sock.State)
	page := fetchPage(t, a, control.Fetch{URL: "10.0.0.2"})
	assert.Equal(t, 200, page.Code)
	assert.Equal(t, "200 OK", page.Status)
	assert.Equal(t, "text/html; charset=utf-8", page.Type)
	assert.Equal(t, int64(len(page.Body)), page.Bytes)
	assert.Contains(t, string(page.Body), "<h1>B</h1>")
	assert.Contains(t, string(page.Body), "You are 10.0.0.1:")
	assert.Contains(t, string(page.Body), "<li>if0 10.0.0.2/24</li>")
	assert.Regexp(t, fmt.Sprintf(`^serve 80: 10\.0\.0\.1:\d+ GET /: 200, %d bytes$`, page.Bytes), <-said)
	page = fetchPage(t, a, control.Fetch{URL: "http://10.0.0.2:80/missing"})
	assert.Equal(t, 404, page.Code)
	assert.Contains(t, <-said, "GET /missing: 404, ")
	page = fetchPage(t, b, control.Fetch{URL: "http://10.0.0.2/"})
	assert.Equal(t, 200, page.Code, "from itself")

	_, err := control.Ask(t.Context(), b, control.Serve{Port: 80})
	require.ErrorIs(t, err, control.ErrPortInUse)
	testenv.Ask(t, b, control.Close{SID: sock.SID})
	_, err = control.Ask(t.Context(), a, control.Fetch{URL: "10.0.0.2"})
	require.ErrorIs(t, err, control.ErrRefused)
	assert.EqualError(t, err, "fetch 10.0.0.2: connection refused")
}

// RFC 6874 §2: the zone of an address in a URL is escaped. It is also accepted as people write it.
func TestAPageOverIPv6(t *testing.T) {
	a, b := operatortest.TwoIPv6(t, node.Config{})
	sock := testenv.Ask(t, b, control.Serve{Port: 80})
	assert.Equal(t, "[::]:80", sock.Local.String())
	assert.Equal(t, "[::]:0", sock.Remote.String())
	for _, url := range []string{"http://[2001:db8::2]/", "[2001:db8::2]:80", "http://[fe80::2%25if0]/", "[fe80::2%if0]:80/"} {
		page := fetchPage(t, a, control.Fetch{URL: url})
		assert.Equal(t, 200, page.Code)
		assert.Contains(t, string(page.Body), "<li>if0 2001:db8::2/64</li>")
	}
}

func TestFilesOfAFolder(t *testing.T) {
	a, b := twoNodes(t)
	dir := t.TempDir()
	want := bytes.Repeat([]byte("tidepool"), 300_000)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "big.bin"), want, 0o644))
	outside := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(outside, []byte("secret"), 0o644))
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "way-out")))
	testenv.Ask(t, b, control.Serve{Port: 8080, Dir: dir})
	const at = "http://10.0.0.2:8080/"

	page := fetchPage(t, a, control.Fetch{URL: at})
	assert.Contains(t, string(page.Body), "big.bin")
	page = fetchPage(t, a, control.Fetch{URL: at + "big.bin"})
	assert.Equal(t, int64(len(want)), page.Bytes)
	assert.True(t, bytes.Equal(want[:control.MaxPage], page.Body), "its beginning")
	target := filepath.Join(t.TempDir(), "copy")
	page = fetchPage(t, a, control.Fetch{URL: at + "big.bin", Path: target})
	assert.Empty(t, page.Body)
	got, err := os.ReadFile(target)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(want, got))
	for _, path := range []string{"way-out", "../" + filepath.Base(outside), "%2e%2e/secret"} {
		page = fetchPage(t, a, control.Fetch{URL: at + path})
		assert.GreaterOrEqual(t, page.Code, 400, path)
		assert.NotContains(t, string(page.Body), "secret\n", path)
	}

	_, err = control.Ask(t.Context(), b, control.Serve{Port: 81, Dir: dir + "/none"})
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = control.Ask(t.Context(), a, control.Fetch{URL: at, Path: dir})
	assert.ErrorContains(t, err, "not a regular file")
}

func TestFetchErrors(t *testing.T) {
	a, b := twoNodes(t)
	for _, url := range []string{
		"", "https://10.0.0.2/", "http://example.org:0/", "10.0.0.2:0", "10.0.0.2:http", "::1", "%zz",
		"224.0.0.1", "http://[::ffff:10.0.0.2]/", "ftp://10.0.0.2",
	} {
		_, err := control.Ask(t.Context(), a, control.Fetch{URL: url})
		require.ErrorIs(t, err, control.ErrUsage, url)
	}
	_, err := control.Ask(t.Context(), a, control.Fetch{URL: "10.9.9.9"})
	require.ErrorIs(t, err, control.ErrUnreachable)

	// One server redirects to another network, and another server never answers.
	l, err := b.Node.TCP.Listen(netip.MustParseAddrPort("0.0.0.0:80"), 0)
	require.NoError(t, err)
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = http.ReadRequest(bufio.NewReader(c))
		_, _ = io.WriteString(c, "HTTP/1.1 302 Found\r\nLocation: http://example.org:0/\r\n"+
			"Content-Length: 0\r\n\r\n")
	}()
	_, err = control.Ask(t.Context(), a, control.Fetch{URL: "10.0.0.2"})
	require.ErrorIs(t, err, control.ErrUsage)
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		c, err := l.Accept()
		if err == nil {
			_, _ = http.ReadRequest(bufio.NewReader(c))
			cancel(syscall.ECANCELED)
		}
	}()
	_, err = control.Ask(ctx, a, control.Fetch{URL: "10.0.0.2"})
	require.ErrorIs(t, err, syscall.ECANCELED)
}

// Connections beyond the server's limit wait until another closes.
func TestServerConnectionLimit(t *testing.T) {
	a, b := twoNodes(t)
	l, err := b.Node.TCP.Listen(netip.MustParseAddrPort("0.0.0.0:80"), 0)
	require.NoError(t, err)
	few := services.FewAtATime(l, 1)
	accepted := make(chan net.Conn)
	done := make(chan error, 1)
	go func() {
		for {
			c, err := few.Accept()
			if err != nil {
				done <- err
				return
			}
			accepted <- c
		}
	}()
	at := netip.MustParseAddrPort("10.0.0.2:80")
	for range 2 {
		c, err := a.Node.TCP.Dial(t.Context(), at)
		require.NoError(t, err)
		defer c.Close()
	}
	first := <-accepted
	select {
	case <-accepted:
		assert.Fail(t, "there is no room for the second")
	default:
	}
	require.NoError(t, first.Close())
	_ = first.Close() // net/http sometimes closes twice
	second := <-accepted
	require.NoError(t, l.Close())
	require.ErrorIs(t, <-done, net.ErrClosed)
	require.NoError(t, second.Close())
}

// Clients that connect and send nothing do not block others: the server closes the oldest idle
// connection.
func TestSilentClientsDoNotBlockNewClients(t *testing.T) {
	a, b := twoNodes(t)
	testenv.Ask(t, b, control.Serve{Port: 80})
	to := netip.MustParseAddrPort("10.0.0.2:80")
	var silent []net.Conn
	for range services.MaxServed + 10 {
		c, err := a.Node.TCP.Dial(t.Context(), to)
		require.NoError(t, err)
		silent = append(silent, c)
	}
	ctx, cancel := context.WithTimeout(t.Context(), services.HeaderTimeout*2/3)
	defer cancel()
	page, err := control.Ask(ctx, a, control.Fetch{URL: "10.0.0.2"})
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, page.Code)
	_, err = silent[0].Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
}
