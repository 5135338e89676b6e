package tidepool_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool"
	"github.com/tidepool-net/tidepool/internal/ci/testenv"
)

// As in net, methods of zero values fail and do not panic.
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

func TestZeroNodeIsClosed(t *testing.T) {
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

// Without delays, everything has happened when a call returns, in one goroutine.
func TestDrivenNetworkNeedsNoGoroutine(t *testing.T) {
	var clock tidepool.Clock
	a, _, c := line(t, tidepool.Config{Clock: &clock})
	client, server := dial(t, c, a, "10.0.0.1:80")
	_, err := client.Write([]byte("tide"))
	require.NoError(t, err)
	got := make([]byte, 8)
	n, err := server.Read(got)
	require.NoError(t, err)
	assert.Equal(t, "tide", string(got[:n]))
	require.NoError(t, client.Close())
	_, err = server.Read(got)
	require.ErrorIs(t, err, io.EOF)
	assert.Equal(t, time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), clock.Now())
}

// RFC 6298 §5.5 and §5.7: the SYN is retransmitted after 1 s, then 2 s, then 4 s.
func TestDrivenNodeRetransmits(t *testing.T) {
	var clock tidepool.Clock
	x, wire := tidepool.Pipe(0)
	n := open(t, host(tidepool.Config{Clock: &clock}, "10.0.0.1/24", "", x))
	done := make(chan error, 1)
	go func() {
		_, err := n.DialTCP(t.Context(), netip.MustParseAddrPort("10.0.0.9:80"))
		done <- err
	}()
	packet := make([]byte, 1500)
	_, err := wire.Read(packet) // waits for the goroutine
	require.NoError(t, err)
	for _, wait := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		next, ok := clock.Next()
		require.True(t, ok)
		assert.Equal(t, wait, next)
		clock.Advance(wait - 1)
		_, ok = wire.TryRead(packet)
		assert.False(t, ok, "a nanosecond early")
		clock.Advance(1)
		size, ok := wire.TryRead(packet)
		require.True(t, ok)
		assert.EqualValues(t, 2, packet[:size][33], "a SYN")
	}
	clock.Advance(5 * time.Minute)
	require.ErrorIs(t, <-done, syscall.ETIMEDOUT)
	assert.Equal(t, drivenStart.Add(5*time.Minute+7*time.Second), clock.Now())
}

var drivenStart = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func TestDeadlinesFollowTheClock(t *testing.T) {
	var clock tidepool.Clock
	a, b := pair(t, tidepool.Config{Clock: &clock})
	client, _ := dial(t, b, a, "10.0.0.1:80")
	require.NoError(t, client.SetReadDeadline(clock.Now().Add(time.Hour)))
	done := make(chan error, 1)
	go func() {
		_, err := client.Read(make([]byte, 1))
		done <- err
	}()
	clock.Advance(time.Hour - 1)
	select {
	case err := <-done:
		t.Fatal("early:", err)
	default:
	}
	clock.Advance(1)
	err := <-done
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	var timeout net.Error
	require.ErrorAs(t, err, &timeout)
	assert.True(t, timeout.Timeout())
	require.NoError(t, client.SetReadDeadline(clock.Now()))
	_, err = client.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
}

// RFC 792: a node answers a packet that a program writes to the link.
func TestLinkToProgram(t *testing.T) {
	var clock tidepool.Clock
	x, wire := tidepool.Pipe(0)
	open(t, host(tidepool.Config{Clock: &clock}, "10.0.0.1/24", "", x))
	echo := []byte{
		0x45, 0, 0, 28, 0, 0, 0, 0, 64, 1, 0x66, 0xdd, 10, 0, 0, 2, 10, 0, 0, 1,
		8, 0, 0xf7, 0xfd, 0, 1, 0, 1,
	}
	fixHeader(echo)
	_, err := wire.Write(echo)
	require.NoError(t, err)
	reply := make([]byte, 1500)
	n, ok := wire.TryRead(reply)
	require.True(t, ok)
	require.Equal(t, 28, n)
	assert.Equal(t, []byte{10, 0, 0, 1, 10, 0, 0, 2, 0, 0}, reply[12:22], "an echo reply")
}

