package node

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/control"
)

// Removing an address ends its RCP connections and listeners, and no others.
func TestRemovingAnAddressEndsRCP(t *testing.T) {
	var textA string
	a, b := nodesWithTwoLinks(t, &textA)
	everywhere := netip.MustParseAddrPort("0.0.0.0:9000")
	l, err := b.RCP.Listen(everywhere, 0, quick)
	require.NoError(t, err)
	dial := func(to string) *RCPConn {
		c, err := a.RCP.Dial(t.Context(), netip.AddrPort{}, netip.MustParseAddrPort(to), quick)
		require.NoError(t, err)
		return c
	}
	stays := dial("10.0.0.2:9000")
	serverStays, err := l.AcceptRCP()
	require.NoError(t, err)
	goes := dial("10.1.0.2:9000")
	listens, err := a.RCP.Listen(netip.MustParseAddrPort("10.1.0.1:90"), 0, quick)
	require.NoError(t, err)

	textA = strings.Replace(textA, "if1 10.1.0.1/24", "if1 10.1.0.7/24", 1)
	want := []string{
		"rcp 10.1.0.1:90, listening", fmt.Sprintf("rcp %v to 10.1.0.2:9000", goes.LocalAddr()),
	}
	try, err := a.Reload(control.Reload{Try: true}, nil)
	require.NoError(t, err)
	assert.ElementsMatch(t, want, try.Ended)
	_, err = goes.Write([]byte("a dry run changes nothing"))
	require.NoError(t, err)

	assert.ElementsMatch(t, want, reload(t, a).Ended)
	_, err = goes.Read(make([]byte, 1))
	require.ErrorIs(t, err, syscall.EADDRNOTAVAIL)
	require.ErrorContains(t, err, "local address removed")
	_, err = goes.Write([]byte("x"))
	require.ErrorIs(t, err, syscall.EADDRNOTAVAIL)
	_, err = listens.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
	require.ErrorIs(t, listens.Close(), net.ErrClosed)

	t.Log("# sockets with another address, or any, stay open, and the ports are free")
	_, err = stays.Write([]byte("still open"))
	require.NoError(t, err)
	_, err = io.ReadFull(serverStays, make([]byte, 10))
	require.NoError(t, err)
	u, err := a.Packets.Listen(netip.MustParseAddrPort("0.0.0.0:90"))
	require.NoError(t, err)
	require.NoError(t, u.Close())
}
