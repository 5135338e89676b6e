package tidepool_test

import (
	"context"
	"net"
	"net/netip"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool"
)

// A Dial that cannot be sends nothing.
func TestADialThatCannotBeIsSilent(t *testing.T) {
	wire, end := tidepool.Pipe(0)
	n := open(t, host(tidepool.Config{}, "10.0.0.1/24", "10.0.0.2", end))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := n.DialContext(ctx, "tcp", "10.0.0.2:80")
	require.ErrorIs(t, err, context.Canceled)
	for _, no := range []string{
		"127.0.0.1", "224.0.0.1", "255.255.255.255", "0.1.2.3", "240.0.0.1", "10.0.0.255", "10.0.0.0",
	} {
		_, err := n.Dial("tcp", no+":80")
		require.ErrorIs(t, err, syscall.ENETUNREACH, no)
	}
	u, err := n.Dial("udp", "10.0.0.2:53")
	require.NoError(t, err)
	_, err = u.Write([]byte("first"))
	require.NoError(t, err)
	packet := make([]byte, 1500)
	_, err = wire.Read(packet)
	require.NoError(t, err)
	assert.Equal(t, byte(syscall.IPPROTO_UDP), packet[9], "nothing was sent before")
}

func TestAListenerIsOnTheNode(t *testing.T) {
	a, _ := pair(t, tidepool.Config{})
	_, err := a.Listen("tcp", "10.9.9.9:80")
	require.ErrorIs(t, err, syscall.EADDRNOTAVAIL)
	l, err := a.ListenTCP(netip.AddrPortFrom(netip.Addr{}, 80))
	require.NoError(t, err)
	_, err = a.Listen("tcp", "10.0.0.1:80")
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	require.NoError(t, l.Close())
	err = l.Close()
	require.ErrorIs(t, err, net.ErrClosed)
	assert.ErrorContains(t, err, "close tcp")
}
