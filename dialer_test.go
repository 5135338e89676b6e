package tidepool_test

import (
	"io"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool"
)

// RFC 9293 §3.10.1: an active OPEN may name the local socket, and "connection already
// exists" is an error.
func TestADialerHasAnAddressAndPortOfItsOwn(t *testing.T) {
	a, _, c := line(t, tidepool.Config{})
	l, err := a.ListenTCP(netip.MustParseAddrPort("10.0.0.1:80"))
	require.NoError(t, err)
	d := tidepool.Dialer{Node: c, LocalAddr: netip.MustParseAddrPort("10.1.0.2:4321")}
	conn, err := d.Dial("tcp", "10.0.0.1:80")
	require.NoError(t, err)
	assert.Equal(t, "10.1.0.2:4321", conn.LocalAddr().String())
	accepted, err := l.Accept()
	require.NoError(t, err)
	assert.Equal(t, "10.1.0.2:4321", accepted.RemoteAddr().String())

	_, err = d.Dial("tcp", "10.0.0.1:80")
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	assert.ErrorContains(t, err, "dial tcp 10.1.0.2:4321->10.0.0.1:80: ")
	other, err := a.Listen("tcp", ":81")
	require.NoError(t, err)
	second, err := d.Dial("tcp", "10.0.0.1:81")
	require.NoError(t, err, "another connection from the same port")
	require.NoError(t, second.Close())
	require.NoError(t, other.Close())

	require.NoError(t, conn.Close())
	_, err = accepted.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	require.NoError(t, accepted.Close())
	waits := func() bool {
		info, err := conn.(*tidepool.Conn).Info()
		return err == nil && info.State == "TIME_WAIT"
	}
	require.Eventually(t, waits, patience, time.Millisecond)
	_, err = d.Dial("tcp", "10.0.0.1:80")
	require.ErrorIs(t, err, syscall.EADDRINUSE, "in TIME-WAIT")

	d.LocalAddr = netip.MustParseAddrPort("10.0.0.1:0")
	_, err = d.Dial("tcp", "10.0.0.1:80")
	require.ErrorIs(t, err, syscall.EADDRNOTAVAIL)
	d.LocalAddr = netip.MustParseAddrPort("[::1]:9")
	_, err = d.Dial("tcp", "10.0.0.1:80")
	require.ErrorIs(t, err, syscall.EADDRNOTAVAIL)
	mine, err := c.Listen("tcp", "10.1.0.2:7")
	require.NoError(t, err)
	d.LocalAddr = netip.AddrPortFrom(netip.Addr{}, 7)
	_, err = d.Dial("tcp", "10.0.0.1:80")
	require.ErrorIs(t, err, syscall.EADDRINUSE, "a listener's")
	require.NoError(t, mine.Close())
	conn, err = d.DialContext(t.Context(), "tcp4", "10.0.0.1:80")
	require.NoError(t, err)
	assert.Equal(t, "10.1.0.2:7", conn.LocalAddr().String())
	require.NoError(t, conn.Close())
	require.NoError(t, l.Close())
}

// A router may speak from any of its addresses.
func TestADialerChoosesAmongANodesAddresses(t *testing.T) {
	a, router, _ := line(t, tidepool.Config{})
	l, err := a.Listen("tcp", ":80")
	require.NoError(t, err)
	d := tidepool.Dialer{Node: router}
	for _, from := range []string{"10.0.0.2", "10.1.0.1"} {
		d.LocalAddr = netip.AddrPortFrom(addr(from), 0)
		conn, err := d.Dial("tcp", "10.0.0.1:80")
		require.NoError(t, err)
		accepted, err := l.Accept()
		require.NoError(t, err)
		assert.Equal(t, from, accepted.RemoteAddr().(*net.TCPAddr).IP.String())
		require.NoError(t, conn.Close())
		require.NoError(t, accepted.Close())
		u, err := d.DialUDP(netip.MustParseAddrPort("10.0.0.1:53"))
		require.NoError(t, err)
		assert.Equal(t, from, u.LocalAddr().(*net.UDPAddr).IP.String())
		require.NoError(t, u.Close())
	}
	require.NoError(t, l.Close())
}

func TestADialersUDPSocket(t *testing.T) {
	a, b := pair(t, tidepool.Config{})
	d := tidepool.Dialer{Node: a, LocalAddr: netip.MustParseAddrPort("10.0.0.1:5353")}
	u, err := d.Dial("udp", "10.0.0.2:53")
	require.NoError(t, err)
	assert.Equal(t, "10.0.0.1:5353", u.LocalAddr().String())
	_, err = d.Dial("udp", "10.0.0.2:54")
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	assert.ErrorContains(t, err, "dial udp 10.0.0.1:5353->10.0.0.2:54: ")
	_, err = a.ListenPacket("udp", ":5353")
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	server, err := b.ListenPacket("udp", ":53")
	require.NoError(t, err)
	_, err = u.Write([]byte("who"))
	require.NoError(t, err)
	p := make([]byte, 10)
	n, from, err := server.ReadFrom(p)
	require.NoError(t, err)
	assert.Equal(t, "who", string(p[:n]))
	assert.Equal(t, "10.0.0.1:5353", from.String())
	require.NoError(t, u.Close())
	d.LocalAddr = netip.MustParseAddrPort("10.0.0.9:0")
	_, err = d.Dial("udp", "10.0.0.2:53")
	require.ErrorIs(t, err, syscall.EADDRNOTAVAIL)
	require.NoError(t, server.Close())
}

// The time is the node's.
func TestADialersTimeout(t *testing.T) {
	var clock tidepool.Clock
	x, wire := tidepool.Pipe(0)
	n := open(t, host(tidepool.Config{Clock: &clock}, "10.0.0.1/24", "", x))
	done := make(chan error, 1)
	go func() {
		d := tidepool.Dialer{Node: n, Timeout: 2 * time.Second}
		_, err := d.Dial("tcp", "10.0.0.2:80")
		done <- err
	}()
	_, err := wire.Read(make([]byte, 1500)) // the goroutine has come so far
	require.NoError(t, err)
	clock.Advance(2*time.Second - 1)
	select {
	case err := <-done:
		t.Fatal("early:", err)
	default:
	}
	clock.Advance(1)
	err = <-done
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	assert.Equal(t, "dial tcp 10.0.0.2:80: i/o timeout", err.Error())
	var timeout net.Error
	require.ErrorAs(t, err, &timeout)
	assert.True(t, timeout.Timeout())
	_, err = (&tidepool.Dialer{Timeout: time.Second}).Dial("tcp", "10.0.0.2:80")
	require.ErrorIs(t, err, net.ErrClosed, "no node")
}
