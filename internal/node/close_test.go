package node

import (
	"io"
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/stack"
)

func TestCloseDeliversDataOfClosedConnections(t *testing.T) {
	a, b := twoNodes(t, Config{})
	client, server := connect(t, a, b, "10.0.0.2:80")
	// several windows, but few enough for delivery within the two seconds of Close
	const size = 128 << 10
	_, err := client.Write(make([]byte, size))
	require.NoError(t, err)
	require.NoError(t, client.Close())
	require.NoError(t, a.Close(), "the node closes while data is in flight")
	n, err := io.Copy(io.Discard, server)
	require.NoError(t, err)
	assert.Equal(t, int64(size), n)
}

func TestResetAfterFINKeepsReceivedData(t *testing.T) {
	a, b := twoNodes(t, Config{})
	client, server := connect(t, a, b, "10.0.0.2:80")
	_, err := client.Write(make([]byte, 5000))
	require.NoError(t, err)
	require.NoError(t, client.CloseWrite())
	<-client.delivered.passed()
	client.Abort()
	<-server.ended.passed()
	n, err := io.Copy(io.Discard, server)
	require.NoError(t, err)
	assert.Equal(t, int64(5000), n)
}

// A closed listener leaves no state behind, because a node may run for months.
func TestClosedListenerLeavesNoState(t *testing.T) {
	a, _ := twoNodes(t, Config{})
	for range 3 {
		l, err := a.TCP.Listen(netip.MustParseAddrPort("0.0.0.0:80"), 0)
		require.NoError(t, err)
		require.NoError(t, l.Close())
	}
	require.NoError(t, a.Call(func(*stack.Stack, clock.Time) error {
		assert.Empty(t, a.TCP.listeners)
		return nil
	}))
}

func TestRequestsToAClosedNodeFail(t *testing.T) {
	n := Closed()
	require.ErrorIs(t, n.Forwarders.TakeTCP(nil), net.ErrClosed)
	require.ErrorIs(t, n.Taps.SetVerbose(control.Verbose{}), control.ErrClosed)
	require.ErrorIs(t, n.Devices.Reopen(0), control.ErrClosed)
}
