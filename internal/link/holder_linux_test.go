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

// TestWhoHasAPort is told with the process, also where one of both is bound to every address.
func TestWhoHasAPort(t *testing.T) {
	for _, own := range []string{"127.0.0.1:0", "0.0.0.0:0"} {
		c, err := net.ListenPacket("udp4", own)
		require.NoError(t, err)
		defer c.Close()
		at := netip.MustParseAddrPort(c.LocalAddr().String())
		port := at.Port()
		us := "process " + strconv.Itoa(os.Getpid()) + " (" + os.Args[0]
		for _, asked := range []string{"127.0.0.1", "0.0.0.0"} {
			addr := netip.AddrPortFrom(netip.MustParseAddr(asked), port)
			assert.Contains(t, holder(addr), us, "%s asked for %s", own, asked)
		}
		if !at.Addr().IsUnspecified() {
			assert.NotContains(t, holder(netip.AddrPortFrom(netip.MustParseAddr("127.0.0.2"), port)), us)
		}
		_, err = Open(Config{
			Host: "127.0.0.1", Port: port, Offload: OffloadPlain, Interfaces: []Interface{{Name: "x"}},
		})
		var bind *BindError
		require.ErrorAs(t, err, &bind)
		assert.Contains(t, bind.Advice(), "a port that is free; "+us)
		require.NoError(t, c.Close())
		assert.NotContains(t, holder(netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port)), us)
	}
	_, ok := kernelAddr("local_address")
	assert.False(t, ok)
}
