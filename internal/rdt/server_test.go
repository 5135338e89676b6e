package rdt_test

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/rdt"
)

func named(name string, data []byte) rdt.Object {
	return rdt.Object{
		Entry: rdt.Entry{Name: name, Size: int64(len(data)), SHA256: sha256.Sum256(data)}, Data: data,
	}
}

func client(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), 4000)
}

// counter is a server with clients. Their links have no delay and lose some packets.
type counter struct {
	t       *testing.T
	now     clock.Time
	server  *rdt.Server
	clients map[netip.AddrPort]*rdt.Receiver
	order   []netip.AddrPort
	loss    float64
	random  *rand.Rand
}

func open(t *testing.T, cfg rdt.Config, objects ...rdt.Object) *counter {
	t.Helper()
	s, err := rdt.NewServer(cfg, objects)
	require.NoError(t, err)
	return &counter{
		t: t, now: start, server: s, clients: map[netip.AddrPort]*rdt.Receiver{},
		random: rand.New(rand.NewPCG(1, 2)),
	}
}

func (c *counter) ask(from netip.AddrPort, cfg rdt.Config, wanted ...uint16) *rdt.Receiver {
	c.t.Helper()
	r, err := rdt.NewReceiver(c.now, cfg, wanted...)
	require.NoError(c.t, err)
	if c.clients[from] == nil {
		c.order = append(c.order, from)
	}
	c.clients[from] = r
	return r
}

func (c *counter) lost() bool { return c.random.Float64() < c.loss }

// settle delivers packets until no end has one to send.
func (c *counter) settle() {
	for busy := true; busy; {
		busy = false
		for _, from := range c.order {
			for b, ok := c.clients[from].Output(c.now, nil); ok; b, ok = c.clients[from].Output(c.now, nil) {
				busy = true
				if !c.lost() {
					c.server.Input(c.now, from, b)
				}
			}
		}
		for to, b, ok := c.server.Output(c.now, nil); ok; to, b, ok = c.server.Output(c.now, nil) {
			busy = true
			if r := c.clients[to]; r != nil && !c.lost() {
				r.Input(c.now, b)
			}
		}
	}
}

// run advances the time until stop returns true or no timer is running.
func (c *counter) run(stop func() bool) {
	for c.settle(); !stop(); c.settle() {
		due := c.server.Deadline()
		for _, r := range c.clients {
			due = clock.Earliest(due, r.Deadline())
		}
		if due == clock.Never {
			return
		}
		c.now = max(c.now, due)
		c.server.Advance(c.now)
		for _, r := range c.clients {
			r.Advance(c.now)
		}
	}
}

func (c *counter) served() (list []rdt.Flow) {
	for f, ok := c.server.Next(); ok; f, ok = c.server.Next() {
		list = append(list, f)
	}
	return list
}

func whole(t *testing.T, r *rdt.Receiver, objects ...rdt.Object) {
	t.Helper()
	n := 0
	for c, ok := r.Next(); ok; c, ok = r.Next() {
		require.NoError(t, c.Err)
		require.Equal(t, objects[c.Stream-1].Data, c.Data)
		n++
	}
	require.Equal(t, r.Info().Complete, n)
	require.True(t, r.Done())
}

