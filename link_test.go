package tidepool_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool"
)

// A link's rate and delay, to the nanosecond: a packet of 1000 bytes takes 1 ms at a
// megabyte a second, and each waits for the one before it.
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

// datagrams is a link that a program implements: an end of a Pipe in disguise.
type datagrams struct{ io.ReadWriteCloser }

// An io.ReadWriteCloser that is nobody's in particular carries a node's packets.
func TestALinkOfTheProgramsOwn(t *testing.T) {
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

// A pulled cable loses what is sent into it, and ends what is read by hand.
func TestAPipeThatIsClosed(t *testing.T) {
	a, b := tidepool.Pipe(2)
	for i := range 2 {
		_, err := a.Write([]byte{byte(i)})
		require.NoError(t, err)
	}
	wrote := make(chan error, 1)
	go func() {
		_, err := a.Write([]byte{2}) // there is no room
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
	require.Error(t, err, "no packet is empty")
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

// The bound of a pipe is back-pressure to whoever sends: a slow reader loses
// nothing of what a fast writer sends. No time passes, so nothing is sent again.
func TestAShortPipeLosesNothing(t *testing.T) {
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
	require.ErrorContains(t, err, "RIP and RIPv2 are given")
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
	clock.Advance(5 * time.Second) // RFC 2453 §3.10.1: as long as news may wait
	_, err := nodes[0].Dial("tcp", "10.1.0.2:80")
	require.ErrorContains(t, err, "no route")
	require.Error(t, nodes[1].SetUp("if9", true))
}
