package tidepool_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool"
)

// A link's rate and delay, to the nanosecond: a packet of 1000 bytes takes 1 ms at a megabyte a
// second, and packets queue.
func TestImpairmentsObeyTheClock(t *testing.T) {
	var clock tidepool.Clock
	x, y := tidepool.Pipe(0)
	cfg := host(tidepool.Config{Clock: &clock}, "10.0.0.1/24", "", x)
	cfg.Interfaces[0].Impair = tidepool.Impairments{Delay: 10 * time.Millisecond, Rate: 8e6}
	a := open(t, cfg)
	b := open(t, host(tidepool.Config{Clock: &clock}, "10.0.0.2/24", "", y))
	u, err := b.ListenPacket("udp", ":9")
	require.NoError(t, err)
	c, err := a.Dial("udp", "10.0.0.2:9")
	require.NoError(t, err)
	for range 3 {
		_, err = c.Write(make([]byte, 972)) // a packet of 1000 bytes
		require.NoError(t, err)
	}
	require.NoError(t, u.SetReadDeadline(clock.Now().Add(time.Second)))
	const ms = time.Millisecond
	for _, wait := range []time.Duration{11 * ms, ms, ms} {
		next, ok := clock.Next()
		require.True(t, ok)
		assert.Equal(t, wait, next)
		clock.Advance(next)
		n, _, err := u.ReadFrom(make([]byte, 2000))
		require.NoError(t, err)
		assert.Equal(t, 972, n)
	}
}

// datagrams is a link that the program implements, here with one end of a Pipe.
type datagrams struct{ io.ReadWriteCloser }

// Any io.ReadWriteCloser can carry a node's packets.
func TestCustomLink(t *testing.T) {
	x, y := tidepool.Pipe(0)
	var nodes []*tidepool.Node
	for i, l := range []io.ReadWriteCloser{datagrams{x}, datagrams{y}} {
		nodes = append(nodes, open(t, tidepool.Config{Interfaces: []tidepool.Interface{{
			Addr: prefix([]string{"10.0.0.1/24", "10.0.0.2/24"}[i]), Link: l,
		}}}))
	}
	client, server := dial(t, nodes[1], nodes[0], "10.0.0.1:80")
	want := text(1, 300_000)
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := client.Write(want)
		assert.NoError(t, err)
		assert.NoError(t, client.CloseWrite())
	})
	got, err := io.ReadAll(server)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(want, got))
	wg.Wait()
}

// Reads return the packets left in a closed pipe, then io.EOF; writes to the closed end fail.
func TestClosedPipe(t *testing.T) {
	a, b := tidepool.Pipe(2)
	for i := range 2 {
		_, err := a.Write([]byte{byte(i)})
		require.NoError(t, err)
	}
	wrote := make(chan error, 1)
	go func() {
		_, err := a.Write([]byte{2}) // the pipe is full
		wrote <- err
	}()
	p := make([]byte, 10)
	for i := range 3 {
		n, err := b.Read(p)
		require.NoError(t, err)
		assert.Equal(t, []byte{byte(i)}, p[:n])
	}
	require.NoError(t, <-wrote)
	_, err := a.Write(nil)
	require.Error(t, err, "an empty packet")
	_, ok := b.TryRead(p)
	assert.False(t, ok)
	_, err = b.Write([]byte("last"))
	require.NoError(t, err)
	require.NoError(t, b.Close())
	_, err = b.Write([]byte("too late"))
	require.ErrorIs(t, err, net.ErrClosed)
	n, err := a.Read(p)
	require.NoError(t, err)
	assert.Equal(t, "last", string(p[:n]))
	_, err = a.Read(p)
	require.ErrorIs(t, err, io.EOF)
}

// A full pipe blocks the sender: a slow reader loses no packet of a fast writer. No time passes, so
// nothing is retransmitted.
func TestFullPipeBlocksWriter(t *testing.T) {
	var clock tidepool.Clock
	x, y := tidepool.Pipe(4)
	a := open(t, host(tidepool.Config{Clock: &clock}, "10.0.0.1/24", "", x))
	b := open(t, host(tidepool.Config{Clock: &clock}, "10.0.0.2/24", "", y))
	client, server := dial(t, b, a, "10.0.0.1:80")
	want := text(2, 3_000_000)
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := client.Write(want)
		assert.NoError(t, err)
		info, err := client.Info()
		assert.NoError(t, err)
		assert.Zero(t, info.TotalRetrans)
		assert.NoError(t, client.CloseWrite())
	})
	got, err := io.ReadAll(server)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(want, got))
	wg.Wait()
}

