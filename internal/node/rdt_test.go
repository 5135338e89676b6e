package node

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/link"
	"github.com/tidepool-net/tidepool/internal/rdt"
)

// order asks a node for something that has to succeed.
func order(t *testing.T, n *Node, req any) any {
	t.Helper()
	answer, err := n.Do(t.Context(), req)
	require.NoError(t, err)
	return answer
}

// timeless starts two nodes with a clock of their own, joined in memory, and returns how to
// wait for what only time brings about.
func timeless(t *testing.T) (a, b *Node, await func(done <-chan error) (time.Duration, error)) {
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

// Who asks a port that only listens hears nothing, and says so when its patience is over; a
// client that is cut off in the middle is silent to the server, who gives it up.
func TestRDTSilence(t *testing.T) {
	a, b, await := timeless(t)
	_, err := a.ListenPacket(netip.MustParseAddrPort("0.0.0.0:7"))
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() {
		_, err := b.ListRDT(context.Background(), netip.MustParseAddrPort("10.0.0.1:7"), RDTFetch{})
		done <- err
	}()
	took, err := await(done)
	require.ErrorIs(t, err, rdt.ErrSilent)
	require.ErrorIs(t, err, control.ErrTimeout)
	assert.ErrorContains(t, err, "nothing has come for 10s")
	assert.GreaterOrEqual(t, took, 10*time.Second)

	var ended []RDTServed
	s, err := a.ServeRDT(netip.MustParseAddrPort("0.0.0.0:9000"), RDTConfig{}, []RDTObject{
		NewRDTObject("a", make([]byte, 100)), NewRDTObject("b", make([]byte, 5_000_000)),
	}, func(f RDTServed) { ended = append(ended, f) })
	require.NoError(t, err)
	order(t, b, control.Impair{Iface: "if0", Way: control.WayBoth, Words: "delay 5ms"})
	var got []*RDTResult
	go func() {
		_, err := b.FetchRDT(context.Background(), netip.MustParseAddrPort("10.0.0.1:9000"), RDTFetch{
			Each: func(r *RDTResult) error { got = append(got, r); return nil },
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
	for sent() < 300 { // of 3776
		a.cfg.Clock.Advance(time.Millisecond)
	}
	order(t, b, control.SetLink{Iface: "if0"})
	_, err = await(done)
	require.NoError(t, err)
	require.Len(t, got, 2)
	require.NoError(t, got[0].Err)
	require.ErrorIs(t, got[1].Err, rdt.ErrSilent)
	for len(s.Flows()) > 0 {
		a.cfg.Clock.Advance(time.Second)
	}
	require.NotEmpty(t, ended)
	last := ended[len(ended)-1]
	require.ErrorIs(t, last.Err, rdt.ErrSilent)
	assert.Equal(t, 2, last.Objects)
	require.NoError(t, s.Close())
	require.Error(t, s.Close())
}

// Garbage, and packets that are sound but lie, end no flow but in an error, and never the node.
func TestRDTGarbage(t *testing.T) {
	a, b := twoNodes(t, Config{})
	data := make([]byte, 50_000)
	_, _ = rand.Read(data)
	server, err := a.ServeRDT(netip.MustParseAddrPort("0.0.0.0:9000"), RDTConfig{},
		[]RDTObject{NewRDTObject("a", data)}, nil)
	require.NoError(t, err)
	defer server.Close()
	c, err := b.DialUDP(netip.MustParseAddrPort("10.0.0.1:9000"))
	require.NoError(t, err)
	defer c.Close()
	junk := make([]byte, 1400)
	for n := range len(junk) {
		_, _ = rand.Read(junk[:n])
		_, err := c.Write(junk[:n])
		require.NoError(t, err)
	}
	var got []byte
	_, err = b.FetchRDT(t.Context(), netip.MustParseAddrPort("10.0.0.1:9000"), RDTFetch{
		Config: RDTConfig{Patience: 20 * time.Second}, // the machine may be busy
		Each:   func(r *RDTResult) error { got = r.Data; return r.Err },
	})
	require.NoError(t, err)
	assert.True(t, bytes.Equal(data, got))

	// A server that gives something else than a listing.
	liar, err := rdt.NewSender(rdt.Config{}, [][]byte{[]byte("<html>")})
	require.NoError(t, err)
	l, err := a.ListenPacket(netip.MustParseAddrPort("0.0.0.0:7"))
	require.NoError(t, err)
	go func() {
		buf := make([]byte, 2000)
		for {
			n, from, err := l.ReadFromAddrPort(buf)
			if err != nil {
				return
			}
			liar.Input(a.now(), buf[:n])
			for p, ok := liar.Output(a.now(), nil); ok; p, ok = liar.Output(a.now(), nil) {
				_, _ = l.WriteToAddrPort(p, from)
			}
		}
	}()
	_, err = b.ListRDT(t.Context(), netip.MustParseAddrPort("10.0.0.1:7"), RDTFetch{})
	require.ErrorIs(t, err, rdt.ErrMalformed)
	require.NoError(t, l.Close())
}

// More objects than one flow carries come in several, and an error of who takes them ends it.
func TestRDTManyObjects(t *testing.T) {
	a, b := twoNodes(t, Config{})
	var objects []RDTObject
	for i := range 600 {
		objects = append(objects, NewRDTObject(strings.Repeat("x", i+1), make([]byte, i)))
	}
	on := netip.MustParseAddrPort("10.0.0.1:9000")
	s, err := a.ServeRDT(on, RDTConfig{Selective: true}, objects, nil)
	require.NoError(t, err)
	n := 0
	got, err := b.FetchRDT(t.Context(), on, RDTFetch{Each: func(r *RDTResult) error {
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
	_, err = b.FetchRDT(t.Context(), on, RDTFetch{Each: func(*RDTResult) error { return enough }})
	require.ErrorIs(t, err, enough)
}

// Flows that have everything linger, and give way to new ones when there are too many: a folder of
// 65,535 files comes in 256 of them.
func TestRDTManyFlows(t *testing.T) {
	a, b := twoNodes(t, Config{})
	on := netip.MustParseAddrPort("10.0.0.1:9000")
	object := NewRDTObject("a", []byte("x"))
	s, err := a.ServeRDT(on, RDTConfig{}, []RDTObject{object}, nil)
	require.NoError(t, err)
	defer s.Close()
	list := &rdt.Listing{
		Payload: 1325, Window: DefaultRDTWindow, Entries: []rdt.Entry{object.Entry},
	}
	for i := range 300 {
		got, err := b.FetchRDT(t.Context(), on, RDTFetch{Known: list})
		require.NoError(t, err, i)
		require.NoError(t, got.Objects[0].Err, i)
	}
}
