package link

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/buffer"
)

var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// fakeResolver is a resolver whose names tests can change.
type fakeResolver struct {
	entries atomic.Pointer[map[string]netip.Addr]
}

func (b *fakeResolver) set(entries map[string]netip.Addr) { b.entries.Store(&entries) }

func (b *fakeResolver) lookup(_ context.Context, _, host string) (netip.Addr, error) {
	if a, ok := (*b.entries.Load())[host]; ok {
		return a, nil
	}
	return netip.Addr{}, errors.New("no such host")
}

// named opens a device whose neighbors addrB and addrC have names.
func named(t *testing.T, b *fakeResolver, mode Offload, at netip.AddrPort) *UDP {
	t.Helper()
	return open(t, Config{
		Offload: mode, Lookup: b.lookup, ResolveEvery: time.Millisecond,
		Interfaces: []Interface{{Name: "if0", Neighbors: []Neighbor{
			{Addr: netip.AddrFrom4(addrB), Host: "bee.example", Port: at.Port()},
			{Addr: netip.AddrFrom4(addrC), Host: "sea.example", Port: 9},
		}}},
	})
}

func TestNameThatResolvesLater(t *testing.T) {
	eachMode(t, func(t *testing.T, mode Offload) {
		var b fakeResolver
		b.set(nil)
		peer, at := foreignSocket(t)
		d := named(t, &b, mode, at)
		assert.False(t, d.Neighbors(0)[0].UDP.IsValid())

		t.Log("# until then packets are dropped and counted")
		tr := train(rand.New(rand.NewPCG(13, 1)), 0, addrB, 80)
		write(t, d, tr)
		assert.EqualValues(t, 1, d.Counters(0).Drops[DropUnresolved])

		t.Log("# then packets are sent, and replies are recognized")
		b.set(map[string]netip.Addr{"bee.example": loopback})
		eventually(t, func() bool { return d.Neighbors(0)[0].UDP == at }, "the name resolves")
		sea := d.Neighbors(0)[1]
		require.Error(t, sea.Lookup)
		sea.Lookup = nil
		assert.Equal(t, NeighborInfo{Addr: netip.AddrFrom4(addrC), Host: "sea.example", Port: 9}, sea)
		write(t, d, tr)
		buf := make([]byte, 100)
		n, err := peer.Read(buf)
		require.NoError(t, err)
		assert.Equal(t, packetsOf(tr)[0], buf[:n])
		_, err = peer.WriteToUDPAddrPort([]byte("ack"), d.Info().Local)
		require.NoError(t, err)
		assert.Equal(t, wrap(0, [][]byte{[]byte("ack")}), receive(t, d, 1))

		t.Log("# a name that moves is followed, one that vanishes keeps its address")
		b.set(map[string]netip.Addr{"sea.example": netip.MustParseAddr("127.0.0.3")})
		eventually(t, func() bool { return d.Neighbors(0)[1].UDP.IsValid() },
			"the other name resolves")
		assert.Equal(t, at, d.Neighbors(0)[0].UDP)
		b.set(map[string]netip.Addr{"bee.example": netip.MustParseAddr("127.0.0.2")})
		eventually(t, func() bool {
			return d.Neighbors(0)[0].UDP.Addr() == netip.MustParseAddr("127.0.0.2")
		}, "the new address")
		require.NoError(t, d.Close())
		select {
		case <-d.names.done:
		default:
			assert.Fail(t, "a lookup ran after Close")
		}
	})
}

// TestFailedSendRepeatsTheLookup checks that the name is looked up at once after the kernel refuses
// a send, long before the next regular lookup.
func TestFailedSendRepeatsTheLookup(t *testing.T) {
	var b fakeResolver
	b.set(map[string]netip.Addr{"bee.example": netip.MustParseAddr("255.255.255.255")})
	d := open(t, Config{
		Lookup: b.lookup, ResolveEvery: time.Hour,
		Interfaces: []Interface{{Name: "if0", Neighbors: []Neighbor{
			{Addr: netip.AddrFrom4(addrB), Host: "bee.example", Port: 9},
		}}},
	})
	b.set(map[string]netip.Addr{"bee.example": loopback})
	write(t, d, train(rand.New(rand.NewPCG(14, 1)), 0, addrB, 80)) // the kernel refuses broadcast
	assert.EqualValues(t, 1, d.Counters(0).Drops[DropRefused])
	eventually(t, func() bool { return d.Neighbors(0)[0].UDP.Addr() == loopback }, "the new address")
}

// TestSlowResolver checks that opening a device waits only a short time for a slow
// resolver, and that reading does not wait.
func TestSlowResolver(t *testing.T) {
	start := time.Now()
	d := open(t, Config{
		Lookup: func(ctx context.Context, _, _ string) (netip.Addr, error) {
			<-ctx.Done()
			return netip.Addr{}, ctx.Err()
		},
		Interfaces: []Interface{{Name: "if0", Neighbors: []Neighbor{
			{Addr: netip.AddrFrom4(addrB), Host: "bee.example", Port: 9},
		}}},
	})
	_, err := d.ReadBatch(make([]buffer.Frame, 1))
	require.ErrorIs(t, err, ErrWouldBlock)
	require.NoError(t, d.Close(), "Close does not wait for the resolver")
	assert.Less(t, time.Since(start), lookupPatience)
}

// TestNamesToBind checks that names to bind must resolve at once. RFC 6761 §6.3: localhost is the
// loopback address, even though this resolver does not know the name.
func TestNamesToBind(t *testing.T) {
	var b fakeResolver
	b.set(map[string]netip.Addr{"here.example": loopback})
	cfg := Config{Host: "here.example", Lookup: b.lookup, Interfaces: []Interface{{Name: "if0"}}}
	assert.Equal(t, loopback, open(t, cfg).Info().Local.Addr())
	cfg.Host = "localhost"
	assert.Equal(t, loopback, open(t, cfg).Info().Local.Addr())
	cfg.Host = "nowhere.example"
	_, err := Open(cfg)
	require.EqualError(t, err, "link: interface if0: bind nowhere.example:0: no such host")
}

// A neighbor reports why a lookup failed, and keeps its last good address.
func TestFailedLookupReason(t *testing.T) {
	var b fakeResolver
	b.set(map[string]netip.Addr{"bee.example": loopback})
	d := named(t, &b, OffloadPlain, netip.AddrPortFrom(loopback, 9))
	eventually(t, func() bool { return d.Neighbors(0)[1].Lookup != nil },
		"sea.example does not resolve")
	assert.EqualError(t, d.Neighbors(0)[1].Lookup, "no such host")
	require.NoError(t, d.Neighbors(0)[0].Lookup)
	b.set(nil)
	eventually(t, func() bool { return d.Neighbors(0)[0].Lookup != nil },
		"bee.example does not resolve")
	assert.Equal(t, loopback, d.Neighbors(0)[0].UDP.Addr())
	b.set(map[string]netip.Addr{
		"bee.example": loopback, "sea.example": netip.MustParseAddr("2001:db8::1"),
	})
	eventually(t, func() bool { return d.Neighbors(0)[0].Lookup == nil }, "the name resolves again")
	eventually(t, func() bool { return errors.Is(d.Neighbors(0)[1].Lookup, familyError("ip4")) },
		"an address of the wrong family")
}
