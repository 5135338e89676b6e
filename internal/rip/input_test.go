package rip_test

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/rip"
)

// RFC 2453 §3.9.2: each case is the effect of a response on a known route through b with cost 4 (b
// announced 3). RFC 2453 §3.6: cost 16 means unreachable, and no cost is higher.
func TestResponseAgainstAKnownRoute(t *testing.T) {
	const p = "10.5.0.0/16"
	tests := []struct {
		name string
		from netip.Addr
		cost int
		want []string
	}{
		{"the same from the same", b, 3, nil},
		{"better from the same", b, 1, []string{p + " via 10.0.0.2 cost 2"}},
		{"worse from the same is accepted", b, 9, []string{p + " via 10.0.0.2 cost 10"}},
		{"15 from the same is unreachable with the link's cost", b, 15, []string{p + " gone"}},
		{"16 from the same removes the route at once", b, 16, []string{p + " gone"}},
		{"better from another", c, 2, []string{p + " via 10.0.1.2 cost 3"}},
		{"equal from another does not flap", c, 3, nil},
		{"worse from another", c, 4, nil},
		{"16 from another", c, 16, nil},
		{"17 from the same is invalid", b, 17, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			x := newBench(t, rip.Config{})
			x.hear(b, p+"=3")
			require.Equal(t, []string{p + " via 10.0.0.2 cost 4"}, x.learned())
			x.sent()
			x.hear(tt.from, fmt.Sprint(p, "=", tt.cost))
			assert.Equal(t, tt.want, x.learned())
			assert.Equal(t, len(tt.want) > 0, len(x.sent()) > 0, "only a change is announced")
		})
	}
}

func TestResponseAboutAnUnknownRoute(t *testing.T) {
	tests := []struct {
		entry string
		want  []string
	}{
		{"10.5.0.0/16=0", []string{"10.5.0.0/16 via 10.0.0.2 cost 1"}},
		{"10.5.0.0/16=14", []string{"10.5.0.0/16 via 10.0.0.2 cost 15"}},
		{"0.0.0.0/0=1", []string{"0.0.0.0/0 via 10.0.0.2 cost 2"}},
		{"10.5.0.0/16=15", nil},
		{"10.5.0.0/16=16", nil},
		{"10.5.0.0/16=17", nil},
		{"10.5.0.0/16=4294967295", nil}, // adding 1 to this cost would overflow to 0
		{"10.5.0.0/16=2147483648", nil},
		{"127.0.0.0/8=1", nil},
		{"127.0.0.1/32=1", nil},
		{"0.0.0.0/32=1", nil},
		{"0.0.0.0/8=1", nil},
		{"224.0.0.9/32=1", nil},
		{"240.0.0.0/4=1", nil},
		{"255.255.255.255/32=1", nil},
		{"10.0.0.0/24=0", nil}, // the Speaker's own network
	}
	for _, tt := range tests {
		t.Run(tt.entry, func(t *testing.T) {
			x := newBench(t, rip.Config{})
			x.hear(b, tt.entry)
			assert.Equal(t, tt.want, x.learned())
			assert.Equal(t, len(tt.want) > 0, len(x.sent()) > 0)
		})
	}
}

func TestInvalidEntryIsSkipped(t *testing.T) {
	x := newBench(t, rip.Config{})
	message := response(t, 12, "10.5.0.0/16=99 127.0.0.0/8=1 10.6.0.0/16=1 10.7.0.0/16=1")
	copy(message[4+2*12+8:], []byte{255, 0, 255, 0}) // a mask that is not contiguous
	require.True(t, x.Input(x.now, b, 0, message))
	assert.Equal(t, []string{"10.7.0.0/16 via 10.0.0.2 cost 2"}, x.learned())
	assert.Equal(t, []rip.Refused{
		{Reason: rip.RefusedMask, Count: 1},
		{Reason: rip.RefusedMartian, Count: 1},
		{Reason: rip.RefusedMetric, Count: 1},
	}, x.Refused())
	assert.Equal(t, uint64(4), x.Counters().EntriesIn)
}

