package node

import (
	"net/netip"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/udp"
)

// RFC 1112 §6 and §7: multicast and broadcast work over UDP links.
func TestGroupsAndBroadcastsOverUDPLinks(t *testing.T) {
	a, b, _ := line3(t, Config{})
	group := netip.MustParseAddr("224.0.0.9")
	to := netip.MustParseAddrPort("224.0.0.9:520")
	receiver, sender := listenPacket(t, b, "0.0.0.0:520"), listenPacket(t, a, "0.0.0.0:520")
	require.NoError(t, receiver.Join("if0", group))
	require.ErrorIs(t, receiver.Join("if0", group), syscall.EADDRINUSE)
	require.ErrorIs(t, receiver.Join("if9", group), control.ErrNoSuchInterface)
	require.ErrorIs(t, receiver.Leave("if1", group), syscall.EADDRNOTAVAIL)
	require.ErrorIs(t, receiver.Join("if0", netip.MustParseAddr("10.0.0.9")), syscall.EINVAL)
	require.NoError(t, sender.SetOutlet("if0"))
	_, err := sender.WriteToAddrPort([]byte("routes"), to)
	require.NoError(t, err)
	p := make([]byte, 100)
	n, from, err := receiver.ReadFromAddrPort(p)
	require.NoError(t, err)
	assert.Equal(t, "10.0.0.1:520 routes", from.String()+" "+string(p[:n]))

	all := netip.MustParseAddrPort("255.255.255.255:520")
	_, err = sender.WriteToAddrPort([]byte("all"), all)
	require.ErrorIs(t, err, syscall.EACCES)
	require.NoError(t, sender.SetOptions(func(o *udp.Options) { o.Broadcast = true }))
	require.NoError(t, sender.SetOptions(func(o *udp.Options) {
		assert.Equal(t, udp.Options{Broadcast: true, Outlet: 1}, *o)
	}))
	_, err = sender.WriteToAddrPort([]byte("all"), all)
	require.NoError(t, err)
	n, _, err = receiver.ReadFromAddrPort(p)
	require.NoError(t, err)
	assert.Equal(t, "all", string(p[:n]))
	require.NoError(t, sender.Close())
	require.Error(t, sender.SetOutlet(""))
}