// fixHeader sets the checksum of an IP header of 20 bytes.
func fixHeader(p []byte) {
	p[10], p[11] = 0, 0
	sum := uint32(0)
	for i := 0; i < 20; i += 2 {
		sum += uint32(p[i])<<8 | uint32(p[i+1])
	}
	sum = sum>>16 + sum&0xffff
	sum += sum >> 16
	p[10], p[11] = byte(^sum>>8), byte(^sum)
}

// Closing a node on a Clock takes no time: data that the peer does not acknowledge at once is lost.
func TestCloseOfDrivenNode(t *testing.T) {
	var clock tidepool.Clock
	x, wire := tidepool.Pipe(0)
	n, err := tidepool.Open(host(tidepool.Config{Clock: &clock}, "10.0.0.1/24", "", x))
	require.NoError(t, err)
	l, err := n.Listen("tcp", ":80")
	require.NoError(t, err)
	accepted := make(chan error, 1)
	go func() {
		_, err := l.Accept()
		accepted <- err
	}()
	require.NoError(t, n.Close())
	require.NoError(t, n.Close())
	require.ErrorIs(t, <-accepted, net.ErrClosed)
	_, err = n.Dial("tcp", "10.0.0.9:1")
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = wire.Read(make([]byte, 1500))
	require.ErrorIs(t, err, io.EOF)
}

// A closed node leaves no timers: no timeouts, no deadlines.
func TestCloseStopsTimers(t *testing.T) {
	var clock tidepool.Clock
	a, b := pair(t, tidepool.Config{Clock: &clock})
	client, server := dial(t, b, a, "10.0.0.1:80")
	l, err := a.ListenTCP(netip.MustParseAddrPort("10.0.0.1:81"))
	require.NoError(t, err)
	u, err := a.ListenUDP(netip.MustParseAddrPort("10.0.0.1:82"))
	require.NoError(t, err)
	require.NoError(t, client.Probe(func(tidepool.Sample) {}))
	require.NoError(t, a.Forward(func(*tidepool.Request) {}))
	accepted := make(chan error, 1)
	require.NoError(t, a.ForwardUDP(func(r *tidepool.UDPRequest) {
		_, err := r.Accept()
		accepted <- err
	}))
	flow, err := b.DialUDP(netip.MustParseAddrPort("10.0.0.1:99"))
	require.NoError(t, err)
	_, err = flow.Write([]byte("open"))
	require.NoError(t, err)
	require.NoError(t, <-accepted)
	soon := clock.Now().Add(time.Hour)
	for _, set := range []func(time.Time) error{
		client.SetDeadline, server.SetDeadline, l.SetDeadline, u.SetDeadline,
	} {
		require.NoError(t, set(soon))
	}
	_, ok := clock.Next()
	require.True(t, ok)
	require.NoError(t, a.Close())
	require.NoError(t, b.Close())
	_, ok = clock.Next()
	assert.False(t, ok)
	_, err = client.Read(make([]byte, 1))
	require.Error(t, err)
	_, err = server.Write(make([]byte, 1))
	require.ErrorIs(t, err, net.ErrClosed)
}

// Without a Clock, nodes on pipes run in the time of a synctest bubble.
func TestNodesInBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		x, wire := tidepool.Pipe(0)
		n, err := tidepool.Open(host(tidepool.Config{}, "10.0.0.1/24", "", x))
		require.NoError(t, err)
		_, err = n.Dial("tcp", "10.0.0.9:80")
		require.ErrorIs(t, err, syscall.ETIMEDOUT)
		assert.Equal(t, 127*time.Second, time.Since(begin), "seven SYNs with doubled timeouts")
		require.NoError(t, n.Close())
		syns := 0
		for buf := make([]byte, 1500); ; syns++ {
			if _, ok := wire.TryRead(buf); !ok {
				break
			}
		}
		assert.Equal(t, 7, syns)
	})
}