func TestMalformedMessagesChangeNothing(t *testing.T) {
	x := newBench(t, rip.Config{})
	good := response(t, 12, "10.5.0.0/16=1 10.6.0.0/16=1")
	bad := [][]byte{nil, {}, {0}, make([]byte, 5), good[:len(good)-1], append(slices.Clip(good), 0)}
	for n := range 100 {
		if n != 2 && n != 3 { // three entries of 8 bytes are as long as two of 12 bytes
			lie := append([]byte(nil), good...)
			binary.BigEndian.PutUint16(lie[2:], uint16(n))
			bad = append(bad, lie)
		}
		if n != 1 && n != 2 {
			odd := append([]byte(nil), good...)
			binary.BigEndian.PutUint16(odd, uint16(n))
			bad = append(bad, odd)
		}
	}
	for _, m := range bad {
		assert.False(t, x.Input(x.now, b, 0, m), "%x", m)
	}
	assert.Empty(t, x.learned())
	assert.Empty(t, x.sent())
	assert.Equal(t, []rip.Refused{
		{Reason: rip.RefusedForm, Count: uint64(len(bad))},
	}, x.Refused())
}

func TestUnknownSendersAreRefused(t *testing.T) {
	x := newBench(t, rip.Config{})
	message := response(t, 12, "10.5.0.0/16=1")
	for _, from := range []struct {
		addr  string
		iface int
	}{
		{"10.0.0.3", 0}, // an address on the network, but not a neighbor's
		{"10.0.0.2", 1}, // a neighbor, but on another interface
		{"10.0.0.1", 0}, // the Speaker's own address
		{"::ffff:10.0.0.2", 0},
		{"10.0.0.2", -1},
	} {
		assert.False(t, x.Input(x.now, netip.MustParseAddr(from.addr), from.iface, message), from.addr)
		assert.False(t, x.Input(x.now, netip.MustParseAddr(from.addr), from.iface, []byte{0, 1, 0, 0}), from.addr)
	}
	assert.False(t, x.Input(x.now, netip.Addr{}, 0, message))
	assert.Empty(t, x.learned())
	assert.Empty(t, x.sent())
	assert.Equal(t, []rip.Refused{{Reason: rip.RefusedNotNeighbor, Count: 11}}, x.Refused())
}

func TestExpiryAndGarbage(t *testing.T) {
	// RFC 2453 §3.8: the timeout comes first, then the garbage-collection time.
	x := newBench(t, rip.Config{Timers: rip.Timers{Periodic: time.Hour, Timeout: 2 * time.Hour, Garbage: 30 * time.Second}})
	x.hear(b, "10.5.0.0/16=1")
	x.wait(time.Hour)
	x.hear(b, "10.5.0.0/16=1") // refreshes the route
	x.learned()
	x.sent()
	x.wait(2*time.Hour - 1)
	x.sent()
	assert.Empty(t, x.learned())
	x.wait(1)
	assert.Equal(t, []string{"10.5.0.0/16 gone"}, x.learned())
	assert.Contains(t, strings.Join(x.sent(), "\n"), "c 10.0.0.0/24=0 10.0.1.0/24=0 10.5.0.0/16=16")
	assert.Equal(t, uint64(1), x.Counters().Expired)

	t.Log("# the route is announced at infinity until it is deleted")
	request := []byte{0, 1, 0, 0}
	x.wait(30*time.Second - 1)
	x.sent()
	require.True(t, x.Input(x.now, c, 1, request))
	assert.Equal(t, []string{"c 10.0.0.0/24=0 10.0.1.0/24=0 10.5.0.0/16=16"}, x.sent())
	x.hear(b, "10.5.0.0/16=16") // does not restart the timer
	x.wait(1)
	require.True(t, x.Input(x.now, c, 1, request))
	assert.Equal(t, []string{"c 10.0.0.0/24=0 10.0.1.0/24=0"}, x.sent())
	assert.Empty(t, x.learned())
}

