package internet

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var errInjected = errors.New("injected")

// injectedIn asserts that the test's error is returned as package net would return it.
func injectedIn(t *testing.T, err error, op, network string) {
	t.Helper()
	var e *net.OpError
	require.ErrorAs(t, err, &e)
	require.ErrorIs(t, err, errInjected)
	assert.Equal(t, op, e.Op)
	assert.Equal(t, network, e.Net)
}

// Connections over a network behave as the Conn of testing/nettest (go.dev/issue/77362).
func TestInjectedErrorsOfConn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := Start(t, "link a b delay 5ms")
		a, b := w.NewConnPair("a", "b")
		buf := make([]byte, 10)
		assert.Same(t, b, a.Peer())
		assert.False(t, a.CanRead())

		time.AfterFunc(time.Second, func() { a.SetReadError(errInjected) })
		began := time.Now()
		_, err := a.Read(buf) // the call waits
		injectedIn(t, err, "read", "tcp")
		assert.Equal(t, time.Second, time.Since(began))
		assert.True(t, a.CanRead())
		_, err = a.Read(buf)
		injectedIn(t, err, "read", "tcp")
		_, err = b.Write([]byte("later"))
		require.NoError(t, err)
		time.Sleep(time.Second)
		n, err := a.Read(buf)
		require.NoError(t, err)
		assert.Equal(t, "later", string(buf[:n]))
		_, err = a.Read(buf)
		injectedIn(t, err, "read", "tcp")
		require.NoError(t, a.SetReadDeadline(time.Now().Add(time.Second)))
		a.SetReadError(nil)
		began = time.Now()
		_, err = a.Read(buf)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded, "the program's deadline is kept")
		assert.Equal(t, time.Second, time.Since(began))
		require.NoError(t, a.SetReadDeadline(time.Time{}))

		time.AfterFunc(time.Second, func() { a.SetWriteError(errInjected) })
		_, err = a.Write(make([]byte, 10<<20)) // the call waits, because b does not read
		injectedIn(t, err, "write", "tcp")
		a.SetWriteError(nil)
		go func() { _, _ = io.Copy(io.Discard, b) }()
		_, err = a.Write([]byte("again"))
		require.NoError(t, err)

		b.SetCloseError(errInjected)
		assert.False(t, b.IsClosed())
		require.NoError(t, b.CloseWrite())
		time.Sleep(time.Second)
		a.SetReadError(errInjected)
		_, err = a.Read(buf)
		require.ErrorIs(t, err, io.EOF, "before the error")
		require.NoError(t, a.Close())
		injectedIn(t, b.Close(), "close", "tcp")
		assert.True(t, a.IsClosed() && b.IsClosed())
	})
}

// A test that used nettest.NewListener and httptest.Server, with only its first line changed.
func TestNewListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		li := Start(t, "link server client delay 20ms").NewListener("server", "client")
		server := &httptest.Server{Listener: li, Config: &http.Server{
			Handler: http.NotFoundHandler(),
		}}
		server.Start()
		defer server.Close()
		client := server.Client()
		client.Transport.(*http.Transport).DialContext = li.DialContext
		began := time.Now()
		answer, err := client.Get(server.URL)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		assert.Equal(t, http.StatusNotFound, answer.StatusCode)
		assert.InDelta(t, 80*time.Millisecond, time.Since(began), 1e6)
	})
	synctest.Test(t, func(t *testing.T) {
		li := Start(t, "link server client").NewListener("server", "client")
		time.AfterFunc(time.Second, func() { li.SetAcceptError(errInjected) })
		_, err := li.Accept()
		injectedIn(t, err, "accept", "tcp")
		li.SetAcceptError(nil)
		c := li.NewConn()
		s, err := li.Accept()
		require.NoError(t, err)
		require.NoError(t, c.Close())
		require.NoError(t, s.Close())
		li.SetCloseError(errInjected)
		injectedIn(t, li.Close(), "close", "tcp")
		_, err = li.Accept()
		require.ErrorIs(t, err, net.ErrClosed)
	})
}

// A World replaces a nettest.PacketNet.
func TestNewConn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pnet := Start(t, "link a b delay 5ms")
		addr := func(text string) net.Addr {
			return net.UDPAddrFromAddrPort(netip.MustParseAddrPort(text))
		}
		a, err := pnet.NewConn(addr("10.0.0.1:1000"))
		require.NoError(t, err)
		_, err = pnet.NewConn(addr("10.0.0.1:1000"))
		require.ErrorContains(t, err, "port in use")
		_, err = pnet.NewConn(addr("10.0.0.9:1000"))
		require.ErrorContains(t, err, "no host has this address")
		b, err := pnet.NewConn(addr("10.0.0.2:2000"))
		require.NoError(t, err)
		buf := make([]byte, 10)
		_, err = a.WriteTo([]byte("hello"), b.LocalAddr())
		require.NoError(t, err)
		n, from, err := b.ReadFrom(buf)
		require.NoError(t, err)
		assert.Equal(t, "hello", string(buf[:n]))
		assert.Equal(t, "10.0.0.1:1000", from.String())

		time.AfterFunc(time.Second, func() { b.SetReadError(errInjected) })
		_, _, err = b.ReadFrom(buf)
		injectedIn(t, err, "read", "udp")
		b.SetWriteError(errInjected)
		_, err = b.WriteTo([]byte("x"), a.LocalAddr())
		injectedIn(t, err, "write", "udp")
		a.SetCloseError(errInjected)
		injectedIn(t, a.Close(), "close", "udp")
		require.NoError(t, b.Close())
		assert.True(t, a.IsClosed() && b.IsClosed())
	})
}