func TestNodesSpeakRIP(t *testing.T) {
	for _, v2 := range []bool{false, true} {
		t.Run(fmt.Sprintf("RIPv2 %v", v2), func(t *testing.T) { speakRIP(t, v2) })
	}
	_, err := tidepool.Open(tidepool.Config{
		RIP: true, RIPv2: true,
		Interfaces: []tidepool.Interface{{Addr: prefix("10.0.0.1/24"), UDP: "127.0.0.1:5950"}},
	})
	require.ErrorContains(t, err, "RIP and RIPv2 cannot be used together")
}

func speakRIP(t *testing.T, v2 bool) {
	t.Helper()
	var clock tidepool.Clock
	var nodes []*tidepool.Node
	ends := make([]*tidepool.PipeEnd, 4)
	for i := 0; i < 4; i += 2 {
		ends[i], ends[i+1] = tidepool.Pipe(0)
	}
	near := func(address, neighbor string, end *tidepool.PipeEnd) tidepool.Interface {
		return tidepool.Interface{
			Addr: prefix(address), Link: end,
			Neighbors: []tidepool.Neighbor{{Addr: addr(neighbor)}},
		}
	}
	for _, faces := range [][]tidepool.Interface{
		{near("10.0.0.1/24", "10.0.0.2", ends[0])},
		{near("10.0.0.2/24", "10.0.0.1", ends[1]), near("10.1.0.1/24", "10.1.0.2", ends[2])},
		{near("10.1.0.2/24", "10.1.0.1", ends[3])},
	} {
		nodes = append(nodes, open(t, tidepool.Config{
			RIP: !v2, RIPv2: v2, Clock: &clock, Interfaces: faces,
		}))
	}
	clock.Advance(5 * time.Second)
	client, _ := dial(t, nodes[2], nodes[0], "10.0.0.1:80")
	assert.Equal(t, "10.1.0.2", client.LocalAddr().(*net.TCPAddr).IP.String())
	require.NoError(t, nodes[1].SetUp("if1", false))
	clock.Advance(5 * time.Second) // RFC 2453 §3.10.1: the longest delay of a triggered update
	_, err := nodes[0].Dial("tcp", "10.1.0.2:80")
	require.ErrorContains(t, err, "no route")
	require.Error(t, nodes[1].SetUp("if9", true))
}

func TestImpairAtRunTime(t *testing.T) {
	var clock tidepool.Clock
	near, far := tidepool.Pipe(0)
	n, err := tidepool.Open(tidepool.Config{
		Clock: &clock,
		Interfaces: []tidepool.Interface{{
			Addr: netip.MustParsePrefix("10.0.0.1/24"), Link: near,
			Impair: tidepool.Impairments{Loss: 0.5, Words: "seed 7"},
		}},
	})
	require.NoError(t, err)
	defer n.Close()
	infos, err := n.Impairments()
	require.NoError(t, err)
	require.Len(t, infos, 2)
	assert.Equal(t, "loss 50% seed 7", infos[0].Words)
	assert.Equal(t, []tidepool.Way{tidepool.Out, tidepool.In},
		[]tidepool.Way{infos[0].Way, infos[1].Way})

	require.NoError(t, n.Impair("if0", tidepool.In, tidepool.Impairments{Words: "drop 2"}))
	require.NoError(t, n.Impair("if0", tidepool.Out, tidepool.Impairments{Delay: time.Second}))
	for range 3 {
		_, err := far.Write(echo())
		require.NoError(t, err)
	}
	infos, err = n.Impairments()
	require.NoError(t, err)
	assert.Equal(t, []uint64{3, 1, 2}, []uint64{infos[1].Seen, infos[1].Lost, infos[1].Passed})
	assert.Equal(t, 2, infos[0].Inside, "the replies are in flight")
	packet := make([]byte, 100)
	_, ok := far.TryRead(packet)
	assert.False(t, ok)
	clock.Advance(time.Second)
	for range 2 {
		_, ok := far.TryRead(packet)
		assert.True(t, ok)
	}
	require.NoError(t, n.Impair("if0", tidepool.Both, tidepool.Impairments{}))
	_, err = far.Write(echo())
	require.NoError(t, err)
	_, ok = far.TryRead(packet)
	assert.True(t, ok, "as before")

	err = n.Impair("if0", tidepool.Out, tidepool.Impairments{Words: "lss 2%"})
	assert.ErrorContains(t, err, `"lss" is not an impairment (did you mean loss?)`)
	assert.ErrorContains(t, n.Impair("if0", "up", tidepool.Impairments{}), "must be in, out or both")
	assert.Error(t, n.Impair("if9", tidepool.Out, tidepool.Impairments{}))
	assert.Error(t, n.Impair("if0", tidepool.Out, tidepool.Impairments{Loss: 2}))
	assert.Error(t, new(tidepool.Node).Impair("if0", tidepool.Out, tidepool.Impairments{}))
	_, err = new(tidepool.Node).Impairments()
	assert.Error(t, err)
}

