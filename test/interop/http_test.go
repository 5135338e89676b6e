//go:build linux

package interop_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// serve runs a Go http.Server on C. It serves a file, and answers an upload with its SHA-256.
func (b *bed) serve(port int, file string) {
	b.t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /file", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, file)
	})
	mux.HandleFunc("PUT /file", func(w http.ResponseWriter, r *http.Request) {
		h := sha256.New()
		if _, err := io.Copy(h, r.Body); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		fmt.Fprint(w, hex.EncodeToString(h.Sum(nil)))
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: patience}
	done := make(chan error, 1)
	l := b.listen(port)
	go func() { done <- server.Serve(l) }()
	b.t.Cleanup(func() {
		assert.NoError(b.t, server.Close())
		assert.ErrorIs(b.t, <-done, http.ErrServerClosed)
	})
}

func TestCurl(t *testing.T) { both(t, testCurl) }

func testCurl(t *testing.T, f family) {
	need(t, "curl")
	for _, loss := range losses {
		t.Run(fmt.Sprintf("%g%%", loss), func(t *testing.T) {
			for _, way := range []string{"GET", "PUT"} {
				t.Run(way, func(t *testing.T) {
					r := &row{peer: "Linux, curl", scenario: way + " with our http.Server", loss: loss}
					f.report(t, r)
					b := newBed(t, f, loss, nil)
					r.bytes = size(loss) / 2
					path, want := b.randomFile("file", r.bytes)
					b.serve(8080, path)
					args := []string{"--silent", "--show-error", "--fail", "-o", b.path("answer")}
					if way == "PUT" {
						args = append(args, "-T", path)
					}
					start := time.Now()
					b.must(b.commandFor(transferTime(r.bytes), "curl",
						append(args, "http://"+f.colon(hostIP, 8080)+"/file")...))
					r.took = time.Since(start)
					if way == "PUT" {
						answer, err := os.ReadFile(b.path("answer"))
						require.NoError(t, err)
						assert.Equal(t, want, string(answer))
					} else {
						assert.Equal(t, want, sumOf(t, b.path("answer")))
					}
				})
			}
		})
	}
}

const nginxConf = `
user root;
worker_processes 1;
pid %[1]s/nginx.pid;
error_log stderr;
events {}
http {
	access_log off;
	client_body_temp_path %[1]s/body;
	proxy_temp_path %[1]s/proxy;
	fastcgi_temp_path %[1]s/fastcgi;
	uwsgi_temp_path %[1]s/uwsgi;
	scgi_temp_path %[1]s/scgi;
	sendfile on;
	server {
		listen %[2]s;
		root %[1]s;
	}
}
`

// nginx serves the test's files in the namespace.
func (b *bed) nginx(limit time.Duration) {
	b.t.Helper()
	conf := b.path("nginx.conf")
	require.NoError(b.t, os.WriteFile(conf, fmt.Appendf(nil, nginxConf, b.dir, b.colon("0.0.0.0", 8080)), 0o644))
	b.start(b.commandFor(limit, "nginx", "-p", b.dir, "-c", conf, "-e", "stderr",
		"-g", "daemon off;"))
	require.NoError(b.t, b.dial(8080).Close(), "nginx is up")
}

// client returns an http.Client whose connections start at C.
func (b *bed) client(limit time.Duration) *http.Client {
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
			to, err := netip.ParseAddrPort(addr)
			if err != nil {
				return nil, err
			}
			return b.c.Node.TCP.Dial(ctx, to)
		},
	}
	b.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: limit}
}

// fetch returns the SHA-256 of a URL's content.
func fetch(c *http.Client, url string) (string, error) {
	answer, err := c.Get(url) //nolint:noctx // the client has a time limit
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s", url, answer.Status)
	}
	h := sha256.New()
	if _, err := io.Copy(h, answer.Body); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func TestNginx(t *testing.T) { both(t, testNginx) }

func testNginx(t *testing.T, f family) {
	need(t, "nginx")
	const parallel = 4
	for _, loss := range losses {
		t.Run(fmt.Sprintf("%g%%", loss), func(t *testing.T) {
			r := &row{
				peer: "Linux, nginx", loss: loss,
				scenario: fmt.Sprintf("GET with our http.Client, %d at a time", parallel),
			}
			f.report(t, r)
			b := newBed(t, f, loss, nil)
			each := size(loss) / 2 / parallel
			limit := transferTime(each * parallel)
			_, want := b.randomFile("file", each)
			b.nginx(limit)
			client := b.client(limit)
			r.bytes = each * parallel
			start := time.Now()
			var wg sync.WaitGroup
			for range parallel {
				wg.Go(func() {
					got, err := fetch(client, "http://"+f.colon(kernelIP, 8080)+"/file")
					assert.NoError(t, err)
					assert.Equal(t, want, got)
				})
			}
			wg.Wait()
			r.took = time.Since(start)
		})
	}
}
