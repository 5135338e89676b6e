package link

import (
	"math/rand/v2"
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/buffer"
)

// The kernel reports an ICMP error for a port without a socket, and the device finds the neighbor
// that it concerns. The other neighbor is not affected and receives everything.
func TestICMPErrorFindsTheNeighbor(t *testing.T) {
	// All of 127.0.0.0/8 is local, but unused. IPv6 has only one loopback address, so its test uses
	// another port.
	t.Run("IPv4", func(t *testing.T) { refusalBy(t, "127.0.0.1", "127.77.0.99") })
	t.Run("IPv6", func(t *testing.T) { refusalBy(t, "::1", "::1") })
}

func refusalBy(t *testing.T, host, nowhere string) {
	t.Helper()
	peer, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(host)})
	require.NoError(t, err)
	defer peer.Close()
	at := netip.AddrPortFrom(netip.MustParseAddr(host), peer.LocalAddr().(*net.UDPAddr).AddrPort().Port())
	d := open(t, Config{Host: host, Interfaces: []Interface{{Name: "if0", Neighbors: []Neighbor{
		{Addr: netip.AddrFrom4(addrB), Host: at.Addr().String(), Port: at.Port()},
		{Addr: netip.AddrFrom4(addrC), Host: nowhere, Port: 9},
	}}}})
	r := rand.New(rand.NewPCG(1, 1))
	for range 20 {
		write(t, d, train(r, 0, addrC, 80), train(r, 0, addrB, 80))
	}
	frames := make([]buffer.Frame, 4)
	eventually(t, func() bool {
		_, _ = d.ReadBatch(frames)
		d.ICMPErrors()
		return d.Neighbors(0)[1].Refused > 0
	}, "the refusal")
	there, absent := d.Neighbors(0)[0], d.Neighbors(0)[1]
	assert.Zero(t, there.Refused)
	assert.Equal(t, []uint64{20, 20}, []uint64{there.Sent, absent.Sent})
	buf := make([]byte, 100)
	for range 20 {
		_, err := peer.Read(buf)
		require.NoError(t, err)
	}
	assert.Positive(t, d.Socket().Absent)
	assert.False(t, d.ICMPErrors(), "reported once")

	_, err = peer.WriteToUDPAddrPort([]byte("here"), d.Info().Local)
	require.NoError(t, err)
	receive(t, d, 1)
	assert.Equal(t, uint64(1), d.Neighbors(0)[0].Heard)
	assert.Zero(t, d.Neighbors(0)[1].Heard)
}