// echo returns an echo request from 10.0.0.2 to 10.0.0.1 with checksums.
func echo() []byte {
	return []byte{
		0x45, 0, 0, 28, 0, 0, 0, 0, 64, 1, 0x66, 0xdf, 10, 0, 0, 2, 10, 0, 0, 1,
		8, 0, 0xf7, 0xff, 0, 0, 0, 0,
	}
}

// The same seed drops the same packets.
func TestImpairmentsSeed(t *testing.T) {
	i := tidepool.Impairments{Loss: 0.5, Seed: 7}
	assert.Equal(t, "loss 50% seed 7", i.String())
	assert.Equal(t, "off", tidepool.Impairments{Seed: 7}.String())
	assert.Equal(t, "delay 1s 0s seed 7", tidepool.Impairments{Delay: time.Second, Seed: 7}.String())
	lost := func(seed uint64) (pattern string) {
		var clock tidepool.Clock
		near, far := tidepool.Pipe(0)
		n, err := tidepool.Open(tidepool.Config{
			Clock: &clock,
			Interfaces: []tidepool.Interface{{
				Addr: netip.MustParsePrefix("10.0.0.1/24"), Link: near,
			}},
		})
		require.NoError(t, err)
		defer n.Close()
		require.NoError(t, n.Impair("if0", tidepool.In, tidepool.Impairments{Loss: 0.5, Seed: seed}))
		packet := make([]byte, 100)
		for range 64 {
			_, err := far.Write(echo())
			require.NoError(t, err)
			_, ok := far.TryRead(packet)
			pattern += map[bool]string{true: "+", false: "-"}[ok]
		}
		return pattern
	}
	first := lost(7)
	assert.Equal(t, first, lost(7))
	assert.NotEqual(t, first, lost(8))
}

func TestOpenPairErrors(t *testing.T) {
	_, _, err := tidepool.OpenPair(tidepool.Impairments{Loss: 2})
	assert.ErrorContains(t, err, "share 2: must be 0 to 1")
}

func TestVirErrors(t *testing.T) {
	a, b := pair(t, tidepool.Config{})
	v, ctx := a.Vir(), t.Context()
	var typed tidepool.VirError
	err := v.Listen(9)
	require.ErrorAs(t, err, &typed)
	assert.Equal(t, tidepool.ErrUninitialSocket, typed)
	require.ErrorIs(t, v.Listen(2), tidepool.ErrInvalidSocket)
	s, err := v.Socket()
	require.NoError(t, err)
	require.ErrorIs(t, v.Bind(s, 80), tidepool.ErrInvalidPort)
	require.ErrorIs(t, v.Listen(s), tidepool.ErrUnboundSocket)
	require.NoError(t, v.Bind(s, 5000))
	require.ErrorIs(t, v.Bind(s, 5001), tidepool.ErrBoundedSocket)
	other, err := a.Vir().Socket()
	require.NoError(t, err)
	assert.Equal(t, 4, other, "the same descriptor table")
	require.ErrorIs(t, v.Bind(other, 5000), tidepool.ErrUsedPort)
	require.NoError(t, v.Listen(s))
	require.ErrorIs(t, v.ShutDown(s, tidepool.ShutRead), tidepool.ErrServerCannotShutdown)

	w := b.Vir()
	c, err := w.Socket()
	require.NoError(t, err)
	require.NoError(t, w.Connect(ctx, c, netip.AddrPortFrom(a.Addrs()[0], 5000)))
	in, err := v.Accept(ctx, s)
	require.NoError(t, err)
	require.NoError(t, w.ShutDown(c, tidepool.ShutRead))
	_, err = w.Read(ctx, c, make([]byte, 1))
	require.ErrorIs(t, err, tidepool.ErrReadBlock)
	require.NoError(t, w.ShutDown(c, tidepool.ShutWrite))
	_, err = v.Read(ctx, in, make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	require.NoError(t, v.ShutDown(s, tidepool.ShutBoth))
	_, err = v.Accept(ctx, s)
	require.ErrorIs(t, err, tidepool.ErrServerHasClose)
}

// Calls wait for the peer, for data and for room in the send buffer.
func TestVirCallsWait(t *testing.T) {
	a, b := pair(t, tidepool.Config{})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	va, vb := a.Vir(), b.Vir()
	server, err := vb.Socket()
	require.NoError(t, err)
	require.NoError(t, vb.Bind(server, 5000))
	require.NoError(t, vb.Listen(server))
	const size = 3 << 20
	got := make(chan int)
	go func() {
		total := 0
		defer func() { got <- total }()
		h, err := vb.Accept(ctx, server)
		if !assert.NoError(t, err) {
			return
		}
		for buf := make([]byte, 64<<10); err == nil; {
			var n int
			n, err = vb.Read(ctx, h, buf)
			total += n
		}
		assert.Equal(t, io.EOF, err)
		assert.NoError(t, vb.Close(h))
	}()
	client, err := va.Socket()
	require.NoError(t, err)
	require.NoError(t, va.Connect(ctx, client, netip.AddrPortFrom(b.Addrs()[0], 5000)))
	n, err := va.Write(ctx, client, make([]byte, size))
	require.NoError(t, err)
	assert.Equal(t, size, n)
	require.NoError(t, va.ShutDown(client, tidepool.ShutWrite))
	_, err = va.Write(ctx, client, []byte("x"))
	require.ErrorIs(t, err, tidepool.ErrWriteBlock)
	assert.Equal(t, size, <-got)
	require.NoError(t, va.Close(client))
	short, stop := context.WithCancel(ctx)
	stop()
	_, err = vb.Accept(short, server)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, vb.Close(server))
}