// Several clients use a server at once, each with its own checksum, over links that lose a seventh
// of the packets. They take turns, all objects arrive unchanged, and the server reports each client
// at the end.
func TestServerWithSeveralClients(t *testing.T) {
	objects := []rdt.Object{
		named("a", text(1, 90_000)), named("folder/b", text(2, 30_000)), named("empty", nil),
	}
	objects[2].Data = []byte{}
	quick := rdt.Config{Timeout: 20 * time.Millisecond}
	c := open(t, quick, objects...)
	c.loss = 1. / 7
	var all []*rdt.Receiver
	for i := range 10 {
		cfg := quick
		cfg.Checksum = rdt.Checksum(i % 2)
		all = append(all, c.ask(client(i), cfg, 1, 2, 3))
	}
	c.settle()
	var sent []uint64
	for _, f := range c.server.Flows(c.now) {
		assert.False(t, f.Done)
		sent = append(sent, f.Sender.Sent)
	}
	require.NotEmpty(t, sent)
	c.run(func() bool { return len(c.server.Flows(c.now)) == 0 })
	for _, r := range all {
		whole(t, r, objects...)
	}
	list := c.served()
	require.Len(t, list, 10)
	for _, f := range list {
		require.NoError(t, f.Err)
		assert.Equal(t, 3, f.Objects)
		assert.Equal(t, int64(120_000), f.Bytes)
		assert.Positive(t, f.Took)
		assert.Positive(t, f.Sender.Resent)
	}
	assert.Equal(t, rdt.ServerInfo{Objects: 3, Bytes: 120_000}, c.server.Info())
}

// A client learns the objects and their sizes from the listing.
func TestListing(t *testing.T) {
	objects := []rdt.Object{named("a b/ü", text(1, 10)), named("c", text(2, 20))}
	c := open(t, rdt.Config{Payload: 100, Window: 7}, objects...)
	r := c.ask(client(1), rdt.Config{Payload: rdt.MaxPayload}, rdt.ListingStream)
	c.run(r.Done)
	got, ok := r.Next()
	require.True(t, ok)
	list, err := rdt.ParseListing(got.Data)
	require.NoError(t, err)
	assert.Equal(t, rdt.Listing{
		Payload: 100, Window: 7, Entries: []rdt.Entry{objects[0].Entry, objects[1].Entry},
	}, list)
	served := c.served()
	require.Len(t, served, 1)
	assert.Zero(t, served[0].Objects, "the listing is no object")
}

// A server gives up on a client that vanishes after Patience, reports it, and keeps no state. It
// forgets a finished client after Linger. Until then, late requests of that client start no new
// flow.
func TestServerForgetsClients(t *testing.T) {
	cfg := rdt.Config{Timeout: 20 * time.Millisecond, Patience: time.Second, Linger: 3 * time.Second}
	c := open(t, cfg, named("a", text(1, 300_000)))
	done := c.ask(client(1), cfg, 1)
	c.run(done.Done)
	again, err := rdt.NewReceiver(c.now, cfg, 1)
	require.NoError(t, err)
	request, ok := again.Output(c.now, nil)
	require.True(t, ok)
	c.server.Input(c.now, client(1), request)
	_, _, ok = c.server.Output(c.now, nil)
	assert.False(t, ok, "all of that is acknowledged")

	c.server.Input(c.now, client(2), request) // after this request, the client sends nothing
	began := c.now
	c.run(func() bool { return len(c.server.Flows(c.now)) == 1 })
	assert.Equal(t, began.Add(time.Second), c.now)
	list := c.served()
	require.Len(t, list, 2)
	require.NoError(t, list[0].Err)
	require.ErrorIs(t, list[1].Err, rdt.ErrSilent)
	assert.Equal(t, client(2), list[1].Peer)
	c.run(func() bool { return len(c.server.Flows(c.now)) == 0 })
	assert.Equal(t, began.Add(3*time.Second), c.now)
	assert.Equal(t, clock.Never, c.server.Deadline())
	assert.Empty(t, c.served())
}