func TestDefaultTimeout(t *testing.T) {
	x := newBench(t, rip.Config{})
	x.hear(b, "10.5.0.0/16=1")
	x.learned()
	x.wait(12*time.Second - 1)
	assert.Empty(t, x.learned())
	x.wait(1)
	assert.Equal(t, []string{"10.5.0.0/16 gone"}, x.learned())
}

func TestUnreachableRouteIsLearnedAgain(t *testing.T) {
	x := newBench(t, rip.Config{})
	x.hear(b, "10.5.0.0/16=1")
	x.hear(b, "10.5.0.0/16=16")
	x.learned()
	x.sent()
	x.hear(c, "10.5.0.0/16=9")
	assert.Equal(t, []string{"10.5.0.0/16 via 10.0.1.2 cost 10"}, x.learned())
	assert.Equal(t, []string{"b 10.5.0.0/16=10", "c 10.5.0.0/16=16", "d 10.5.0.0/16=10"}, x.sent())
	for range 10 {
		x.wait(5 * time.Second)
		x.hear(c, "10.5.0.0/16=9")
	}
	assert.Empty(t, x.learned(), "the garbage-collection timer has stopped")
}

func TestEqualCostReplacesAStaleRoute(t *testing.T) {
	// RFC 2453 §3.9.2: after half of the timeout another route with the same cost replaces the old
	// one.
	x := newBench(t, rip.Config{})
	x.hear(b, "10.5.0.0/16=1")
	x.learned()
	x.wait(6 * time.Second)
	x.hear(c, "10.5.0.0/16=1")
	assert.Empty(t, x.learned(), "exactly half of the timeout is not enough")
	x.sent()
	x.wait(1)
	x.hear(c, "10.5.0.0/16=1")
	assert.Equal(t, []string{"10.5.0.0/16 via 10.0.1.2 cost 2"}, x.learned())
	assert.Equal(t, []string{"b 10.5.0.0/16=2", "c 10.5.0.0/16=16", "d 10.5.0.0/16=2"}, x.sent(),
		"the other neighbor gets the poisoned route")
}

func TestEqualCostKeepsTheRoute(t *testing.T) {
	x := newBench(t, rip.Config{})
	x.hear(b, "10.5.0.0/16=1")
	x.learned()
	for range 20 {
		x.wait(2500 * time.Millisecond)
		x.hear(c, "10.5.0.0/16=1")
		x.hear(d, "10.5.0.0/16=1")
		x.wait(2500 * time.Millisecond)
		x.hear(b, "10.5.0.0/16=1")
	}
	assert.Empty(t, x.learned())
}

func TestChangesCoalesceForTheOwner(t *testing.T) {
	x := newBench(t, rip.Config{})
	x.hear(b, "10.5.0.0/16=1")
	x.hear(b, "10.5.0.0/16=16")
	assert.Empty(t, x.learned(), "added and removed between two calls")
	x.hear(b, "10.5.0.0/16=1")
	x.hear(c, "10.5.0.0/16=0")
	assert.Equal(t, []string{"10.5.0.0/16 via 10.0.1.2 cost 1"}, x.learned())
}

func TestTableIsBounded(t *testing.T) {
	x := newBench(t, rip.Config{MaxRoutes: 5})
	x.hear(b, "10.1.0.0/16=1 10.2.0.0/16=1 10.3.0.0/16=1 10.4.0.0/16=1 10.5.0.0/16=1")
	assert.Len(t, x.learned(), 3, "the router's networks take two of five places")
	assert.Equal(t, []rip.Refused{{Reason: rip.RefusedTableFull, Count: 2}}, x.Refused())
	x.hear(c, "10.1.0.0/16=0")
	assert.Equal(t, []string{"10.1.0.0/16 via 10.0.1.2 cost 1"}, x.learned(),
		"known routes still change")
	x.local("172.16.0.0/12", -1, true)
	assert.Contains(t, strings.Join(x.sent(), " "), "172.16.0.0/12=0",
		"the router's networks always fit")
}

