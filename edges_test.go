package tidepool_test

import (
	"io"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool"
)

// What a direction answers that was closed is what net.TCPConn has it answer.
func TestAClosedDirectionAnswersAsInNet(t *testing.T) {
	a, b := pair(t, tidepool.Config{})
	client, server := dial(t, b, a, "10.0.0.1:80")
	require.NoError(t, client.CloseWrite())
	require.NoError(t, client.CloseWrite(), "again")
	_, err := client.Write([]byte("x"))
	require.ErrorIs(t, err, syscall.EPIPE) // RFC 9293 §3.10.2: "connection closing"
	require.NotErrorIs(t, err, net.ErrClosed)
	_, err = client.Write(nil)
	require.ErrorIs(t, err, syscall.EPIPE)
	_, err = server.Write([]byte("still"))
	require.NoError(t, err)
	got := make([]byte, 5)
	_, err = io.ReadFull(client, got)
	require.NoError(t, err)
	assert.Equal(t, "still", string(got))

	read := make(chan error, 1)
	go func() {
		_, err := client.Read(got)
		read <- err
	}()
	require.NoError(t, client.CloseRead())
	require.NoError(t, client.CloseRead(), "again")
	require.ErrorIs(t, <-read, io.EOF)
	_, err = client.Read(got)
	require.ErrorIs(t, err, io.EOF)

	require.NoError(t, client.Close())
	for _, err := range []error{client.Close(), client.CloseRead(), client.CloseWrite()} {
		require.ErrorIs(t, err, net.ErrClosed)
	}
	_, err = client.Read(got)
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = client.Write(got)
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = client.Read(nil)
	require.ErrorIs(t, err, net.ErrClosed)
}

// A Read that waits after a half-close has the deadline that was set before it.
func TestADeadlineOutlivesCloseWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t, tidepool.Config{})
		client, _ := dial(t, b, a, "10.0.0.1:80")
		begin := time.Now()
		require.NoError(t, client.SetDeadline(begin.Add(time.Second)))
		require.NoError(t, client.CloseWrite())
		_, err := client.Read(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		assert.Equal(t, time.Second, time.Since(begin))
		require.NoError(t, client.Close())
		require.NoError(t, b.Close())
		require.NoError(t, a.Close())
	})
}

// As in net, nothing is read before a deadline is looked at, and nothing where nothing
// is asked for.
func TestReadingNothingIsNeverLate(t *testing.T) {
	a, b := pair(t, tidepool.Config{})
	client, server := dial(t, b, a, "10.0.0.1:80")
	_, err := server.Write([]byte("here"))
	require.NoError(t, err)
	require.NoError(t, client.SetReadDeadline(time.Unix(1, 0)))
	_, err = client.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	n, err := client.Read(nil)
	require.NoError(t, err)
	assert.Zero(t, n)
}

// The system's numbers for addresses that cannot be dialed, or were not given.
func TestAddressErrorsHaveNumbers(t *testing.T) {
	a, _ := pair(t, tidepool.Config{})
	_, err := a.Dial("tcp", "10.0.0.2:0")
	require.ErrorIs(t, err, syscall.EADDRNOTAVAIL)
	_, err = a.DialTCP(t.Context(), netip.MustParseAddrPort("[::1]:80"))
	require.ErrorIs(t, err, syscall.EAFNOSUPPORT)
	u, err := a.ListenUDP(netip.AddrPort{})
	require.NoError(t, err)
	_, err = u.Write([]byte("x"))
	require.ErrorIs(t, err, syscall.EDESTADDRREQ)
	require.NoError(t, u.Close())
}

// What is closed says so, whatever its deadline says.
func TestClosedIsNotLate(t *testing.T) {
	a, b := pair(t, tidepool.Config{})
	for range 20 {
		client, server := dial(t, b, a, "10.0.0.1:80")
		u, err := b.ListenUDP(netip.AddrPort{})
		require.NoError(t, err)
		for _, c := range []net.Conn{client, u} {
			require.NoError(t, c.SetDeadline(time.Unix(1, 0)))
			require.NoError(t, c.Close())
			_, err = c.Read(make([]byte, 1))
			require.ErrorIs(t, err, net.ErrClosed)
		}
		_, err = client.Write(make([]byte, 1))
		require.ErrorIs(t, err, net.ErrClosed)
		_, err = u.WriteToAddrPort(nil, netip.MustParseAddrPort("10.0.0.1:9"))
		require.ErrorIs(t, err, net.ErrClosed)
		require.NoError(t, server.Close())
	}
}

// A deadline that is moved after the connection has ended is no more than noted.
func TestADeadlineAfterTheEnd(t *testing.T) {
	var clock tidepool.Clock
	a, b := pair(t, tidepool.Config{Clock: &clock})
	client, server := dial(t, b, a, "10.0.0.1:80")
	require.NoError(t, client.SetDeadline(clock.Now().Add(time.Hour)))
	require.NoError(t, server.SetLinger(0))
	require.NoError(t, server.Close())
	require.NoError(t, client.SetDeadline(clock.Now().Add(2*time.Hour)))
	_, err := client.Read(make([]byte, 1))
	require.ErrorIs(t, err, syscall.ECONNRESET)
	require.ErrorIs(t, client.CloseWrite(), syscall.ECONNRESET, "what was written is lost")
	_, ok := clock.Next()
	assert.False(t, ok, "no timer is left")
	require.NoError(t, client.SetDeadline(clock.Now()))
	_, err = client.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.NoError(t, client.SetDeadline(time.Time{}))
	_, err = client.Read(make([]byte, 1))
	require.ErrorIs(t, err, syscall.ECONNRESET)
}

// Addresses that are IPv4 in the form of IPv6 are IPv4, as in net.
func TestMappedAddressesAreIPv4(t *testing.T) {
	a, b := pair(t, tidepool.Config{})
	mapped := func(s string) netip.AddrPort { return netip.MustParseAddrPort("[::ffff:" + s) }
	l, err := a.ListenTCP(mapped("10.0.0.1]:80"))
	require.NoError(t, err)
	d := tidepool.Dialer{Node: b, LocalAddr: mapped("10.0.0.2]:77")}
	c, err := d.DialTCP(t.Context(), mapped("10.0.0.1]:80"))
	require.NoError(t, err)
	assert.Equal(t, "10.0.0.2:77 10.0.0.1:80", c.LocalAddr().String()+" "+c.RemoteAddr().String())
	u, err := a.ListenUDP(mapped("10.0.0.1]:53"))
	require.NoError(t, err)
	v, err := d.DialUDP(mapped("10.0.0.1]:53"))
	require.NoError(t, err)
	assert.Equal(t, "10.0.0.2:77 10.0.0.1:53", v.LocalAddr().String()+" "+v.RemoteAddr().String())
	_, err = u.WriteToAddrPort(nil, mapped("10.0.0.2]:77"))
	require.NoError(t, err)
	n, err := v.Read(nil)
	require.NoError(t, err)
	assert.Zero(t, n)
	for _, c := range []io.Closer{u, v, c, l} {
		require.NoError(t, c.Close())
	}
}

// A clock goes forward and comes to its end.
func TestAClockGoesNoFurtherThanItsEnd(t *testing.T) {
	var clock tidepool.Clock
	begin := clock.Now()
	clock.Advance(-time.Hour)
	assert.Equal(t, begin, clock.Now())
	for range 3 {
		clock.Advance(1 << 62)
		assert.Equal(t, 2146, clock.Now().Year())
	}
}