func TestErrorsAreSystemErrors(t *testing.T) {
	a, b := pair(t, tidepool.Config{Hosts: map[string]netip.Addr{"b": addr("10.0.0.2")}})
	_, err := a.Dial("tcp", "10.0.0.2:9")
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	var op *net.OpError
	require.ErrorAs(t, err, &op)
	assert.Equal(t, "dial tcp 10.0.0.2:9: connection refused", err.Error())
	l, err := b.Listen("tcp", ":80")
	require.NoError(t, err)
	_, err = b.Listen("tcp", ":80")
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	require.NoError(t, l.(*tidepool.Listener).SetDeadline(time.Unix(1, 0)))
	_, err = l.Accept()
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.NoError(t, l.Close())
	_, err = l.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = a.DialContext(ctx, "tcp", "10.0.0.77:80")
	require.ErrorIs(t, err, context.Canceled)
	ctx, cancel = context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err = a.DialContext(ctx, "tcp", "10.0.0.77:80")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	var timeout net.Error
	require.ErrorAs(t, err, &timeout)
	assert.True(t, timeout.Timeout())
}

func TestInvalidAddresses(t *testing.T) {
	a, b := pair(t, tidepool.Config{Hosts: map[string]netip.Addr{"b": addr("10.0.0.2")}})
	for _, bad := range []struct{ network, address, say string }{
		{"tcp6", "10.0.0.2:80", "no suitable address found"},
		{"unix", "socket", "unknown network unix"},
		{"tcp", "10.0.0.2", "missing port"},
		{"tcp", "10.0.0.2:no-such-service", "unknown port"},
		{"tcp", "nobody:80", "no such host"},
		{"tcp4", "[::1]:80", "no suitable address found"},
	} {
		_, err := a.Dial(bad.network, bad.address)
		require.ErrorContains(t, err, bad.say)
		_, err = a.Listen(bad.network, bad.address)
		require.ErrorContains(t, err, bad.say)
		_, err = a.ListenPacket(bad.network, bad.address)
		require.Error(t, err)
	}
	var dns *net.DNSError
	_, err := a.Dial("udp", "nobody:80")
	require.ErrorAs(t, err, &dns)
	l, err := b.Listen("tcp4", "b:http")
	require.NoError(t, err)
	defer l.Close()
	assert.Equal(t, "10.0.0.2:80", l.Addr().String())
	c, err := a.Dial("tcp4", "b:http")
	require.NoError(t, err)
	require.NoError(t, c.Close())
	c, err = b.Dial("tcp", ":80") // the node itself
	require.NoError(t, err)
	require.NoError(t, c.Close())
}