func TestEntrySizeFollowsTheNeighbor(t *testing.T) {
	x := newBench(t, rip.Config{})
	x.local("192.168.0.1/32", 2, true)
	x.sent()
	width := func(to netip.Addr) int {
		require.True(t, x.Input(x.now, to, ifaceOf(to), []byte{0, 1, 0, 0}))
		var m rip.Message
		require.True(t, x.Output(x.now, &m))
		require.Equal(t, to, m.To)
		n := int(binary.BigEndian.Uint16(m.Payload[2:]))
		return (len(m.Payload) - 4) / n
	}
	assert.Equal(t, 12, width(b), "as configured")
	require.True(t, x.Input(x.now, b, 0, response(t, 8, "192.168.0.9/32=0")))
	assert.Equal(t, []string{"192.168.0.9/32 via 10.0.0.2 cost 1"}, x.learned())
	assert.Equal(t, []string{
		"b 192.168.0.9/32=16", "c 192.168.0.9/32=1", "d 192.168.0.9/32=1",
	}, x.sent())
	assert.Equal(t, 8, width(b))
	assert.Equal(t, 12, width(c))

	t.Log("# without a mask only single addresses can be announced")
	x.wait(5 * time.Second)
	assert.Equal(t, "b 192.168.0.1/32=0 192.168.0.9/32=16", x.sent()[0])

	t.Log("# the entry size of a neighbor is kept while its interface is down")
	x.local("10.0.0.0/24", 0, false)
	x.local("10.0.0.0/24", 0, true)
	x.sent()
	assert.Equal(t, 8, width(b))

	t.Log("# an empty response does not show the entry size, one with wide entries does")
	require.True(t, x.Input(x.now, b, 0, []byte{0, 2, 0, 0}))
	assert.Equal(t, 8, width(b))
	x.hear(b, "10.5.0.0/16=1")
	x.sent()
	assert.Equal(t, 12, width(b))
}

func TestConfiguredOldEntrySize(t *testing.T) {
	x := newStopped(t, rip.Config{EntrySize: 8})
	x.Start(x.now)
	assert.Equal(t, []string{"b ?", "c ?", "d ?"}, x.sent(),
		"entries without a mask cannot describe these networks")
	x.local("192.168.0.1/32", 0, true)
	x.hear(b, "192.168.0.2/32=0") // the Speaker accepts 12-byte entries, but answers with 8-byte ones
	var m rip.Message
	require.True(t, x.Output(x.now, &m))
	assert.Equal(t, unhex(t, "0002 0002 00000000 c0a80001 00000010 c0a80002"), m.Payload)
}

func TestRefreshDoesNotAllocate(t *testing.T) {
	x := newBench(t, rip.Config{})
	message := fullMessage(t)
	require.True(t, x.Input(x.now, b, 0, message))
	x.learned()
	x.sent()
	var m rip.Message
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		x.now++
		if !x.Input(x.now, b, 0, message) || x.Output(x.now, &m) {
			t.Fatal("a refresh is accepted and is not a change")
		}
	}))
}

func fullMessage(tb testing.TB) []byte {
	tb.Helper()
	var entries []string
	for i := range rip.MaxEntries {
		entries = append(entries, fmt.Sprintf("10.1.%d.0/24=1", i))
	}
	return response(tb, 12, strings.Join(entries, " "))
}

func BenchmarkInputRefresh64(b *testing.B) {
	x := newBench(b, rip.Config{})
	message := fullMessage(b)
	b.ReportAllocs()
	for b.Loop() {
		x.now++
		if !x.Input(x.now, c, 1, message) {
			b.Fatal("refused")
		}
	}
}

func BenchmarkConvergeGrid8x8(b *testing.B) {
	for b.Loop() {
		w := newNetwork(b, 64, grid(8), rip.Config{})
		w.start()
		w.run(time.Second)
		b.ReportMetric(float64(w.sent), "messages/op")
	}
}
