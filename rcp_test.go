package tidepool_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
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

// testRCP is an RCP for pipes on slow machines.
var testRCP = tidepool.RCP{Tick: time.Millisecond, Timeout: 20 * time.Second, PacketSize: 1024}

// lossyPair is pair with a pipe that loses a fifth of the packets in each direction.
func lossyPair(t *testing.T) (client, server *tidepool.Node) {
	x, y := tidepool.Pipe(0)
	cfg := host(tidepool.Config{Seed: 3}, "10.0.0.1/24", "", x)
	cfg.Interfaces[0].Impair = tidepool.Impairments{Loss: 0.2, Duplicate: 0.01, Reorder: 0.01}
	return open(t, host(tidepool.Config{}, "10.0.0.2/24", "", y)), open(t, cfg)
}

func portOf(l net.Listener) uint16 { return uint16(l.Addr().(*net.UDPAddr).Port) }

func TestRCPNettest(t *testing.T) {
	t.Parallel()
	client, server := lossyPair(t)
	l, err := server.ListenRCP(netip.AddrPort{}, testRCP)
	require.NoError(t, err)
	defer l.Close()
	at := netip.AddrPortFrom(addr("10.0.0.1"), portOf(l))
	d := tidepool.Dialer{Node: client, RCP: testRCP}
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

// The fence and the window both count their retransmissions over a pipe that loses a fifth of the
// packets. Which of them retransmits more shows only in virtual time: on a real machine, a pause
// makes either of them retransmit packets in flight.
func TestRCPWindowAndFence(t *testing.T) {
	client, server := lossyPair(t)
	for _, window := range []bool{false, true} {
		how := testRCP
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
	client, _ := lossyPair(t)
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

// Nodes on a Clock send in its time: written data arrives two Ticks later. A peer that is cut off
// fails after the zero RCP's 3 s, and not before.
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

func serverPort(s *tidepool.RDTServer) netip.AddrPort {
	return netip.AddrPortFrom(addr("10.0.0.1"), uint16(s.Addr().(*net.UDPAddr).Port))
}

// Objects arrive intact over a pipe that loses a fifth of the packets, by retransmission. A sender
// retransmits less if acknowledgments contain the packet that they acknowledge.
func TestRDT(t *testing.T) {
	t.Parallel()
	client, server := lossyPair(t)
	objects := []tidepool.RDTObject{
		{Name: "tide/high", Data: bytes.Repeat([]byte("high water "), 40_000)},
		{Name: "tide/low", Data: []byte("low water")},
		{Name: "nothing"},
	}
	again := map[bool]uint64{}
	for _, cumulative := range []bool{false, true} {
		s, err := server.ServeRDT(netip.AddrPort{}, tidepool.RDT{
			Cumulative: cumulative, Compress: true, Interleave: true, Patience: patience,
		}, objects...)
		require.NoError(t, err)
		how := tidepool.RDT{Checksum: "crc32c", Patience: patience}
		list, err := client.ListRDT(t.Context(), serverPort(s), how)
		require.NoError(t, err)
		require.Len(t, list, 3)
		assert.Equal(t, tidepool.RDTEntry{
			Name: "tide/low", Size: 9, SHA256: sha256.Sum256([]byte("low water")),
		}, list[1])

		got := map[string][]byte{}
		var order []string
		info, err := client.FetchRDT(t.Context(), serverPort(s), how, func(r tidepool.RDTResult) error {
			got[r.Name], order = r.Data, append(order, r.Name)
			assert.Positive(t, r.Done)
			return r.Err
		}, "tide/high", "nothing", "tide/low")
		require.NoError(t, err)
		assert.Equal(t, objects[0].Data, got["tide/high"])
		assert.Equal(t, "low water", string(got["tide/low"]))
		assert.NotNil(t, got["nothing"])
		assert.Equal(t, "tide/high", order[2], "the others do not wait for the large object")
		assert.Greater(t, info.Received, uint64(300))
		assert.Positive(t, info.Requests)
		assert.Positive(t, info.Took)

		flows := s.Served()
		last := flows[len(flows)-1]
		assert.Equal(t, 3, last.Objects)
		assert.Equal(t, addr("10.0.0.2"), last.Client.Addr())
		assert.Greater(t, last.Sent, last.Again)
		again[cumulative] = last.Again
		require.NoError(t, s.Close())
		assert.Empty(t, s.Served())
	}
	assert.Positive(t, again[false])
	assert.Less(t, again[false], again[true])
}

func TestRDTErrors(t *testing.T) {
	client, server := pair(t, tidepool.Config{})
	client, server = server, client
	data := tidepool.RDTObject{Name: "a", Data: []byte("x")}
	for _, how := range []tidepool.RDT{{Window: 40_000}, {Payload: -1}, {Checksum: "crc"}, {Timeout: -1}} {
		_, err := server.ServeRDT(netip.AddrPort{}, how, data)
		require.ErrorIs(t, err, syscall.EINVAL)
		require.ErrorAs(t, err, new(*net.OpError))
	}
	for _, o := range [][]tidepool.RDTObject{{{Name: "../a"}}, {data, data}, {{}}} {
		_, err := server.ServeRDT(netip.AddrPort{}, tidepool.RDT{}, o...)
		require.ErrorIs(t, err, syscall.EINVAL)
	}
	s, err := server.ServeRDT(netip.AddrPort{}, tidepool.RDT{}, data)
	require.NoError(t, err)
	_, err = server.ServeRDT(netip.AddrPortFrom(netip.Addr{}, serverPort(s).Port()), tidepool.RDT{}, data)
	require.ErrorIs(t, err, syscall.EADDRINUSE)

	ctx := t.Context()
	_, err = client.FetchRDT(ctx, serverPort(s), tidepool.RDT{}, nil, "b")
	require.ErrorIs(t, err, fs.ErrNotExist)
	enough := errors.New("enough")
	_, err = client.FetchRDT(ctx, serverPort(s), tidepool.RDT{},
		func(tidepool.RDTResult) error { return enough })
	require.ErrorIs(t, err, enough)
	_, err = client.ListRDT(ctx, serverPort(s), tidepool.RDT{Checksum: "sum"})
	require.ErrorIs(t, err, syscall.EINVAL)
	_, err = client.FetchRDT(ctx, serverPort(s), tidepool.RDT{Checksum: "sum"}, nil)
	require.ErrorIs(t, err, syscall.EINVAL)
	_, err = client.ListRDT(ctx, netip.MustParseAddrPort("192.168.0.1:1"), tidepool.RDT{})
	require.ErrorIs(t, err, syscall.ENETUNREACH)
	canceled, cancel := context.WithCancelCause(ctx)
	cancel(enough)
	_, err = client.ListRDT(canceled, serverPort(s), tidepool.RDT{})
	require.ErrorIs(t, err, enough)

	at := serverPort(s)
	require.NoError(t, s.Close())
	require.ErrorIs(t, s.Close(), net.ErrClosed)
	_, err = client.FetchRDT(ctx, at, tidepool.RDT{}, nil)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	require.NoError(t, server.SetUp("if0", false))
	_, err = client.ListRDT(ctx, at, tidepool.RDT{Patience: 10 * time.Millisecond})
	require.ErrorIs(t, err, syscall.ETIMEDOUT)
	var timeout net.Error
	require.ErrorAs(t, err, &timeout)
	assert.True(t, timeout.Timeout())

	var zero tidepool.Node
	_, err = zero.ServeRDT(netip.AddrPort{}, tidepool.RDT{}, data)
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = zero.FetchRDT(ctx, at, tidepool.RDT{}, nil)
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = zero.ListRDT(ctx, at, tidepool.RDT{})
	require.ErrorIs(t, err, net.ErrClosed)
	require.ErrorIs(t, (&tidepool.RDTServer{}).Close(), net.ErrClosed)
	assert.Empty(t, (&tidepool.RDTServer{}).Served())
}