// A closed node resets the connections of its Vir.
func TestVirConnectionsOfAClosedNodeAreReset(t *testing.T) {
	a, b := pair(t, tidepool.Config{})
	l, err := b.ListenTCP(netip.AddrPortFrom(b.Addrs()[0], 5000))
	require.NoError(t, err)
	h, err := a.Vir().Socket()
	require.NoError(t, err)
	require.NoError(t, a.Vir().Connect(t.Context(), h, netip.AddrPortFrom(b.Addrs()[0], 5000)))
	c, err := l.Accept()
	require.NoError(t, err)
	require.NoError(t, a.Close())
	_, err = c.Read(make([]byte, 1))
	require.ErrorIs(t, err, syscall.ECONNRESET)
}

// The calls return the package's error constants, whose texts contain the document's names.
func TestVirErrorsByName(t *testing.T) {
	all := map[string]tidepool.VirError{
		"BoundedSocketException":        tidepool.ErrBoundedSocket,
		"DestinationUnreadable":         tidepool.ErrDestinationUnreadable,
		"ErrorTCPStateException":        tidepool.ErrErrorTCPState,
		"InvalidPortException":          tidepool.ErrInvalidPort,
		"InvalidSocketException":        tidepool.ErrInvalidSocket,
		"PortUsedUpException":           tidepool.ErrPortUsedUp,
		"ReadblockException":            tidepool.ErrReadBlock,
		"ServerCannotShutdownException": tidepool.ErrServerCannotShutdown,
		"ServerHasCloseException":       tidepool.ErrServerHasClose,
		"ServerClosedException":         tidepool.ErrServerClosed,
		"SocketUsedUpException":         tidepool.ErrSocketUsedUp,
		"UnboundSocketException":        tidepool.ErrUnboundSocket,
		"UninitialSocketException":      tidepool.ErrUninitialSocket,
		"UsedPortException":             tidepool.ErrUsedPort,
		"WriteBlockException":           tidepool.ErrWriteBlock,
	}
	assert.Len(t, all, 15)
	for name, e := range all {
		assert.True(t, strings.HasPrefix(e.Error(), name+":"), "%s: %v", name, e)
	}
}

// Founding document 004 §7: buffers of 65535 bytes, timeouts from 10 ms.
func TestProfile004(t *testing.T) {
	a, b := pair(t, tidepool.Config{TCP: tidepool.TCP{Profile: "004"}})
	client, _ := dial(t, b, a, "10.0.0.1:80")
	i, err := client.Info()
	require.NoError(t, err)
	assert.Equal(t, 65535, i.SndBuf)
	assert.GreaterOrEqual(t, i.RTO, 10*time.Millisecond)
	assert.Less(t, i.RTO, 200*time.Millisecond, "not the default's minimum")
	x, _ := tidepool.Pipe(0)
	_, err = tidepool.Open(host(
		tidepool.Config{TCP: tidepool.TCP{Profile: "005"}}, "10.0.0.1/24", "", x))
	require.ErrorContains(t, err, "TCP.Profile")
}