// The table of clients is bounded. A new client replaces a finished one, or one that never
// acknowledged anything. Active clients are kept.
func TestServerFlowsAreBounded(t *testing.T) {
	cfg := rdt.Config{Timeout: 100 * time.Millisecond, Window: 4}
	c := open(t, cfg, named("a", text(1, 100_000)))
	done := c.ask(client(0), cfg, 1)
	c.run(done.Done)
	request, _ := c.ask(client(9999), cfg, 1).Output(c.now, nil)
	delete(c.clients, client(9999))
	c.order = c.order[:1]
	for i := range rdt.MaxFlows - 1 {
		c.server.Input(c.now, client(100+i), request)
	}
	require.Len(t, c.server.Flows(c.now), rdt.MaxFlows)

	c.server.Input(c.now, client(300), request) // replaces the finished client
	require.Len(t, c.server.Flows(c.now), rdt.MaxFlows)
	assert.Equal(t, client(100), c.server.Flows(c.now)[0].Peer)
	c.server.Input(c.now, client(301), request) // all flows are new, so the request is rejected
	assert.Equal(t, uint64(1), c.server.Info().Refused)

	c.now = c.now.Add(100 * time.Millisecond)
	c.server.Input(c.now, client(302), request)
	flows := c.server.Flows(c.now)
	require.Len(t, flows, rdt.MaxFlows)
	assert.Equal(t, client(101), flows[0].Peer)
	assert.Equal(t, client(302), flows[rdt.MaxFlows-1].Peer)
	list := c.served()
	require.ErrorIs(t, list[len(list)-1].Err, rdt.ErrSilent)
}

// A packet that is not a request creates no flow and does not affect other clients.
func TestInvalidRequestsCreateNoFlow(t *testing.T) {
	cfg := rdt.Config{Timeout: 20 * time.Millisecond}
	c := open(t, cfg, named("a", text(1, 5000)))
	for n := range 200 {
		garbage := make([]byte, n)
		for i := range garbage {
			garbage[i] = byte(c.random.Uint32())
		}
		c.server.Input(c.now, client(n), garbage)
	}
	assert.Empty(t, c.server.Flows(c.now))
	assert.Equal(t, uint64(200), c.server.Info().Unknown)

	r := c.ask(client(1), cfg, 7, 1) // object 7 does not exist
	c.run(r.Done)
	for got, ok := r.Next(); ok; got, ok = r.Next() {
		if got.Stream == 7 {
			require.ErrorIs(t, got.Err, rdt.ErrAbsent)
		} else {
			require.NoError(t, got.Err)
		}
	}
	list := c.served()
	require.Len(t, list, 1)
	assert.Equal(t, 1, list[0].Objects)
}

// A receiver that leaves repeats its last acknowledgment a few times.
func TestRepeatLastAck(t *testing.T) {
	cfg := rdt.Config{Timeout: 20 * time.Millisecond}
	c := open(t, cfg, named("a", text(1, 5000)))
	r := c.ask(client(1), cfg, 1)
	r.RepeatLastAck()
	_, ok := r.Output(c.now, nil)
	require.True(t, ok, "the request")
	_, ok = r.Output(c.now, nil)
	require.False(t, ok, "it has nothing yet")
	c.now = c.now.Add(time.Second)
	r.Advance(c.now)
	c.run(r.Done)
	c.settle()
	r.RepeatLastAck()
	n := 0
	for _, ok := r.Output(c.now, nil); ok; _, ok = r.Output(c.now, nil) {
		n++
	}
	assert.Equal(t, 3, n)
}

func TestNewServerErrors(t *testing.T) {
	good := named("a", text(1, 5))
	short := good
	short.Size = 4
	for i, row := range []struct {
		cfg     rdt.Config
		objects []rdt.Object
		want    error
	}{
		{rdt.Config{Window: -1}, nil, rdt.ErrConfig},
		{rdt.Config{}, []rdt.Object{good, good}, rdt.ErrObject},
		{rdt.Config{}, []rdt.Object{named("../a", nil)}, rdt.ErrObject},
		{rdt.Config{}, []rdt.Object{short}, rdt.ErrObject},
		{rdt.Config{}, make([]rdt.Object, rdt.MaxEntries+1), rdt.ErrObject},
	} {
		_, err := rdt.NewServer(row.cfg, row.objects)
		require.ErrorIs(t, err, row.want, fmt.Sprint(i))
	}
}
