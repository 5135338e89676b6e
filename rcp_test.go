package tidepool_test

import (
	"bytes"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/nettest"

	"github.com/tidepool-net/tidepool"
)

// quickRCP is an RCP for pipes, on machines that have no time.
var quickRCP = tidepool.RCP{Tick: time.Millisecond, Timeout: 20 * time.Second, PacketSize: 1024}

// badPair is pair whose pipe loses a fifth each way.
func badPair(t *testing.T) (client, server *tidepool.Node) {
	x, y := tidepool.Pipe(0)
	cfg := host(tidepool.Config{Seed: 3}, "10.0.0.1/24", "", x)
	cfg.Interfaces[0].Impair = tidepool.Impairments{Loss: 0.2, Duplicate: 0.01, Reorder: 0.01}
	return open(t, host(tidepool.Config{}, "10.0.0.2/24", "", y)), open(t, cfg)
}

func portOf(l net.Listener) uint16 { return uint16(l.Addr().(*net.UDPAddr).Port) }

func TestRCPNettest(t *testing.T) {
	client, server := badPair(t)
	l, err := server.ListenRCP(netip.AddrPort{}, quickRCP)
	require.NoError(t, err)
	defer l.Close()
	at := netip.AddrPortFrom(addr("10.0.0.1"), portOf(l))
	d := tidepool.Dialer{Node: client, RCP: quickRCP}
	var mu sync.Mutex
	nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
		mu.Lock()
		defer mu.Unlock()
		c1, err = d.DialContext(t.Context(), "rcp", at.String())
		if err != nil {
			return nil, nil, nil, err
		}
		if c2, err = l.Accept(); err != nil {
			return nil, nil, nil, err
		}
		return c1, c2, func() { _ = c1.Close(); _ = c2.Close() }, nil
	})
}

// What is sent more than once over a pipe that loses a fifth is counted, by the fence and by the
// window. Which of them repeats more is told by experiments in virtual time: here a machine that
// pauses has either of them repeat what was on its way.
func TestRCPWindowAndFence(t *testing.T) {
	client, server := badPair(t)
	for _, window := range []bool{false, true} {
		how := quickRCP
		how.Window = window
		l, err := server.ListenRCP(netip.AddrPort{}, how)
		require.NoError(t, err)
		d := tidepool.Dialer{Node: client, RCP: how}
		c, err := d.DialRCP(t.Context(), netip.AddrPortFrom(addr("10.0.0.1"), portOf(l)))
		require.NoError(t, err)
		s, err := l.AcceptRCP()
		require.NoError(t, err)
		text := bytes.Repeat([]byte("fence or window "), 20_000)
		go func() {
			_, _ = c.Write(text)
			_ = c.CloseWrite()
		}()
		got, err := io.ReadAll(s)
		require.NoError(t, err)
		assert.True(t, bytes.Equal(text, got))
		i := c.Info()
		assert.Positive(t, i.Again)
		assert.GreaterOrEqual(t, i.Data, uint64(len(text)/1024))
		assert.Positive(t, i.Acks)
		require.NoError(t, s.Close())
		require.NoError(t, l.Close())
		_, err = io.ReadAll(c)
		require.NoError(t, err)
		require.NoError(t, c.Close())
	}
}

func TestRCPErrors(t *testing.T) {
	client, _ := badPair(t)
	_, err := client.Dial("rcp", "10.0.0.1")
	require.ErrorContains(t, err, "missing port")
	_, err = client.Listen("rcp", "10.9.9.9:1")
	require.ErrorIs(t, err, syscall.EADDRNOTAVAIL)
	_, err = client.ListenRCP(netip.AddrPort{}, tidepool.RCP{Width: 1025})
	require.ErrorIs(t, err, syscall.EINVAL)
	var zero tidepool.Node
	_, err = zero.Dial("rcp", "10.0.0.1:1")
	require.ErrorIs(t, err, net.ErrClosed)
	require.ErrorIs(t, (&tidepool.RCPListener{}).Close(), net.ErrClosed)
	_, err = (&tidepool.RCPConn{}).Write(nil)
	require.ErrorIs(t, err, net.ErrClosed)
	assert.Zero(t, (&tidepool.RCPConn{}).Info())
}

// The send loops of nodes that a Clock drives have its time: what was written has arrived
// two Ticks later. A peer that is cut off is gone after the zero RCP's 3 s, and no sooner.
func TestRCPInDrivenTime(t *testing.T) {
	var clock tidepool.Clock
	server, client := pair(t, tidepool.Config{Clock: &clock})
	l, err := server.Listen("rcp", ":9000")
	require.NoError(t, err)
	var c net.Conn
	dialed := make(chan error)
	go func() {
		var err error
		c, err = client.Dial("rcp", "10.0.0.1:9000")
		dialed <- err
	}()
	for dialing := true; dialing; {
		select {
		case err := <-dialed:
			require.NoError(t, err)
			dialing = false
		default:
			clock.Advance(time.Millisecond)
		}
	}
	s, err := l.Accept()
	require.NoError(t, err)
	_, err = c.Write([]byte("tide"))
	require.NoError(t, err)
	clock.Advance(20 * time.Millisecond)
	got := make([]byte, 8)
	n, err := s.Read(got)
	require.NoError(t, err)
	assert.Equal(t, "tide", string(got[:n]))

	require.NoError(t, client.SetUp("if0", false))
	clock.Advance(2900 * time.Millisecond)
	require.NoError(t, s.SetReadDeadline(clock.Now()))
	_, err = s.Read(got)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.NoError(t, s.SetReadDeadline(time.Time{}))
	clock.Advance(200 * time.Millisecond)
	_, err = s.Read(got)
	require.ErrorIs(t, err, syscall.ETIMEDOUT)
}
