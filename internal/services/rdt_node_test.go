package services_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/link"
	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/operator"
	"github.com/tidepool-net/tidepool/internal/operator/operatortest"
	"github.com/tidepool-net/tidepool/internal/rdt"
	"github.com/tidepool-net/tidepool/internal/services"
)

// timeless starts two nodes with a virtual clock, joined in memory. It returns the clock, and a
// function that waits for events that only time causes.
func timeless(t *testing.T) (
	a, b *operator.Node, c *node.Clock, await func(done <-chan error) (time.Duration, error),
) {
	t.Helper()
	c = new(node.Clock)
	x, y := link.Pipe(0)
	file := func(name string, own, peer int) *lnx.Config {
		return testenv.ParseNode(t, name, fmt.Sprintf("interface if0 10.0.0.%d/24 127.0.0.1:%d\n"+
			"neighbor 10.0.0.%d at 127.0.0.1:%d via if0", own, own, peer, peer))
	}
	a = operatortest.Start(t, node.Config{Clock: c, Devices: map[string]link.Device{"if0": x}},
		file("A", 1, 2))
	b = operatortest.Start(t, node.Config{Clock: c, Devices: map[string]link.Device{"if0": y}},
		file("B", 2, 1))
	return a, b, c, func(done <-chan error) (time.Duration, error) {
		began := c.Now()
		for {
			select {
			case err := <-done:
				return c.Now().Sub(began), err
			default:
				c.Advance(10 * time.Millisecond)
			}
		}
	}
}

// A client that requests from a port without an RDT server gets no answer, and reports that when
// its patience ends. A server gives up on a client that is cut off during a transfer.
func TestRDTSilence(t *testing.T) {
	a, b, virtual, await := timeless(t)
	_, err := a.Node.Packets.Listen(netip.MustParseAddrPort("0.0.0.0:7"))
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() {
		_, err := services.ListRDT(context.Background(), b.Node, netip.MustParseAddrPort("10.0.0.1:7"), services.RDTFetch{})
		done <- err
	}()
	took, err := await(done)
	require.ErrorIs(t, err, rdt.ErrSilent)
	require.ErrorIs(t, err, control.ErrTimeout)
	assert.ErrorContains(t, err, "no packet for 10s")
	assert.GreaterOrEqual(t, took, 10*time.Second)

	var ended []rdt.Flow
	s, err := services.ServeRDT(a.Node, netip.MustParseAddrPort("0.0.0.0:9000"), rdt.Config{}, []rdt.Object{
		services.NewObject("a", make([]byte, 100)), services.NewObject("b", make([]byte, 5_000_000)),
	}, func(f rdt.Flow) { ended = append(ended, f) })
	require.NoError(t, err)
	testenv.Ask(t, b, control.Impair{Iface: "if0", Way: control.WayBoth, Words: "delay 5ms"})
	var got []*services.RDTResult
	go func() {
		_, err := services.FetchRDT(context.Background(), b.Node, netip.MustParseAddrPort("10.0.0.1:9000"), services.RDTFetch{
			Each: func(r *services.RDTResult) error { got = append(got, r); return nil },
		})
		done <- err
	}()
	sent := func() uint64 {
		flows := s.Flows()
		if len(flows) == 0 {
			return 0
		}
		return flows[len(flows)-1].Sender.Sent
	}
	for sent() < 300 { // number of packets sent; the object has 3776
		virtual.Advance(time.Millisecond)
	}
	testenv.Ask(t, b, control.SetLink{Iface: "if0"})
	_, err = await(done)
	require.NoError(t, err)
	require.Len(t, got, 2)
	require.NoError(t, got[0].Err)
	require.ErrorIs(t, got[1].Err, rdt.ErrSilent)
	for len(s.Flows()) > 0 {
		virtual.Advance(time.Second)
	}
	require.NotEmpty(t, ended)
	last := ended[len(ended)-1]
	require.ErrorIs(t, last.Err, rdt.ErrSilent)
	assert.Equal(t, 2, last.Objects)
	require.NoError(t, s.Close())
	require.Error(t, s.Close())
}

