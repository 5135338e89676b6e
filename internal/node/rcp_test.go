package node

import (
	"bytes"
	"context"
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

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/link"
)

// quick is a configuration of RCP for links without delay and a machine without load.
var quick = RCPConfig{Tick: time.Millisecond, Timeout: 20 * time.Second, PacketSize: 1024}

var rcpPort9000 = netip.MustParseAddrPort("10.0.0.2:9000")

// connectRCP connects two nodes by RCP and leaves the listener open.
func connectRCP(t *testing.T, from, to *Node, cfg RCPConfig) (c, s *RCPConn, l *RCPListener) {
	t.Helper()
	l, err := to.RCP.Listen(netip.AddrPortFrom(netip.IPv4Unspecified(), 9000), 0, cfg)
	require.NoError(t, err)
	c, err = from.RCP.Dial(t.Context(), netip.AddrPort{}, rcpPort9000, cfg)
	require.NoError(t, err)
	s, err = l.AcceptRCP()
	require.NoError(t, err)
	return c, s, l
}

func TestRCPConnIsANetConn(t *testing.T) {
	t.Parallel()
	a, b := twoNodes(t, Config{})
	l, err := b.RCP.Listen(rcpPort9000, 0, quick)
	require.NoError(t, err)
	defer l.Close()
	var mu sync.Mutex // held until the listener has the client's packet
	nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
		mu.Lock()
		defer mu.Unlock()
		client, err := a.RCP.Dial(context.Background(), netip.AddrPort{}, rcpPort9000, quick)
		if err != nil {
			return nil, nil, nil, err
		}
		server, err := l.Accept()
		if err != nil {
			return nil, nil, nil, err
		}
		return client, server, func() { _ = client.Close(); _ = server.Close() }, nil
	})
}

// Over links that lose a fifth of the packets, each direction can end separately. The addresses are
// those of the two ports.
func TestRCPOverALossyRouter(t *testing.T) {
	a, b, c := line3(t, Config{Seed: 3})
	testenv.Ask(t, b, control.SetLoss{Percent: 20})
	on := netip.MustParseAddrPort("10.1.0.2:9000")
	l, err := c.RCP.Listen(netip.MustParseAddrPort("0.0.0.0:9000"), 0, quick)
	require.NoError(t, err)
	client, err := a.RCP.Dial(t.Context(), netip.MustParseAddrPort("0.0.0.0:4000"), on, quick)
	require.NoError(t, err)
	server, err := l.AcceptRCP()
	require.NoError(t, err)
	assert.Equal(t, "10.0.0.1:4000", client.LocalAddr().String())
	assert.Equal(t, "10.1.0.2:9000", client.RemoteAddr().String())
	assert.Equal(t, "10.1.0.2:9000", server.LocalAddr().String())
	assert.Equal(t, "10.0.0.1:4000", server.RemoteAddr().String())

	text := bytes.Repeat([]byte("sliding fence "), 20_000)
	go func() {
		_, _ = io.Copy(server, server)
		_ = server.CloseWrite()
	}()
	go func() {
		_, _ = client.Write(text)
		_ = client.CloseWrite()
	}()
	got, err := io.ReadAll(client)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(text, got))
	_, err = client.Write(text)
	require.ErrorIs(t, err, syscall.EPIPE)
	i := client.Info()
	assert.Positive(t, i.Counts.Again)
	assert.Positive(t, i.Counts.ACK)
	assert.NoError(t, client.Close())
	assert.NoError(t, server.Close())
	assert.NoError(t, l.Close())
}

