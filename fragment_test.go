package tidepool_test

import (
	"bytes"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool"
)

// sized is n bytes that differ.
func sized(n int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(i ^ i>>8)
	}
	return p
}

// What net.PacketConn's users expect: a datagram of any length that UDP has, both
// ways, over a link that takes 1,400 bytes at a time, and EMSGSIZE for more.
func TestDatagramsOfAnyLength(t *testing.T) {
	a, b := pair(t, tidepool.Config{})
	server, err := a.ListenPacket("udp", ":53")
	require.NoError(t, err)
	client, err := b.ListenPacket("udp", ":0")
	require.NoError(t, err)
	to := net.UDPAddrFromAddrPort(netip.MustParseAddrPort("10.0.0.1:53"))
	p := make([]byte, 70_000)
	for _, c := range []net.PacketConn{server, client} {
		require.NoError(t, c.SetDeadline(time.Now().Add(time.Minute)))
	}
	for _, n := range []int{0, 1372, 1373, 9000, 65507} {
		want := sized(n)
		k, err := client.WriteTo(want, to)
		require.NoError(t, err)
		assert.Equal(t, n, k)
		k, from, err := server.ReadFrom(p)
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, p[:k]), "%d bytes", n)
		_, err = server.WriteTo(p[:k], from)
		require.NoError(t, err)
		k, _, err = client.ReadFrom(p)
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, p[:k]), "%d bytes back", n)
	}
	_, err = client.WriteTo(sized(65508), to)
	assert.ErrorIs(t, err, syscall.EMSGSIZE)
}

// A socket of an IP protocol sends packets of any length, too (RFC 791 §3.2).
func TestPacketsOfAnyLength(t *testing.T) {
	const ospf = "ip4:89"
	a, b := pair(t, tidepool.Config{})
	in, err := a.ListenPacket(ospf, "")
	require.NoError(t, err)
	out, err := b.ListenPacket(ospf, "")
	require.NoError(t, err)
	require.NoError(t, in.SetDeadline(time.Now().Add(time.Minute)))
	to := &net.IPAddr{IP: net.IPv4(10, 0, 0, 1)}
	p := make([]byte, 70_000)
	for _, n := range []int{1380, 1381, 9000, 65515} {
		want := sized(n)
		_, err = out.WriteTo(want, to)
		require.NoError(t, err)
		k, _, err := in.ReadFrom(p)
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, p[:k]), "%d bytes", n)
	}
	_, err = out.WriteTo(sized(65516), to)
	assert.ErrorIs(t, err, syscall.EMSGSIZE)
}

// A socket that permits no fragments hears of links that are too narrow, its own at
// once (RFC 1191 §3).
func TestDontFragment(t *testing.T) {
	a, b := pair(t, tidepool.Config{})
	server, err := a.ListenPacket("udp", ":53")
	require.NoError(t, err)
	require.NoError(t, server.SetDeadline(time.Now().Add(time.Minute)))
	c, err := b.DialUDP(netip.MustParseAddrPort("10.0.0.1:53"))
	require.NoError(t, err)
	require.NoError(t, c.SetDontFragment(true))
	_, err = c.Write(sized(1373))
	require.ErrorIs(t, err, syscall.EMSGSIZE)
	_, err = c.Write(sized(1372))
	require.NoError(t, err)
	require.NoError(t, c.SetDontFragment(false))
	_, err = c.Write(sized(1373))
	require.NoError(t, err)
	p := make([]byte, 2000)
	for _, want := range []int{1372, 1373} {
		n, _, err := server.ReadFrom(p)
		require.NoError(t, err)
		assert.Equal(t, want, n)
	}
}

// One that was dialed learns how long a datagram may be from the router that could not
// pass a longer one on (RFC 1191 §4).
func TestPathMTU(t *testing.T) {
	ax, bx := tidepool.Pipe(0)
	by, cy := tidepool.Pipe(0)
	a := open(t, host(tidepool.Config{}, "10.0.0.1/24", "10.0.0.2", ax))
	open(t, tidepool.Config{Router: true, Interfaces: []tidepool.Interface{
		{Addr: prefix("10.0.0.2/24"), Link: bx}, {Addr: prefix("10.1.0.1/24"), Link: by, MTU: 576},
	}})
	b := open(t, host(tidepool.Config{}, "10.1.0.2/24", "10.1.0.1", cy))
	server, err := b.ListenPacket("udp", ":53")
	require.NoError(t, err)
	c, err := a.DialUDP(netip.MustParseAddrPort("10.1.0.2:53"))
	require.NoError(t, err)
	require.NoError(t, c.SetDontFragment(true))
	for _, conn := range []net.PacketConn{server, c} {
		require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	}
	mtu, err := c.PathMTU()
	require.NoError(t, err)
	require.Zero(t, mtu)
	_, err = c.Write(sized(1000))
	require.NoError(t, err)
	p := make([]byte, 2000)
	_, err = c.Read(p)
	require.ErrorIs(t, err, syscall.EMSGSIZE)
	mtu, err = c.PathMTU()
	require.NoError(t, err)
	require.Equal(t, 576, mtu)
	_, err = c.Write(sized(mtu - 27))
	require.ErrorIs(t, err, syscall.EMSGSIZE)
	_, err = c.Write(sized(mtu - 28))
	require.NoError(t, err)
	n, _, err := server.ReadFrom(p)
	require.NoError(t, err)
	assert.Equal(t, mtu-28, n)
}

func TestReassemblyThatCannotBe(t *testing.T) {
	for _, bad := range []tidepool.IP{
		{ReassemblyTimeout: -1},
		{ReassemblyTimeout: 3 * time.Minute},
		{ReassemblyBytes: 1000},
	} {
		x, y := tidepool.Pipe(0)
		_, err := tidepool.Open(host(tidepool.Config{IP: bad}, "10.0.0.1/24", "", x))
		assert.ErrorContains(t, err, "IP.Reassembly", "%+v", bad)
		assert.NoError(t, y.Close())
	}
}
