package node

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/udp"
)

func listenPacket(t *testing.T, n *Node, on string) *PacketConn {
	t.Helper()
	c, err := n.Packets.Listen(netip.MustParseAddrPort(on))
	require.NoError(t, err)
	require.NoError(t, c.SetDeadline(time.Now().Add(10*time.Second)))
	return c
}

func dialUDP(t *testing.T, n *Node, to string) *PacketConn {
	t.Helper()
	c, err := n.Packets.Dial(netip.MustParseAddrPort(to))
	require.NoError(t, err)
	require.NoError(t, c.SetDeadline(time.Now().Add(10*time.Second)))
	return c
}

// echo answers datagrams until the socket is closed.
func echo(c net.PacketConn) error {
	p := make([]byte, 2000)
	for {
		n, from, err := c.ReadFrom(p)
		if err != nil {
			return err
		}
		if _, err := c.WriteTo(p[:n], from); err != nil {
			return err
		}
	}
}

func TestDatagramsInBothDirections(t *testing.T) {
	a, _, c := line3(t, Config{})
	server := listenPacket(t, c, "0.0.0.0:53")
	done := make(chan error, 1)
	go func() { done <- echo(server) }()

	client := dialUDP(t, a, "10.1.0.2:53")
	assert.Equal(t, "10.1.0.2:53", client.RemoteAddr().String())
	assert.Equal(t, "10.0.0.1", client.LocalAddr().(*net.UDPAddr).IP.String())
	p := make([]byte, 2000)
	for _, size := range []int{0, 1, 1000, 1372} {
		n, err := client.Write(make([]byte, size))
		require.NoError(t, err)
		require.Equal(t, size, n)
		n, err = client.Read(p)
		require.NoError(t, err)
		require.Equal(t, size, n)
	}
	open := listenPacket(t, a, "10.0.0.1:0")
	assert.Nil(t, open.RemoteAddr())
	to := netip.MustParseAddrPort("10.1.0.2:53")
	_, err := open.WriteToAddrPort([]byte("cut short"), to)
	require.NoError(t, err)
	n, from, err := open.ReadFromAddrPort(p[:3])
	require.NoError(t, err)
	assert.Equal(t, to, from)
	assert.Equal(t, "cut", string(p[:n]))

	sockets := testenv.Ask(t, a, control.Sockets{})
	require.Len(t, sockets, 2)
	assert.Equal(t, "UDP", sockets[0].State)
	require.NoError(t, client.Close())
	require.NoError(t, open.Close())
	sockets = testenv.Ask(t, a, control.Sockets{})
	assert.Empty(t, sockets)

	require.NoError(t, server.Close())
	assert.ErrorIs(t, <-done, net.ErrClosed)
}

func TestPacketConnStandardErrors(t *testing.T) {
	a, _ := twoNodes(t, Config{})
	c := dialUDP(t, a, "10.0.0.2:9")
	_, err := c.Write([]byte("anybody?"))
	require.NoError(t, err)
	_, err = c.Read(make([]byte, 10))
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	op, ok := errors.AsType[*net.OpError](err)
	require.True(t, ok)
	assert.Equal(t, "udp", op.Net)
	assert.False(t, op.Timeout())

	_, err = c.Write(make([]byte, 65508))
	assert.ErrorIs(t, err, syscall.EMSGSIZE)
	_, err = c.WriteTo([]byte("x"), c.RemoteAddr())
	assert.ErrorIs(t, err, net.ErrWriteToConnected)

	open := listenPacket(t, a, "0.0.0.0:53")
	_, err = open.Write([]byte("x"))
	assert.ErrorIs(t, err, syscall.EDESTADDRREQ)
	_, err = open.WriteTo([]byte("x"), nil)
	assert.ErrorContains(t, err, "missing address")
	_, err = open.WriteTo([]byte("x"), &net.UDPAddr{IP: net.IPv4(192, 168, 1, 1), Port: 9})
	assert.ErrorIs(t, err, syscall.ENETUNREACH)
	_, err = open.WriteTo([]byte("x"), &net.UDPAddr{IP: net.IPv4(10, 0, 0, 77), Port: 9})
	assert.ErrorIs(t, err, syscall.EHOSTUNREACH)
	_, err = open.WriteTo([]byte("x"), &net.UnixAddr{Name: "nowhere"})
	assert.Error(t, err)
	_, err = a.Packets.Listen(netip.MustParseAddrPort("0.0.0.0:53"))
	assert.ErrorIs(t, err, syscall.EADDRINUSE)
	_, err = a.Packets.Listen(netip.MustParseAddrPort("10.0.0.2:54"))
	assert.ErrorIs(t, err, syscall.EADDRNOTAVAIL)
	_, err = a.Packets.Dial(netip.MustParseAddrPort("192.168.1.1:9"))
	assert.ErrorIs(t, err, syscall.ENETUNREACH)
}