// RCP returns the standard errors.
func TestRCPErrors(t *testing.T) {
	a, b := twoNodes(t, Config{})
	ctx := t.Context()
	_, err := a.RCP.Dial(ctx, netip.AddrPort{}, rcpPort9000, quick)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	require.EqualError(t, err, "dial rcp 10.0.0.2:9000: connection refused")
	_, err = a.RCP.Dial(ctx, netip.AddrPort{}, netip.MustParseAddrPort("10.0.0.255:1"), quick)
	require.ErrorIs(t, err, syscall.EADDRNOTAVAIL)
	_, err = a.RCP.Dial(ctx, netip.AddrPort{}, netip.MustParseAddrPort("10.0.0.9:1"), quick)
	require.ErrorIs(t, err, syscall.EHOSTUNREACH)
	_, err = a.RCP.Dial(ctx, netip.AddrPort{}, rcpPort9000, RCPConfig{Width: -1})
	require.ErrorIs(t, err, syscall.EINVAL)

	// A UDP socket does not answer RCP packets.
	silent, err := b.Packets.Listen(rcpPort9000)
	require.NoError(t, err)
	_, err = b.RCP.Listen(rcpPort9000, 0, quick)
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	_, err = a.RCP.Dial(ctx, netip.AddrPort{}, rcpPort9000,
		RCPConfig{Timeout: 100 * time.Millisecond})
	require.ErrorIs(t, err, syscall.ETIMEDOUT)
	var timeout net.Error
	require.ErrorAs(t, err, &timeout)
	assert.True(t, timeout.Timeout())
	late, cancel := context.WithTimeoutCause(ctx, time.Millisecond, io.ErrNoProgress)
	defer cancel()
	_, err = a.RCP.Dial(late, netip.AddrPort{}, rcpPort9000, quick)
	require.ErrorIs(t, err, io.ErrNoProgress)
	require.NoError(t, silent.Close())

	l, err := b.RCP.Listen(rcpPort9000, 0, quick)
	require.NoError(t, err)
	require.NoError(t, l.SetDeadline(time.Unix(1, 0)))
	_, err = l.Accept()
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.NoError(t, l.Close())
	require.ErrorIs(t, l.Close(), net.ErrClosed)
	_, err = l.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
}

// An aborted connection sends nothing, so its peer times out.
func TestRCPTimeoutAfterAbort(t *testing.T) {
	a, b := twoNodes(t, Config{})
	cfg := quick
	cfg.Timeout = 300 * time.Millisecond
	c, s, _ := connectRCP(t, a, b, cfg)
	_, err := c.Write([]byte("the last word"))
	require.NoError(t, err)
	p := make([]byte, 100)
	n, err := io.ReadAtLeast(s, p, 13)
	require.NoError(t, err)
	assert.Equal(t, "the last word", string(p[:n]))
	c.Abort()
	_, err = c.Read(p)
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = s.Read(p)
	require.ErrorIs(t, err, syscall.ETIMEDOUT)
	_, err = s.Write(p)
	assert.ErrorIs(t, err, syscall.ETIMEDOUT)
}

// A router serves many sockets, and each peer gets its own echo.
func TestRCPManySocketsAtOnePort(t *testing.T) {
	a, b := twoNodes(t, Config{})
	l, err := b.RCP.Listen(rcpPort9000, 0, quick)
	require.NoError(t, err)
	defer l.Close()
	go func() {
		for c, err := l.AcceptRCP(); err == nil; c, err = l.AcceptRCP() {
			go func() {
				_, _ = io.Copy(c, c)
				_ = c.Close()
			}()
		}
	}()
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			c, err := a.RCP.Dial(t.Context(), netip.AddrPort{}, rcpPort9000, quick)
			if !assert.NoError(t, err) {
				return
			}
			defer c.Close()
			text := bytes.Repeat([]byte{byte(i)}, 10_000+i)
			_, err = c.Write(text)
			assert.NoError(t, err)
			assert.NoError(t, c.CloseWrite())
			got, err := io.ReadAll(c)
			assert.NoError(t, err)
			assert.True(t, bytes.Equal(text, got), "client %d: %d bytes", i, len(got))
		})
	}
	all.Wait()
}