// The zero Node returns a closed table.
func TestVirOfZeroNode(t *testing.T) {
	_, err := new(tidepool.Node).Vir().Socket()
	require.ErrorIs(t, err, net.ErrClosed)
}

// A crashed node sends nothing, not even the reset of a connection, and another node can take its
// place on the link.
func TestCrashAndReopen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, y := tidepool.Pipe(0)
		first := open(t, host(tidepool.Config{}, "10.0.0.1/24", "", x))
		peer := open(t, host(tidepool.Config{}, "10.0.0.2/24", "", y))
		ln, err := first.Listen("tcp", ":80")
		require.NoError(t, err)
		c, err := peer.Dial("tcp", "10.0.0.1:80")
		require.NoError(t, err)
		blocked := make(chan error)
		go func() {
			accepted, err := ln.Accept()
			assert.NoError(t, err)
			_, err = accepted.Read(make([]byte, 1))
			blocked <- err
		}()
		synctest.Wait()
		require.NoError(t, first.Crash())
		require.ErrorIs(t, <-blocked, net.ErrClosed)
		require.NoError(t, c.SetReadDeadline(time.Now().Add(time.Minute)))
		_, err = c.Read(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded, "neither FIN nor RST arrived")

		_, err = c.Write([]byte("into the void"))
		require.NoError(t, err)
		x.Reopen()
		second := open(t, host(tidepool.Config{}, "10.0.0.1/24", "", x))
		ln, err = second.Listen("tcp", ":80")
		require.NoError(t, err)
		require.NoError(t, c.SetReadDeadline(time.Now().Add(time.Minute)))
		_, err = c.Read(make([]byte, 1))
		require.ErrorIs(t, err, syscall.ECONNRESET, "the second node does not know the connection")
		c, err = peer.Dial("tcp", "10.0.0.1:80")
		require.NoError(t, err)
		require.NoError(t, c.Close())
		require.NoError(t, ln.Close())
	})
	require.ErrorIs(t, new(tidepool.Node).Crash(), syscall.EINVAL)
}

// A File's links take the place of its sockets. Wrong names and settings are errors, and close the
// links.
func TestFile(t *testing.T) {
	text := []byte("interface if0 10.0.0.1/24 127.0.0.1:5000\nneighbor 10.0.0.2 at 127.0.0.1:5001 via if0\n")
	x, y := tidepool.Pipe(0)
	peer := open(t, host(tidepool.Config{}, "10.0.0.2/24", "", y))
	n, err := (&tidepool.File{
		Path: "A.lnx", Text: text, Links: map[string]io.ReadWriteCloser{"if0": x},
		TCP: &tidepool.TCP{CongestionControl: "reno"},
		Lookup: func(context.Context, string, string) ([]netip.Addr, error) {
			return []netip.Addr{addr("10.0.0.2")}, nil
		},
	}).Open()
	require.NoError(t, err)
	defer n.Close()
	ln, err := peer.Listen("tcp", ":80")
	require.NoError(t, err)
	defer ln.Close()
	c, err := n.Dial("tcp", "peer:80")
	require.NoError(t, err)
	info, err := c.(*tidepool.Conn).Info()
	require.NoError(t, err)
	assert.Equal(t, "reno", info.CongestionControl)
	require.NoError(t, c.Close())

	for want, f := range map[string]*tidepool.File{
		"A.lnx:1:1": {Path: "A.lnx", Text: []byte("interfaze\n")},
		"A.lnx has no interface if7": {
			Path: "A.lnx", Text: text, Links: map[string]io.ReadWriteCloser{"if7": x},
		},
		"RTOMin":        {Path: "A.lnx", Text: text, TCP: &tidepool.TCP{RTOMin: -1}},
		"no/such/A.lnx": {Path: "no/such/A.lnx"},
	} {
		a, b := tidepool.Pipe(0)
		if f.Links == nil {
			f.Links = map[string]io.ReadWriteCloser{"if0": a}
		} else {
			f.Links = map[string]io.ReadWriteCloser{"if7": a}
		}
		_, err := f.Open()
		require.ErrorContains(t, err, want)
		_, err = b.Write([]byte("x"))
		require.Error(t, err, "%s: the link is closed", want)
	}
}
