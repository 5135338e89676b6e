package tidepool_test

import (
	"io"
	"net"
	"net/netip"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool"
)

// TestDoors: a service of this machine is reached over the virtual network, and from there back
// by this machine.
func TestDoors(t *testing.T) {
	p, q := tidepool.Pipe(0)
	open := func(addr string, link *tidepool.PipeEnd) *tidepool.Node {
		n, err := tidepool.Open(tidepool.Config{
			Interfaces: []tidepool.Interface{{Addr: netip.MustParsePrefix(addr), Link: link}},
		})
		require.NoError(t, err)
		t.Cleanup(func() { _ = n.Close() })
		return n
	}
	a, b := open("10.0.0.1/24", p), open("10.0.0.2/24", q)
	service, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer service.Close()
	in, err := b.Expose("tcp", 80, service.Addr().String())
	require.NoError(t, err)
	out, err := a.Publish("tcp4", "127.0.0.1:0", "10.0.0.2:80")
	require.NoError(t, err)
	client, err := net.Dial("tcp", out.Addr().String())
	require.NoError(t, err)
	defer client.Close()
	server, err := service.Accept()
	require.NoError(t, err)
	_, err = server.Write([]byte("hello"))
	require.NoError(t, err)
	require.NoError(t, server.Close())
	text, err := io.ReadAll(client)
	require.NoError(t, err)
	assert.Equal(t, "hello", string(text))
	assert.Equal(t, uint64(5), out.Info().Out)
	assert.Equal(t, uint64(5), in.Info().In)
	require.NoError(t, out.Close())
	require.ErrorIs(t, out.Close(), net.ErrClosed)
	require.NoError(t, in.Cut())

	_, err = a.Publish("tcp", service.Addr().String(), "10.0.0.2:80")
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	_, err = a.Publish("tcp", "here:80", "10.0.0.2:80")
	require.ErrorIs(t, err, syscall.EINVAL)
	_, err = a.Publish("sctp", ":0", "10.0.0.2:80")
	require.Error(t, err)
	_, err = a.Expose("sctp", 80, "127.0.0.1:80")
	require.ErrorAs(t, err, new(net.UnknownNetworkError))
	var zero tidepool.Door
	require.ErrorIs(t, zero.Close(), net.ErrClosed)
	require.ErrorIs(t, zero.Cut(), net.ErrClosed)
	assert.Zero(t, zero.Info())
}
