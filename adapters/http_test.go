package adapters

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internet"
)

// page is the page that the web server serves. It does not fit in the initial window.
var page = bytes.Repeat([]byte("a line of the page\n"), 10_000)

// web is the program of a web server.
func web(protocols *http.Protocols) func(*internet.Host) {
	return func(h *internet.Host) {
		ln, err := h.Listen("tcp", ":80")
		if err != nil {
			return
		}
		mux := http.NewServeMux()
		mux.HandleFunc("/page", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(page) // the client compares
		})
		mux.HandleFunc("/never", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		s := http.Server{Handler: mux, Protocols: protocols}
		_ = s.Serve(ln) // until the host crashes
		_ = s.Close()
	}
}

func get(ctx context.Context, c *http.Client, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := c.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return io.ReadAll(response.Body)
}

// Each protocol transfers pages over a lossy network. A server that crashes leaves half-open
// connections. HTTP/2 detects them by its pings, HTTP/1.1 by the deadline of the request. When the
// server is back, both connect again without an error.
func TestHTTP(t *testing.T) {
	http1, http2 := new(http.Protocols), new(http.Protocols)
	http1.SetHTTP1(true)
	http2.SetUnencryptedHTTP2(true)
	for name, row := range map[string]struct {
		protocols *http.Protocols
		noticed   time.Duration
	}{
		"1.1": {http1, time.Minute},
		"2":   {http2, 15 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			internet.Test(t, lossy, func(t *testing.T, w *internet.World) {
				server := w.Host("server")
				server.Go(web(row.protocols))
				transport := &http.Transport{
					DialContext: w.Host("client").DialContext, Protocols: row.protocols,
					HTTP2: &http.HTTP2Config{SendPingTimeout: 10 * time.Second, PingTimeout: 5 * time.Second},
				}
				defer transport.CloseIdleConnections()
				client := &http.Client{Transport: transport}
				var all sync.WaitGroup
				for range 8 {
					all.Go(func() {
						body, err := get(within(t, time.Minute), client, "http://server/page")
						assert.NoError(t, err)
						assert.True(t, bytes.Equal(page, body))
					})
				}
				all.Wait()

				time.AfterFunc(time.Second, server.Crash)
				began := time.Now()
				_, err := get(within(t, time.Minute), client, "http://server/never")
				require.Error(t, err)
				assert.InDelta(t, row.noticed, time.Since(began), 2e9)

				server.Restart(nil)
				body, err := get(within(t, time.Minute), client, "http://server/page")
				require.NoError(t, err)
				assert.Len(t, body, len(page))
			})
		})
	}
}
