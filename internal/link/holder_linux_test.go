package link

import (
	"net"
	"net/netip"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestHolderOfAPort finds the process that holds a port, also if the socket's address or the
// requested one is 0.0.0.0.
func TestHolderOfAPort(t *testing.T) {
	for _, own := range []string{"127.0.0.1:0", "0.0.0.0:0"} {
		c, err := net.ListenPacket("udp4", own)
		require.NoError(t, err)
		defer c.Close()
		at := netip.MustParseAddrPort(c.LocalAddr().String())
		port := at.Port()
		us := "process " + strconv.Itoa(os.Getpid()) + " (" + os.Args[0]
		for _, asked := range []string{"127.0.0.1", "0.0.0.0"} {
			addr := netip.AddrPortFrom(netip.MustParseAddr(asked), port)
			assert.Contains(t, Holder("udp", addr), us, "%s asked for %s", own, asked)
		}
		if !at.Addr().IsUnspecified() {
			assert.NotContains(t, Holder("udp", netip.AddrPortFrom(netip.MustParseAddr("127.0.0.2"), port)), us)
		}
		_, err = Open(Config{
			Host: "127.0.0.1", Port: port, Offload: OffloadPlain, Interfaces: []Interface{{Name: "x"}},
		})
		var bind *BindError
		require.ErrorAs(t, err, &bind)
		assert.Contains(t, bind.Advice(), "a free port; "+us)
		require.NoError(t, c.Close())
		assert.NotContains(t, Holder("udp", netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port)), us)
	}
	_, ok := kernelAddr("local_address")
	assert.False(t, ok)
}

// TestListenerOfAPort finds the process that listens on a TCP port, also if one socket serves both
// versions of IP. A connection on that port is not a listener.
func TestListenerOfAPort(t *testing.T) {
	us := "process " + strconv.Itoa(os.Getpid()) + " (" + os.Args[0]
	for _, own := range []string{"127.0.0.1:0", ":0", "[::1]:0"} {
		l, err := net.Listen("tcp", own)
		require.NoError(t, err)
		defer l.Close()
		at := netip.MustParseAddrPort(l.Addr().String())
		c, err := net.Dial("tcp", at.String())
		require.NoError(t, err)
		defer c.Close()
		if at.Addr().IsUnspecified() {
			at = netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), at.Port())
		}
		assert.Contains(t, Holder("tcp", at), us, own)
		assert.Empty(t, Holder("tcp", netip.MustParseAddrPort(c.LocalAddr().String())), own)
	}
	addr, ok := kernelAddr("0000000000000000FFFF00000100007F:13C4")
	assert.True(t, ok)
	assert.Equal(t, "127.0.0.1:5060", addr.String())
}
