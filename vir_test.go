package tidepool_test

import (
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool"
)

func TestVirErrorsAreTheDocuments(t *testing.T) {
	a, b := pair(t, tidepool.Config{})
	v, ctx := a.Vir(), t.Context()
	var typed tidepool.VirError
	err := v.Listen(9)
	require.ErrorAs(t, err, &typed)
	assert.Equal(t, tidepool.ErrUninitialSocket, typed)
	require.ErrorIs(t, v.Listen(2), tidepool.ErrInvalidSocket)
	s, err := v.Socket()
	require.NoError(t, err)
	require.ErrorIs(t, v.Bind(s, 80), tidepool.ErrInvalidPort)
	require.ErrorIs(t, v.Listen(s), tidepool.ErrUnboundSocket)
	require.NoError(t, v.Bind(s, 5000))
	require.ErrorIs(t, v.Bind(s, 5001), tidepool.ErrBoundedSocket)
	other, err := a.Vir().Socket()
	require.NoError(t, err)
	assert.Equal(t, 4, other, "the same table")
	require.ErrorIs(t, v.Bind(other, 5000), tidepool.ErrUsedPort)
	require.NoError(t, v.Listen(s))
	require.ErrorIs(t, v.ShutDown(s, tidepool.ShutRead), tidepool.ErrServerCannotShutdown)

	w := b.Vir()
	c, err := w.Socket()
	require.NoError(t, err)
	require.NoError(t, w.Connect(ctx, c, netip.AddrPortFrom(a.Addrs()[0], 5000)))
	in, err := v.Accept(ctx, s)
	require.NoError(t, err)
	require.NoError(t, w.ShutDown(c, tidepool.ShutRead))
	_, err = w.Read(ctx, c, make([]byte, 1))
	require.ErrorIs(t, err, tidepool.ErrReadBlock)
	require.NoError(t, w.ShutDown(c, tidepool.ShutWrite))
	_, err = v.Read(ctx, in, make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	require.NoError(t, v.ShutDown(s, tidepool.ShutBoth))
	_, err = v.Accept(ctx, s)
	require.ErrorIs(t, err, tidepool.ErrServerHasClose)
}

// Each constant is the one that the calls return: its text bears the document's name.
func TestVirErrorsByName(t *testing.T) {
	all := map[string]tidepool.VirError{
		"BoundedSocketException":        tidepool.ErrBoundedSocket,
		"DestinationUnreadable":         tidepool.ErrDestinationUnreadable,
		"ErrorTCPStateException":        tidepool.ErrErrorTCPState,
		"InvalidPortException":          tidepool.ErrInvalidPort,
		"InvalidSocketException":        tidepool.ErrInvalidSocket,
		"PortUsedUpException":           tidepool.ErrPortUsedUp,
		"ReadblockException":            tidepool.ErrReadBlock,
		"ServerCannotShutdownException": tidepool.ErrServerCannotShutdown,
		"ServerHasCloseException":       tidepool.ErrServerHasClose,
		"ServerClosedException":         tidepool.ErrServerClosed,
		"SocketUsedUpException":         tidepool.ErrSocketUsedUp,
		"UnboundSocketException":        tidepool.ErrUnboundSocket,
		"UninitialSocketException":      tidepool.ErrUninitialSocket,
		"UsedPortException":             tidepool.ErrUsedPort,
		"WriteBlockException":           tidepool.ErrWriteBlock,
	}
	assert.Len(t, all, 15)
	for name, e := range all {
		assert.True(t, strings.HasPrefix(e.Error(), name+":"), "%s: %v", name, e)
	}
}

// Founding document 004 §7: buffers of 65535 bytes, time-outs from 10 ms.
func TestProfile004(t *testing.T) {
	a, b := pair(t, tidepool.Config{TCP: tidepool.TCP{Profile: "004"}})
	client, _ := dial(t, b, a, "10.0.0.1:80")
	i, err := client.Info()
	require.NoError(t, err)
	assert.Equal(t, 65535, i.SndBuf)
	assert.GreaterOrEqual(t, i.RTO, 10*time.Millisecond)
	assert.Less(t, i.RTO, 200*time.Millisecond, "not the default's minimum")
	x, _ := tidepool.Pipe(0)
	_, err = tidepool.Open(host(
		tidepool.Config{TCP: tidepool.TCP{Profile: "005"}}, "10.0.0.1/24", "", x))
	require.ErrorContains(t, err, "TCP.Profile")
}

// The zero Node has a table that is closed.
func TestVirOfNoNode(t *testing.T) {
	_, err := new(tidepool.Node).Vir().Socket()
	require.ErrorIs(t, err, net.ErrClosed)
}
