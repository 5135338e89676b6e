package udp_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/udp"
)

func TestMembershipsAreCountedAndBounded(t *testing.T) {
	h := newHost(0)
	group := netip.AddrFrom4([4]byte{224, 0, 0, 9})
	a, b := bind(t, h, "0.0.0.0:1"), bind(t, h, "0.0.0.0:2")
	require.NoError(t, a.Join(3, group))
	require.ErrorIs(t, a.Join(3, group), udp.ErrJoined)
	require.NoError(t, b.Join(3, group))
	assert.True(t, h.Joined(3, group))
	assert.False(t, h.Joined(2, group), "another link")
	require.NoError(t, a.Leave(3, group))
	assert.True(t, h.Joined(3, group))
	b.Close()
	assert.False(t, h.Joined(3, group), "a closed socket has left the group")
	require.ErrorIs(t, b.Join(3, group), udp.ErrNotMember)

	for i := range udp.MaxGroups {
		require.NoError(t, a.Join(i, group))
	}
	require.ErrorIs(t, a.Join(99, group), udp.ErrTooManyGroups)
}

// A socket on a group's address receives datagrams to the group. A socket on an address of the host
// does not.
func TestSocketOnAGroupAddress(t *testing.T) {
	h := newHost(0)
	group, host := bind(t, h, "224.0.0.9:520"), bind(t, h, "10.0.0.2:520")
	require.NoError(t, host.Join(0, netip.AddrFrom4([4]byte{224, 0, 0, 9})))
	assert.Equal(t, udp.NoPort, send(h, "10.0.0.1:520", "224.0.0.9:520", "not joined"))
	require.NoError(t, group.Join(0, netip.AddrFrom4([4]byte{224, 0, 0, 9})))
	assert.Equal(t, udp.Delivered, send(h, "10.0.0.1:520", "224.0.0.9:520", "joined"))
	assert.Equal(t, "10.0.0.1:520 joined", take(group))
	assert.Empty(t, take(host))
}