// A port is in use while it has a listener or connections.
func TestRCPFreesItsPort(t *testing.T) {
	a, b := twoNodes(t, Config{})
	c, s, l := connectRCP(t, a, b, quick)
	waiting, err := a.RCP.Dial(t.Context(), netip.AddrPort{}, rcpPort9000, quick)
	require.NoError(t, err)
	require.NoError(t, l.Close())
	_, err = b.Packets.Listen(rcpPort9000)
	require.ErrorIs(t, err, syscall.EADDRINUSE, "a connection is still open")
	_, err = c.Write([]byte("still here"))
	require.NoError(t, err)
	_, err = io.ReadFull(s, make([]byte, 10))
	require.NoError(t, err)
	s.Abort()
	require.Eventually(t, func() bool {
		p, err := b.Packets.Listen(rcpPort9000)
		return err == nil && p.Close() == nil
	}, 10*time.Second, time.Millisecond)
	waiting.Abort()
	c.Abort()
}

// Data that was written to a closed connection is delivered while its node closes. Blocked calls on
// other connections fail.
func TestNodeCloseWithRCPConnections(t *testing.T) {
	a, b := twoNodes(t, Config{})
	c, s, _ := connectRCP(t, a, b, quick)
	text := bytes.Repeat([]byte("x"), 40_000)
	_, err := c.Write(text)
	require.NoError(t, err)
	require.NoError(t, c.Close())
	require.NoError(t, a.Close())
	got, err := io.ReadAll(s)
	require.NoError(t, err)
	assert.Equal(t, text, got)

	over := make(chan error, 1)
	l, err := b.RCP.Listen(netip.MustParseAddrPort("10.0.0.2:0"), 0, quick)
	require.NoError(t, err)
	go func() {
		_, err := l.Accept()
		over <- err
	}()
	require.NoError(t, b.Close())
	require.ErrorIs(t, <-over, net.ErrClosed)
	_, err = s.Write(text)
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = ClosedRCPConn().Read(text)
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = ClosedRCPListener().Accept()
	require.ErrorIs(t, err, net.ErrClosed)
}

// The backlog limits the connections that wait for Accept, in the node and in its router together.
func TestBacklogLimitsWaitingRCPConnections(t *testing.T) {
	const backlog, clients = 2, 5
	a, b, await := drivenPair(t)
	at := netip.MustParseAddrPort("10.0.0.2:9")
	_, err := b.RCP.Listen(at, backlog, RCPConfig{})
	require.NoError(t, err)
	connected := 0
	for range clients {
		done := make(chan error, 1)
		go func() {
			_, err := a.RCP.Dial(t.Context(), netip.AddrPort{}, at, RCPConfig{})
			done <- err
		}()
		if _, err := await(done); err == nil {
			connected++
		}
	}
	assert.Equal(t, backlog, connected)
}

// drivenPair starts two nodes with a Clock and a link in memory. It returns a function that
// advances the clock until done.
func drivenPair(t *testing.T) (a, b *Node, await func(done <-chan error) (time.Duration, error)) {
	t.Helper()
	var clock Clock
	x, y := link.Pipe(0)
	a = start(t, Config{Clock: &clock, Devices: map[string]link.Device{"if0": x}}, "A",
		"interface if0 10.0.0.1/24 127.0.0.1:1\nneighbor 10.0.0.2 at 127.0.0.1:2 via if0")
	b = start(t, Config{Clock: &clock, Devices: map[string]link.Device{"if0": y}}, "B",
		"interface if0 10.0.0.2/24 127.0.0.1:2\nneighbor 10.0.0.1 at 127.0.0.1:1 via if0")
	return a, b, func(done <-chan error) (time.Duration, error) {
		began := clock.Now()
		for {
			select {
			case err := <-done:
				return clock.Now().Sub(began), err
			default:
				clock.Advance(10 * time.Millisecond)
			}
		}
	}
}
