package tidepool_test

import (
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool"
)

// As in net, what nobody has opened fails and does not panic.
func TestZeroValuesAreClosed(t *testing.T) {
	type reader interface {
		net.Conn
		CloseRead() error
		CloseWrite() error
		SetNoDelay(noDelay bool) error
		SetReadBuffer(bytes int) error
		SetLinger(sec int) error
	}
	var c reader = new(tidepool.Conn)
	_, err := c.Read(make([]byte, 1))
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = c.Write(make([]byte, 1))
	require.ErrorIs(t, err, net.ErrClosed)
	for _, err := range []error{
		c.Close(), c.CloseRead(), c.CloseWrite(), c.SetDeadline(time.Unix(1, 0)), c.SetNoDelay(true),
		c.SetReadBuffer(1 << 16), c.SetLinger(1),
	} {
		require.ErrorIs(t, err, net.ErrClosed)
	}
	_, err = new(tidepool.Conn).Info()
	require.ErrorIs(t, err, net.ErrClosed)
	assert.NotNil(t, c.LocalAddr())

	l := new(tidepool.Listener)
	_, err = l.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
	require.ErrorIs(t, l.SetDeadline(time.Unix(1, 0)), net.ErrClosed)
	require.ErrorIs(t, l.Close(), net.ErrClosed)
	assert.NotNil(t, l.Addr())

	u := new(tidepool.PacketConn)
	_, _, err = u.ReadFrom(make([]byte, 1))
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = u.WriteToAddrPort(nil, netip.MustParseAddrPort("10.0.0.1:53"))
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = u.Write(nil)
	require.Error(t, err)
	require.ErrorIs(t, u.SetDeadline(time.Unix(1, 0)), net.ErrClosed)
	require.ErrorIs(t, u.Close(), net.ErrClosed)

	e := new(tidepool.PipeEnd)
	_, err = e.Read(make([]byte, 1))
	require.Error(t, err)
	_, err = e.Write([]byte{1})
	require.Error(t, err)
	_, ok := e.TryRead(make([]byte, 1))
	assert.False(t, ok)

	r := new(tidepool.Request)
	_, err = r.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
	r.Reject()
	r.Drop()

	f := new(tidepool.UDPRequest)
	_, err = f.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
	f.Reject()
	f.Drop()

	require.ErrorIs(t, new(tidepool.Conn).Probe(func(tidepool.Sample) {}), net.ErrClosed)
	require.NoError(t, new(tidepool.Conn).Probe(nil))
}

func TestTheZeroNodeIsClosed(t *testing.T) {
	n := new(tidepool.Node)
	for _, address := range []string{":80", "10.0.0.1:80"} {
		for _, network := range []string{"tcp", "udp"} {
			_, err := n.Dial(network, address)
			require.ErrorIs(t, err, net.ErrClosed)
		}
		_, err := n.Listen("tcp", address)
		require.ErrorIs(t, err, net.ErrClosed)
		_, err = n.ListenPacket("udp", address)
		require.ErrorIs(t, err, net.ErrClosed)
	}
	require.ErrorIs(t, n.Forward(nil), net.ErrClosed)
	require.ErrorIs(t, n.ForwardUDP(nil), net.ErrClosed)
	require.ErrorIs(t, n.SetUp("if0", true), syscall.EINVAL)
	require.Error(t, n.SetLoss(0))
	require.ErrorIs(t, n.Close(), syscall.EINVAL)
	assert.Empty(t, n.Addrs())
}
