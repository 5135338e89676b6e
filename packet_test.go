package tidepool_test

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool"
)

func listenUDP(t *testing.T, n *tidepool.Node, on string) *tidepool.PacketConn {
	t.Helper()
	c, err := n.ListenUDP(netip.MustParseAddrPort(on))
	require.NoError(t, err)
	require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func receive(t *testing.T, c net.PacketConn) string {
	t.Helper()
	p := make([]byte, 2000)
	n, from, err := c.ReadFrom(p)
	require.NoError(t, err)
	return from.String() + " " + string(p[:n])
}

// RFC 1112 §6.1, §7.1: joining and leaving a host group.
func TestMulticastSockets(t *testing.T) {
	a, b := pair(t, tidepool.Config{})
	group := netip.MustParseAddrPort("239.1.2.3:5000")
	in, out := listenUDP(t, b, "0.0.0.0:5000"), listenUDP(t, a, "0.0.0.0:5000")
	require.NoError(t, in.JoinGroup("if0", group.Addr()))
	require.ErrorIs(t, in.JoinGroup("if0", group.Addr()), syscall.EADDRINUSE)
	require.Error(t, in.JoinGroup("if7", group.Addr()))
	require.ErrorIs(t, in.JoinGroup("if0", netip.MustParseAddr("10.0.0.9")), syscall.EINVAL)
	require.ErrorIs(t, in.LeaveGroup("if0", netip.MustParseAddr("239.9.9.9")), syscall.EADDRNOTAVAIL)

	require.NoError(t, out.SetMulticastInterface("if0"))
	require.NoError(t, out.SetMulticastTTL(3))
	require.NoError(t, out.JoinGroup("if0", group.Addr()))
	_, err := out.WriteToAddrPort([]byte("hello"), group)
	require.NoError(t, err)
	assert.Equal(t, "10.0.0.1:5000 hello", receive(t, in))
	assert.Equal(t, "10.0.0.1:5000 hello", receive(t, out), "its own, as a member")

	require.NoError(t, out.SetMulticastLoopback(false))
	_, err = out.WriteToAddrPort([]byte("others"), group)
	require.NoError(t, err)
	p := make([]byte, 10)
	n, from, err := in.ReadFromAddrPort(p)
	require.NoError(t, err)
	assert.Equal(t, "10.0.0.1:5000 others", from.String()+" "+string(p[:n]))
	_, err = in.WriteToAddrPort([]byte("back"), netip.MustParseAddrPort("10.0.0.1:5000"))
	require.NoError(t, err)
	assert.Equal(t, "10.0.0.2:5000 back", receive(t, out), "only from its group")
	require.NoError(t, in.LeaveGroup("if0", group.Addr()))
	require.NoError(t, in.Close())
	require.ErrorIs(t, in.JoinGroup("if0", group.Addr()), net.ErrClosed)
}

// RFC 1122 §4.1.4: a socket sends broadcasts only after it enables them.
func TestBroadcastSockets(t *testing.T) {
	a, b := pair(t, tidepool.Config{})
	in, out := listenUDP(t, b, "0.0.0.0:5000"), listenUDP(t, a, "10.0.0.1:0")
	for _, to := range []string{"255.255.255.255:5000", "10.0.0.255:5000"} {
		all := netip.MustParseAddrPort(to)
		require.NoError(t, out.SetBroadcast(false))
		_, err := out.WriteToAddrPort([]byte("all"), all)
		require.ErrorIs(t, err, syscall.EACCES)
		require.NoError(t, out.SetBroadcast(true))
		_, err = out.WriteToAddrPort([]byte(to), all)
		require.NoError(t, err)
		assert.Equal(t, out.LocalAddr().String()+" "+to, receive(t, in))
	}
}

// RFC 1122 §4.1.4: packets carry the TTL and the type of service that the sender sets.
func TestDatagramHeaders(t *testing.T) {
	x, y := tidepool.Pipe(0)
	n := open(t, host(tidepool.Config{}, "10.0.0.1/24", "", x))
	c := listenUDP(t, n, "0.0.0.0:9")
	p := make([]byte, 2000)
	for _, want := range []struct{ ttl, tos byte }{{64, 0}, {7, 0xb8}} {
		if want.ttl != 64 {
			require.NoError(t, c.SetTTL(want.ttl))
			require.NoError(t, c.SetTOS(want.tos))
		}
		_, err := c.WriteToAddrPort([]byte("x"), netip.MustParseAddrPort("10.0.0.2:9"))
		require.NoError(t, err)
		_, err = y.Read(p)
		require.NoError(t, err)
		assert.Equal(t, want.ttl, p[8])
		assert.Equal(t, want.tos, p[1])
	}
}

// RFC 1122 §4.1.3.3: on a dialed socket, the next call returns a port unreachable as an error,
// once. A socket that was not dialed may have several peers and ignores it.
func TestRefusedDatagrams(t *testing.T) {
	a, b := pair(t, tidepool.Config{})
	to := netip.MustParseAddrPort("10.0.0.2:5000")
	c, err := a.DialUDP(to)
	require.NoError(t, err)
	require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
	_, err = c.Write([]byte("anybody?"))
	require.NoError(t, err)
	_, err = c.Read(make([]byte, 10))
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	var timeout net.Error
	require.False(t, errors.As(err, &timeout) && timeout.Timeout())

	server := listenUDP(t, b, "0.0.0.0:5000")
	_, err = c.Write([]byte("now?"))
	require.NoError(t, err, "the error is returned once")
	assert.Equal(t, c.LocalAddr().String()+" now?", receive(t, server))

	free := listenUDP(t, a, "0.0.0.0:0")
	_, err = free.WriteToAddrPort([]byte("anybody?"), netip.MustParseAddrPort("10.0.0.2:7"))
	require.NoError(t, err)
	_, err = free.WriteToAddrPort([]byte("hello"), to)
	require.NoError(t, err)
	assert.Contains(t, receive(t, server), " hello")
	require.NoError(t, c.Close())
}

func TestReadBufferLimit(t *testing.T) {
	var clock tidepool.Clock
	a, b := pair(t, tidepool.Config{Clock: &clock})
	u, err := a.ListenUDP(netip.MustParseAddrPort("10.0.0.1:53"))
	require.NoError(t, err)
	for _, size := range []int{-1, 0, 1 << 40} {
		require.ErrorIs(t, u.SetReadBuffer(size), syscall.EINVAL)
	}
	require.NoError(t, u.SetReadBuffer(2048))
	v, err := b.DialUDP(netip.MustParseAddrPort("10.0.0.1:53"))
	require.NoError(t, err)
	for range 20 {
		_, err := v.Write([]byte("x"))
		require.NoError(t, err)
	}
	i, err := u.Info()
	require.NoError(t, err)
	assert.Equal(t, tidepool.PacketInfo{Received: 8, ReceivedBytes: 8, Dropped: 12}, i)
	require.NoError(t, u.SetReadBuffer(1<<20))
	_, err = v.Write([]byte("room again"))
	require.NoError(t, err)
	require.NoError(t, u.Close())
	_, err = v.Write([]byte("nobody"))
	require.NoError(t, err)
	i, err = u.Info()
	require.NoError(t, err)
	assert.EqualValues(t, 9, i.Received)
	i, err = v.Info()
	require.NoError(t, err)
	assert.EqualValues(t, 1, i.Errors)
	require.NoError(t, v.Close())
	_, err = new(tidepool.PacketConn).Info()
	require.ErrorIs(t, err, net.ErrClosed)
	require.ErrorIs(t, new(tidepool.PacketConn).SetReadBuffer(1<<16), net.ErrClosed)
}

// RFC 1122 §3.2.1.3: a node talks to itself over loopback addresses, and sends ICMP errors to
// itself too.
func TestRefusedOnLoopback(t *testing.T) {
	a, _ := pair(t, tidepool.Config{})
	for _, to := range []string{"127.0.0.1:7", "10.0.0.1:7"} {
		c, err := a.DialUDP(netip.MustParseAddrPort(to))
		require.NoError(t, err)
		require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
		_, err = c.Write([]byte("anybody?"))
		require.NoError(t, err)
		_, err = c.Read(make([]byte, 10))
		require.ErrorIs(t, err, syscall.ECONNREFUSED, to)
		require.NoError(t, c.Close())
	}
}

// sized returns n different bytes.
func sized(n int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(i ^ i>>8)
	}
	return p
}

// A datagram of any length that UDP permits crosses a link with an MTU of 1,400 bytes in both
// directions; a longer one fails with EMSGSIZE.
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

// A socket of an IP protocol sends packets of any length too (RFC 791 §3.2).
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

// If a socket sets DF, a datagram that is too long for the node's own link fails at once (RFC 1191
// §3).
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

// A dialed socket learns the path MTU from the router that dropped a longer datagram (RFC 1191 §4).
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

func TestInvalidReassemblyConfig(t *testing.T) {
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