// Garbage, and valid packets with wrong contents, at most end a flow with an error. They never stop
// the node.
func TestRDTGarbage(t *testing.T) {
	a, b := operatortest.Two(t, node.Config{})
	data := make([]byte, 50_000)
	_, _ = rand.Read(data)
	server, err := services.ServeRDT(a.Node, netip.MustParseAddrPort("0.0.0.0:9000"), rdt.Config{},
		[]rdt.Object{services.NewObject("a", data)}, nil)
	require.NoError(t, err)
	defer server.Close()
	c, err := b.Node.Packets.Dial(netip.MustParseAddrPort("10.0.0.1:9000"))
	require.NoError(t, err)
	defer c.Close()
	junk := make([]byte, 1400)
	for n := range len(junk) {
		_, _ = rand.Read(junk[:n])
		_, err := c.Write(junk[:n])
		require.NoError(t, err)
	}
	var got []byte
	_, err = services.FetchRDT(t.Context(), b.Node, netip.MustParseAddrPort("10.0.0.1:9000"), services.RDTFetch{
		Config: rdt.Config{Patience: 20 * time.Second}, // long, because the machine may be busy
		Each:   func(r *services.RDTResult) error { got = r.Data; return r.Err },
	})
	require.NoError(t, err)
	assert.True(t, bytes.Equal(data, got))

	// This server sends something other than a listing.
	liar, err := rdt.NewSender(rdt.Config{}, [][]byte{[]byte("<html>")})
	require.NoError(t, err)
	l, err := a.Node.Packets.Listen(netip.MustParseAddrPort("0.0.0.0:7"))
	require.NoError(t, err)
	began := time.Now()
	now := func() clock.Time { return clock.Time(time.Since(began)) + 1 }
	go func() {
		buf := make([]byte, 2000)
		for {
			n, from, err := l.ReadFromAddrPort(buf)
			if err != nil {
				return
			}
			liar.Input(now(), buf[:n])
			for p, ok := liar.Output(now(), nil); ok; p, ok = liar.Output(now(), nil) {
				_, _ = l.WriteToAddrPort(p, from)
			}
		}
	}()
	_, err = services.ListRDT(t.Context(), b.Node, netip.MustParseAddrPort("10.0.0.1:7"), services.RDTFetch{})
	require.ErrorIs(t, err, rdt.ErrMalformed)
	require.NoError(t, l.Close())
}

// More objects than one flow carries are fetched in several flows. An error of the store ends the
// fetch.
func TestRDTManyObjects(t *testing.T) {
	a, b := operatortest.Two(t, node.Config{})
	var objects []rdt.Object
	for i := range 600 {
		objects = append(objects, services.NewObject(strings.Repeat("x", i+1), make([]byte, i)))
	}
	on := netip.MustParseAddrPort("10.0.0.1:9000")
	s, err := services.ServeRDT(a.Node, on, rdt.Config{Selective: true}, objects, nil)
	require.NoError(t, err)
	n := 0
	got, err := services.FetchRDT(t.Context(), b.Node, on, services.RDTFetch{Each: func(r *services.RDTResult) error {
		require.NoError(t, r.Err)
		require.Len(t, r.Data, int(r.Size))
		n++
		return nil
	}})
	require.NoError(t, err)
	assert.Equal(t, 600, n)
	assert.Len(t, got.Objects, 600)
	flows := map[int]int{}
	for _, f := range s.Flows() {
		flows[f.Objects]++
	}
	assert.Equal(t, map[int]int{0: 1, 256: 2, 88: 1}, flows)
	enough := errors.New("enough")
	_, err = services.FetchRDT(t.Context(), b.Node, on, services.RDTFetch{Each: func(*services.RDTResult) error { return enough }})
	require.ErrorIs(t, err, enough)
}

