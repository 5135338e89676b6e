package node

import (
	"io"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/stack"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

func TestSocketOptions(t *testing.T) {
	a, b := twoNodes(t, Config{})
	client, server := connect(t, a, b, "10.0.0.2:80")
	for name, err := range map[string]error{
		"no delay": client.SetNoDelay(true), "cork": client.SetCork(false),
		"max seg": client.SetMaxSeg(500), "user timeout": client.SetUserTimeout(time.Minute, true),
		"keepalive": client.SetKeepAlive(true), "period": client.SetKeepAlivePeriod(time.Hour),
		"config":      client.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Count: 3}),
		"read buffer": client.SetReadBuffer(99_000), "write buffer": client.SetWriteBuffer(88_000),
		"congestion": client.SetCongestionControl("cubic"), "tos": client.SetTOS(0x28),
		"ttl": client.change(func(o *tcp.Sockopts) { o.TTL = 7 }), "linger": client.SetLinger(-1),
	} {
		require.NoError(t, err, name)
	}
	seen := make(chan ip.Header, 100)
	require.NoError(t, b.Call(func(s *stack.Stack, _ clock.Time) error {
		s.SetTap(func(_ clock.Time, _ int, d stack.Direction, _ ip.DropReason, p [][]byte) {
			// The handshake's last segment has no payload, and may arrive only after the options
			// changed.
			h, _, reason := ip.ParseHeader(p[0])
			if d == stack.Inbound && reason == ip.DropNone && h.TotalLen > 100 {
				select {
				case seen <- h:
				default:
				}
			}
		})
		return nil
	}))
	_, err := client.Write(make([]byte, 2000))
	require.NoError(t, err)
	buf := make([]byte, 2000)
	for got := 0; got < len(buf); {
		n, err := server.Read(buf)
		require.NoError(t, err)
		got += n
	}
	h := <-seen
	assert.Equal(t, uint8(0x28), h.TOS&^3)
	assert.Equal(t, uint8(7), h.TTL)
	assert.LessOrEqual(t, h.TotalLen, 560)
	i, err := client.Info()
	require.NoError(t, err)
	assert.Equal(t, []int{99_000, 88_000}, []int{i.RcvBuf, i.SndBuf})
	assert.Equal(t, time.Minute, i.UserTimeout)
	assert.Equal(t, "cubic", i.CongestionControl)
	assert.Equal(t, tcp.StateEstablished, i.State)

	require.ErrorIs(t, client.SetMaxSeg(3), syscall.EINVAL)
	require.NoError(t, client.Close())
	require.ErrorIs(t, client.SetNoDelay(false), net.ErrClosed)
	require.ErrorIs(t, client.SetLinger(1), net.ErrClosed)
}

func TestListenerOptions(t *testing.T) {
	a, b := twoNodes(t, Config{})
	l, err := b.TCP.Listen(netip.MustParseAddrPort("10.0.0.2:80"), 0)
	require.NoError(t, err)
	require.ErrorIs(t, l.SetOptions(tcp.Sockopts{MaxSeg: 1}), syscall.EINVAL)
	require.NoError(t, l.SetOptions(tcp.Sockopts{RecvBuffer: 70_000, UserTimeout: time.Hour}))
	_, err = a.TCP.Dial(t.Context(), netip.MustParseAddrPort("10.0.0.2:80"))
	require.NoError(t, err)
	c, err := l.AcceptTCP()
	require.NoError(t, err)
	i, err := c.Info()
	require.NoError(t, err)
	assert.Equal(t, 70_000, i.RcvBuf)
	assert.Equal(t, time.Hour, i.UserTimeout)
}

// A negative value delivers in the background, zero resets, and a positive value waits.
func TestLinger(t *testing.T) {
	a, b := twoNodes(t, Config{})
	client, server := connect(t, a, b, "10.0.0.2:80")
	require.NoError(t, client.SetLinger(0))
	require.NoError(t, client.Close())
	_, err := server.Read(make([]byte, 1))
	require.ErrorIs(t, err, syscall.ECONNRESET)

	client, server = connect(t, a, b, "10.0.0.2:81")
	require.NoError(t, client.SetLinger(10))
	_, err = client.Write([]byte("hello"))
	require.NoError(t, err)
	require.NoError(t, client.Close())
	select {
	case <-client.delivered.passed():
	default:
		require.Fail(t, "Close did not wait for the delivery")
	}
	n, err := server.Read(make([]byte, 10))
	require.NoError(t, err)
	assert.Equal(t, 5, n)
}

// A connection's state can be read after its end, and its times no longer change.
func TestInfoAfterTheEnd(t *testing.T) {
	a, b := twoNodes(t, Config{})
	client, server := connect(t, a, b, "10.0.0.2:80")
	_, err := client.Write(make([]byte, 500))
	require.NoError(t, err)
	_, err = io.ReadFull(server, make([]byte, 500))
	require.NoError(t, err)
	server.Abort()
	_, err = client.Read(make([]byte, 1))
	require.ErrorIs(t, err, syscall.ECONNRESET)
	i, err := client.Info()
	require.NoError(t, err)
	assert.Equal(t, tcp.StateClosed, i.State)
	assert.EqualValues(t, 500, i.BytesSent-i.BytesRetrans, "retransmissions do not count")
	assert.Equal(t, tcp.LimitIdle.String(), i.Limited)
	require.NoError(t, client.Close())
	again, err := client.Info()
	require.NoError(t, err)
	assert.Equal(t, i.BusyTime, again.BusyTime)
	require.NoError(t, a.Close())
	_, err = client.Info()
	require.Error(t, err)
}