func TestPacketConnDeadlines(t *testing.T) {
	a, _ := twoNodes(t, Config{})
	c := dialUDP(t, a, "10.0.0.2:9")
	require.NoError(t, c.SetDeadline(time.Unix(1, 0)))
	for _, call := range []func([]byte) (int, error){c.Read, c.Write} {
		_, err := call(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		var timeout net.Error
		require.ErrorAs(t, err, &timeout)
		assert.True(t, timeout.Timeout())
	}
	// A blocked read uses a deadline that is set while it blocks.
	require.NoError(t, c.SetReadDeadline(time.Time{}))
	done := make(chan error, 1)
	go func() {
		_, err := c.Read(make([]byte, 1))
		done <- err
	}()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(time.Millisecond)))
	assert.ErrorIs(t, <-done, os.ErrDeadlineExceeded)
}

func TestCloseEndsBlockedCalls(t *testing.T) {
	for name, shut := range map[string]func(*Node, *PacketConn) error{
		"the socket": func(_ *Node, c *PacketConn) error { return c.Close() },
		"the node":   func(n *Node, _ *PacketConn) error { return n.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			a, _ := twoNodes(t, Config{})
			c := listenPacket(t, a, "0.0.0.0:53")
			done := make(chan error, 1)
			go func() {
				_, _, err := c.ReadFrom(make([]byte, 1))
				done <- err
			}()
			require.NoError(t, shut(a, c))
			require.ErrorIs(t, <-done, net.ErrClosed)
			_, err := c.WriteTo(nil, &net.UDPAddr{IP: net.IPv4(10, 0, 0, 2), Port: 9})
			assert.ErrorIs(t, err, net.ErrClosed)
			assert.ErrorIs(t, c.Close(), net.ErrClosed)
			assert.ErrorIs(t, c.SetDeadline(time.Time{}), net.ErrClosed)
			_, err = a.Packets.Listen(netip.MustParseAddrPort("0.0.0.0:53"))
			if name == "the socket" {
				assert.NoError(t, err, "the port is free again after Close")
			} else {
				assert.ErrorIs(t, err, net.ErrClosed)
			}
		})
	}
}

// Many goroutines send and receive on one socket, and every datagram arrives complete.
func TestPacketConnIsForManyGoroutines(t *testing.T) {
	a, b := twoNodes(t, Config{})
	server, client := listenPacket(t, b, "0.0.0.0:53"), dialUDP(t, a, "10.0.0.2:53")
	const each, senders = 50, 8
	var wg sync.WaitGroup
	for i := range senders {
		wg.Go(func() {
			for k := range each {
				text := fmt.Sprintf("%d %d %0*d", i, k, 1+k*20, 7)
				if _, err := client.Write([]byte(text)); !assert.NoError(t, err) {
					return
				}
			}
		})
	}
	var mu sync.Mutex
	seen := map[string]bool{}
	for range 4 {
		wg.Go(func() {
			p := make([]byte, 2000)
			for {
				n, _, err := server.ReadFrom(p)
				if err != nil {
					return
				}
				var i, k, seven int
				_, err = fmt.Sscanf(string(p[:n]), "%d %d %d", &i, &k, &seven)
				assert.NoError(t, err)
				assert.Equal(t, fmt.Sprintf("%d %d %0*d", i, k, 1+k*20, 7), string(p[:n]))
				mu.Lock()
				seen[fmt.Sprint(i, k)] = true
				all := len(seen) == each*senders
				mu.Unlock()
				if all {
					_ = server.SetReadDeadline(time.Unix(1, 0))
				}
			}
		})
	}
	wg.Wait()
	dropped := uint64(each*senders - len(seen))
	var info udp.Info
	require.NoError(t, server.node.Call(func(*stack.Stack, clock.Time) error {
		info = server.us.Info()
		return nil
	}))
	assert.Equal(t, info.Dropped, dropped, "missing datagrams are counted as dropped")
}