func TestInvalidConfigs(t *testing.T) {
	end := func() *tidepool.PipeEnd { a, _ := tidepool.Pipe(0); return a }
	face := func(change func(*tidepool.Interface)) tidepool.Config {
		f := tidepool.Interface{Addr: prefix("10.0.0.1/24"), Link: end()}
		change(&f)
		return tidepool.Config{Interfaces: []tidepool.Interface{f}}
	}
	for say, cfg := range map[string]tidepool.Config{
		"bad configuration: Interfaces": {},
		"must be an address":            face(func(f *tidepool.Interface) { f.Addr = netip.Prefix{} }),
		"MTU 60":                        face(func(f *tidepool.Interface) { f.MTU = 60 }),
		"must have a Link":              face(func(f *tidepool.Interface) { f.Link = nil }),
		"share 2":                       face(func(f *tidepool.Interface) { f.Impair.Loss = 2 }),
		"jitter":                        face(func(f *tidepool.Interface) { f.Impair.Jitter = 1 }),
		"Kernel":                        face(func(f *tidepool.Interface) { f.Kernel = addr("10.0.0.2") }),
		"Kernel must be IPv4, Kernel6 IPv6": face(func(f *tidepool.Interface) {
			f.Link, f.TUN, f.Kernel, f.Kernel6 = nil, "tide9", addr("10.0.0.2"), addr("10.0.0.3")
		}),
		"Link and UDP cannot be used together": face(func(f *tidepool.Interface) {
			f.UDP = "127.0.0.1:1"
		}),
		"port": face(func(f *tidepool.Interface) { f.Link, f.UDP = nil, "127.0.0.1:x" }),
		"neighbor": face(func(f *tidepool.Interface) {
			f.Neighbors = []tidepool.Neighbor{{Addr: addr("10.0.0.2"), UDP: "127.0.0.1:1"}}
		}),
		"two interfaces have the name if1": {Interfaces: []tidepool.Interface{
			{Name: "if1", Addr: prefix("10.0.0.1/24"), Link: end()},
			{Addr: prefix("10.1.0.1/24"), Link: end()},
		}},
		"next hop": {
			Interfaces: []tidepool.Interface{{Addr: prefix("10.0.0.1/24"), Link: end()}},
			Routes:     []tidepool.Route{{Prefix: prefix("0.0.0.0/0"), Via: addr("10.1.0.1")}},
		},
		"ECN": {
			Interfaces: []tidepool.Interface{{Addr: prefix("10.0.0.1/24"), Link: end()}},
			TCP:        tidepool.TCP{ECN: "maybe"},
		},
		"vegas": {
			Interfaces: []tidepool.Interface{{Addr: prefix("10.0.0.1/24"), Link: end()}},
			TCP:        tidepool.TCP{CongestionControl: "vegas"},
		},
		"cannot be used with a Clock": {
			Interfaces: []tidepool.Interface{{Addr: prefix("10.0.0.1/24"), UDP: "127.0.0.1:5999"}},
			Clock:      &tidepool.Clock{},
		},
	} {
		_, err := tidepool.Open(cfg)
		require.ErrorContains(t, err, say)
		if say != "cannot be used with a Clock" {
			require.ErrorContains(t, err, "tidepool: bad configuration: ")
		}
		for i := range cfg.Interfaces {
			if l := cfg.Interfaces[i].Link; l != nil {
				_, err := l.Read(make([]byte, 1))
				require.Error(t, err, "%s: Open closes its links when it fails", say)
			}
		}
	}
}

// A link end that is attached to a node cannot be attached to another.
func TestLinkHasOneNode(t *testing.T) {
	x, y := tidepool.Pipe(0)
	a := open(t, host(tidepool.Config{}, "10.0.0.1/24", "", x))
	_, err := tidepool.Open(host(tidepool.Config{}, "10.0.0.3/24", "", x))
	require.ErrorContains(t, err, "already attached to a node")
	_, err = x.Write([]byte{1})
	require.ErrorContains(t, err, "already attached to a node")
	b := open(t, host(tidepool.Config{}, "10.0.0.2/24", "", y))
	client, server := dial(t, b, a, "10.0.0.1:80")
	require.NoError(t, client.Close())
	require.NoError(t, server.Close())
}

func TestOpenFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.lnx")
	_, err := tidepool.OpenFile(path)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.WriteFile(path, []byte("interface if0\n"), 0o600))
	_, err = tidepool.OpenFile(path)
	require.ErrorContains(t, err, "a.lnx:1")
	ports := testenv.FreePorts(t, 1)
	text := fmt.Sprintf("interface if0 10.0.0.1/24 127.0.0.1:%d\n", ports[0])
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	n, err := tidepool.OpenFile(path)
	require.NoError(t, err)
	assert.Equal(t, []netip.Addr{addr("10.0.0.1")}, n.Addrs())
	require.NoError(t, n.Close())
}