// Finished flows linger, but are dropped early if there are too many: a folder of 65,535 files is
// fetched in 256 flows.
func TestRDTManyFlows(t *testing.T) {
	a, b := operatortest.Two(t, node.Config{})
	on := netip.MustParseAddrPort("10.0.0.1:9000")
	object := services.NewObject("a", []byte("x"))
	s, err := services.ServeRDT(a.Node, on, rdt.Config{}, []rdt.Object{object}, nil)
	require.NoError(t, err)
	defer s.Close()
	list := &rdt.Listing{
		Payload: 1325, Window: services.DefaultWindow, Entries: []rdt.Entry{object.Entry},
	}
	for i := range 300 {
		got, err := services.FetchRDT(t.Context(), b.Node, on, services.RDTFetch{Known: list})
		require.NoError(t, err, i)
		require.NoError(t, got.Objects[0].Err, i)
	}
}

// Removing an address closes RDT's servers and fetches at that address, and no others.
func TestRemovedAddressClosesRDT(t *testing.T) {
	p := testenv.FreePorts(t, 4)
	const two = "interface if0 10.0.0.%d/24 127.0.0.1:%d\nneighbor 10.0.0.%d at 127.0.0.1:%d via if0\n" +
		"interface if1 10.1.0.%d/24 127.0.0.1:%d\nneighbor 10.1.0.%d at 127.0.0.1:%d via if1\n"
	text := fmt.Sprintf(two, 1, p[0], 2, p[1], 1, p[2], 2, p[3])
	a := operatortest.Open(t, operator.Config{
		LNX:    testenv.ParseNode(t, "A", text),
		Reread: func() (*lnx.Config, error) { return lnx.Parse("A.lnx", []byte(text)) },
	})
	b := operatortest.Start(t, node.Config{}, testenv.ParseNode(t, "B",
		fmt.Sprintf(two, 2, p[1], 1, p[0], 2, p[3], 1, p[2])))
	object := []rdt.Object{services.NewObject("a", make([]byte, 1000))}
	goes, err := services.ServeRDT(a.Node, netip.MustParseAddrPort("10.1.0.1:91"), rdt.Config{}, object, nil)
	require.NoError(t, err)
	stays, err := services.ServeRDT(a.Node, netip.MustParseAddrPort("0.0.0.0:92"), rdt.Config{}, object, nil)
	require.NoError(t, err)
	silent, err := b.Node.Packets.Listen(netip.MustParseAddrPort("10.1.0.2:7"))
	require.NoError(t, err)
	fetched := make(chan error, 1)
	go func() {
		_, err := services.ListRDT(context.Background(), a.Node, netip.MustParseAddrPort("10.1.0.2:7"),
			services.RDTFetch{Config: rdt.Config{Patience: time.Minute}})
		fetched <- err
	}()
	_, asks, err := silent.ReadFromAddrPort(make([]byte, 2000))
	require.NoError(t, err)

	text = strings.Replace(text, "if1 10.1.0.1/24", "if1 10.1.0.7/24", 1)
	ended := testenv.Ask(t, a, control.Reload{})
	assert.ElementsMatch(t, []string{
		"rdt 10.1.0.1:91, serving", fmt.Sprintf("rdt %v from 10.1.0.2:7", asks),
	}, ended.Ended)
	require.ErrorIs(t, goes.Close(), net.ErrClosed)
	require.ErrorIs(t, <-fetched, syscall.EADDRNOTAVAIL)
	entries, err := services.ListRDT(t.Context(), b.Node, netip.MustParseAddrPort("10.0.0.1:92"), services.RDTFetch{})
	require.NoError(t, err)
	assert.Len(t, entries, 1)
	require.NoError(t, stays.Close())
	u, err := a.Node.Packets.Listen(netip.MustParseAddrPort("0.0.0.0:91"))
	require.NoError(t, err)
	require.NoError(t, u.Close())
}
