package internet_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internet"
)

// TestThreeDataCenters tests a program with faults at chosen times. All of it runs in virtual time.
func TestThreeDataCenters(t *testing.T) {
	internet.Test(t, "testdata/three-dc.net", func(t *testing.T, w *internet.World) {
		w.Host("db1").Go(serveLines)
		w.At(10*time.Second, w.Link("r1", "r2").Cut)
		w.At(60*time.Second, w.Host("db1").Crash)
		w.At(70*time.Second, func() { w.Host("db1").Restart(nil) })

		// A client that reconnects loses no line.
		began, said := time.Now(), 0
		var longest time.Duration
		for time.Since(began) < 2*time.Minute {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			conn, err := w.Host("db2").DialContext(ctx, "tcp", "db1:5432")
			cancel()
			if err != nil {
				continue // the host is down, or its program does not listen yet
			}
			for time.Since(began) < 2*time.Minute {
				asked := time.Now()
				require.NoError(t, conn.SetDeadline(asked.Add(5*time.Second)))
				if _, err := fmt.Fprintf(conn, "%d\n", said); err != nil {
					break
				}
				answer, err := bufio.NewReader(conn).ReadString('\n')
				if err != nil {
					break
				}
				assert.Equal(t, fmt.Sprintf("%d\n", said), answer)
				longest = max(longest, time.Since(asked))
				said++
				time.Sleep(100 * time.Millisecond)
			}
			_ = conn.Close()
		}
		t.Logf("%d lines; the slowest answer took %v", said, longest)
		assert.Greater(t, said, 400)
	})
}

// serveLines sends each line back.
func serveLines(h *internet.Host) {
	ln, err := h.Listen("tcp", ":5432")
	if err != nil {
		return
	}
	for {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		go func() {
			_, _ = io.Copy(conn, conn) // the client compares the lines
			_ = conn.Close()
		}()
	}
}

// TestHTTPServer runs an httptest.Server on one host, and an http.Client on another.
func TestHTTPServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := internet.Start(t, "link server client delay 30ms rate 10mbit")
		server := httptest.NewUnstartedServer(http.FileServer(http.Dir("testdata")))
		require.NoError(t, server.Listener.Close())
		var err error
		server.Listener, err = w.Host("server").Listen("tcp", ":80")
		require.NoError(t, err)
		server.Start()
		defer server.Close()

		client := http.Client{Transport: &http.Transport{DialContext: w.Host("client").DialContext}}
		defer client.CloseIdleConnections()
		began := time.Now()
		response, err := client.Get("http://server/three-dc.net")
		require.NoError(t, err)
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		assert.Contains(t, string(body), "link db1 r1")
		assert.InDelta(t, 120*time.Millisecond, time.Since(began), 1e7, "two round trips")
	})
}

// TestNames dials hosts by name: hosts know each other's names and addresses.
func TestNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := internet.Start(t, "link a b")
		pc, err := w.Host("b").ListenPacket("udp", ":53")
		require.NoError(t, err)
		defer pc.Close()
		conn, err := w.Host("a").Dial("udp", "b:53")
		require.NoError(t, err)
		defer conn.Close()
		_, err = conn.Write([]byte("who"))
		require.NoError(t, err)
		buf := make([]byte, 10)
		n, from, err := pc.ReadFrom(buf)
		require.NoError(t, err)
		assert.Equal(t, "who", string(buf[:n]))
		assert.Equal(t, w.Host("a").Addrs()[0].String(), from.(*net.UDPAddr).IP.String())
		_, err = w.Host("a").Dial("udp", "c:53")
		var unknown *net.DNSError
		require.ErrorAs(t, err, &unknown)
		assert.True(t, unknown.IsNotFound)
	})
}