// After CloseRead and CloseWrite, calls return the same errors as in net.TCPConn.
func TestHalfClosedErrors(t *testing.T) {
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

// A Read that waits after a half-close keeps the deadline that was set before.
func TestDeadlineOutlivesCloseWrite(t *testing.T) {
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

// As in net, an expired deadline fails a Read before it reads, and an empty Read never fails.
func TestEmptyReadIgnoresDeadline(t *testing.T) {
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

// System error numbers for addresses that are invalid or missing.
func TestAddressErrorsHaveNumbers(t *testing.T) {
	a, _ := pair(t, tidepool.Config{})
	_, err := a.Dial("tcp", "10.0.0.2:0")
	require.ErrorIs(t, err, syscall.EADDRNOTAVAIL)
	_, err = a.DialTCP(t.Context(), netip.AddrPortFrom(netip.Addr{}, 80))
	require.ErrorIs(t, err, syscall.EAFNOSUPPORT)
	u, err := a.ListenUDP(netip.AddrPort{})
	require.NoError(t, err)
	_, err = u.Write([]byte("x"))
	require.ErrorIs(t, err, syscall.EDESTADDRREQ)
	require.NoError(t, u.Close())
}

// A closed connection returns net.ErrClosed even after its deadline.
func TestClosedTakesPrecedenceOverDeadline(t *testing.T) {
	t.Parallel()
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

// Setting a deadline after the end of a connection starts no timer.
func TestDeadlineAfterReset(t *testing.T) {
	var clock tidepool.Clock
	a, b := pair(t, tidepool.Config{Clock: &clock})
	client, server := dial(t, b, a, "10.0.0.1:80")
	require.NoError(t, client.SetDeadline(clock.Now().Add(time.Hour)))
	require.NoError(t, server.SetLinger(0))
	require.NoError(t, server.Close())
	require.NoError(t, client.SetDeadline(clock.Now().Add(2*time.Hour)))
	_, err := client.Read(make([]byte, 1))
	require.ErrorIs(t, err, syscall.ECONNRESET)
	require.ErrorIs(t, client.CloseWrite(), syscall.ECONNRESET, "the written data is lost")
	_, ok := clock.Next()
	assert.False(t, ok, "no timer is left")
	require.NoError(t, client.SetDeadline(clock.Now()))
	_, err = client.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.NoError(t, client.SetDeadline(time.Time{}))
	_, err = client.Read(make([]byte, 1))
	require.ErrorIs(t, err, syscall.ECONNRESET)
}

// IPv4-mapped IPv6 addresses are IPv4, as in net.
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

// A clock never moves back, and stops at its maximum.
func TestClockEnd(t *testing.T) {
	var clock tidepool.Clock
	begin := clock.Now()
	clock.Advance(-time.Hour)
	assert.Equal(t, begin, clock.Now())
	for range 3 {
		clock.Advance(1 << 62)
		assert.Equal(t, 2146, clock.Now().Year())
	}
}

func TestRoutesAtRunTime(t *testing.T) {
	_, left := tidepool.Pipe(0)
	_, right := tidepool.Pipe(0)
	n := open(t, tidepool.Config{
		Interfaces: []tidepool.Interface{
			{Addr: netip.MustParsePrefix("10.0.0.1/24"), Link: left},
			{Addr: netip.MustParsePrefix("10.1.0.1/24"), Link: right},
		},
		Router: true,
		Routes: []tidepool.Route{
			{Prefix: netip.MustParsePrefix("0.0.0.0/0"), Via: netip.MustParseAddr("10.0.0.9")},
			{
				Prefix: netip.MustParsePrefix("0.0.0.0/0"), Via: netip.MustParseAddr("10.1.0.9"),
				Metric: 5,
			},
			{Prefix: netip.MustParsePrefix("10.9.0.0/16"), Kind: "unreachable"},
		},
	})
	table := func() (list []string) {
		routes, err := n.Routes()
		require.NoError(t, err)
		for _, r := range routes {
			via := r.Kind
			if r.Via.IsValid() {
				via = r.Via.String()
			}
			list = append(list, r.Prefix.String()+" "+via+" "+r.Interface+" "+r.Origin)
		}
		return list
	}
	assert.Equal(t, []string{
		"0.0.0.0/0 10.0.0.9 if0 static", "10.0.0.0/24  if0 local", "10.1.0.0/24  if1 local",
		"10.9.0.0/16 unreachable  static",
	}, table())
	require.NoError(t, n.SetUp("if0", false))
	assert.Equal(t, []string{
		"0.0.0.0/0 10.1.0.9 if1 static", "10.1.0.0/24  if1 local",
		"10.9.0.0/16 unreachable  static",
	}, table(), "the second default route is used")
	require.NoError(t, n.SetUp("if0", true))

	host := tidepool.Route{
		Prefix: netip.MustParsePrefix("10.7.0.7/32"), Via: netip.MustParseAddr("10.1.0.3"),
	}
	require.NoError(t, n.AddRoute(host))
	require.ErrorIs(t, n.AddRoute(host), syscall.EEXIST)
	assert.Contains(t, table(), "10.7.0.7/32 10.1.0.3 if1 static")
	require.NoError(t, n.DelRoute(host.Prefix, netip.Addr{}))
	require.ErrorIs(t, n.DelRoute(host.Prefix, netip.Addr{}), syscall.ESRCH)
	host.Via = netip.MustParseAddr("10.5.0.3")
	require.ErrorIs(t, n.AddRoute(host), syscall.ENETUNREACH)
	host.Prefix = netip.MustParsePrefix("10.7.0.7/16")
	err := n.AddRoute(host)
	require.ErrorIs(t, err, syscall.EINVAL)
	assert.ErrorContains(t, err, "did you mean 10.7.0.0/16?")
	require.Error(t, n.AddRoute(tidepool.Route{Prefix: host.Prefix.Masked(), Kind: "scenic"}))
	require.Error(t, n.AddRoute(tidepool.Route{Prefix: host.Prefix.Masked(), Metric: -1}))

	var none tidepool.Node
	require.Error(t, none.AddRoute(host))
	require.Error(t, none.DelRoute(host.Prefix, netip.Addr{}))
	_, err = none.Routes()
	require.ErrorIs(t, err, syscall.EINVAL)
	for _, r := range []tidepool.Route{
		{Prefix: netip.MustParsePrefix("0.0.0.0/0"), Via: netip.MustParseAddr("10.8.0.9"), Metric: 1},
		{Prefix: netip.MustParsePrefix("0.0.0.0/0"), Kind: "scenic"},
		{Prefix: netip.MustParsePrefix("0.0.0.0/0"), Kind: "blackhole", Via: host.Via},
		{Prefix: netip.MustParsePrefix("0.0.0.0/0"), Via: netip.MustParseAddr("10.0.0.9"), Metric: -1},
	} {
		_, end := tidepool.Pipe(0)
		_, err = tidepool.Open(tidepool.Config{
			Interfaces: []tidepool.Interface{{Addr: netip.MustParsePrefix("10.0.0.1/24"), Link: end}},
			Routes:     []tidepool.Route{r},
		})
		require.Error(t, err, "%v", r)
	}
}

func ExampleNode_AddRoute() {
	_, end := tidepool.Pipe(0)
	n, err := tidepool.Open(tidepool.Config{
		Interfaces: []tidepool.Interface{{Addr: netip.MustParsePrefix("10.0.0.1/24"), Link: end}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer n.Close()
	for _, r := range []tidepool.Route{
		{Prefix: netip.MustParsePrefix("0.0.0.0/0"), Via: netip.MustParseAddr("10.0.0.2")},
		{Prefix: netip.MustParsePrefix("192.168.0.0/16"), Kind: "unreachable"},
	} {
		if err := n.AddRoute(r); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(n.AddRoute(tidepool.Route{
		Prefix: netip.MustParsePrefix("10.5.1.0/16"), Via: netip.MustParseAddr("10.0.0.2"),
	}))
	routes, err := n.Routes()
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range routes {
		fmt.Println(r.Origin, r.Prefix, r.Kind, r.Interface)
	}
	// Output:
	// 10.5.1.0/16: invalid prefix: it has bits beyond its length; did you mean 10.5.0.0/16?
	// static 0.0.0.0/0  if0
	// local 10.0.0.0/24  if0
	// static 192.168.0.0/16 unreachable
}
