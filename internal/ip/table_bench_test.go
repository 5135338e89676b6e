package ip_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ip"
)

// lengths are the approximate shares of prefix lengths in the Internet's table, in thousandths:
// three prefixes in five are /24.
var lengths = []struct{ bits, share int }{
	{8, 1},
	{10, 1},
	{11, 1},
	{12, 1},
	{13, 1},
	{14, 2},
	{15, 2},
	{16, 14},
	{17, 8},
	{18, 14},
	{19, 26},
	{20, 45},
	{21, 52},
	{22, 115},
	{23, 103},
	{24, 611},
	{30, 1},
	{32, 2},
}

// manyPrefixes are n different prefixes of such lengths, in clusters: registries assign blocks, and
// their holders announce parts of them.
func manyPrefixes(n int) []netip.Prefix {
	rng := rand.New(rand.NewPCG(100, uint64(n)))
	seen := make(map[netip.Prefix]bool, n)
	list := make([]netip.Prefix, 0, n)
	u := uint32(0)
	for len(list) < n {
		u += uint32(rng.IntN(1 << 14))
		if rng.IntN(6) == 0 {
			u = rng.Uint32()
		}
		bits := 0
		for k := rng.IntN(1000); k >= 0; bits++ {
			k -= lengths[bits].share
		}
		a := ip.V4(byte(u>>24)%223+1, byte(u>>16), byte(u>>8), byte(u))
		p := netip.PrefixFrom(a, lengths[bits-1].bits).Masked()
		if !seen[p] {
			seen[p] = true
			list = append(list, p)
		}
	}
	return list
}

// in6 returns the prefixes moved into 2000::/16, so that their lengths are /24 to /48.
func in6(prefixes []netip.Prefix) []netip.Prefix {
	list := make([]netip.Prefix, len(prefixes))
	for i, p := range prefixes {
		a := [16]byte{0x20}
		copy(a[2:], p.Addr().AsSlice())
		list[i] = netip.PrefixFrom(netip.AddrFrom16(a), p.Bits()+16)
	}
	return list
}

func learned(p netip.Prefix) ip.Route {
	a := p.Addr().As16()
	return ip.Route{
		Prefix: p, NextHop: ip.V4(10, 0, a[13]%8, 1), Iface: int(a[13] % 8),
		Origin: ip.RIP, Cost: 1,
	}
}

func tableOf(prefixes []netip.Prefix) *ip.Table {
	table := &ip.Table{}
	for _, p := range prefixes {
		table.Insert(learned(p))
	}
	return table
}

// targetsIn returns addresses within the prefixes, so every lookup goes to the full depth.
func targetsIn(prefixes []netip.Prefix, n int) []netip.Addr {
	rng := rand.New(rand.NewPCG(200, 0))
	targets := make([]netip.Addr, n)
	for i := range targets {
		p := prefixes[rng.IntN(len(prefixes))]
		a := p.Addr().AsSlice()
		for b := p.Bits(); b < len(a)*8; b++ {
			a[b/8] |= byte(rng.IntN(2)) << (7 - b%8)
		}
		targets[i], _ = netip.AddrFromSlice(a)
	}
	return targets
}

func heapBytes() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkLookup looks up the routes of packets: to random destinations, where the caches limit
// the speed, and to a few, as in real traffic. B/route is the table's memory.
func BenchmarkLookup(b *testing.B) { benchmarkLookup(b, 4) }

// BenchmarkLookup6 is like BenchmarkLookup, for IPv6.
func BenchmarkLookup6(b *testing.B) { benchmarkLookup(b, 6) }

func benchmarkLookup(b *testing.B, family int) {
	b.Helper()
	for _, n := range []int{10, 1000, 100_000} {
		prefixes := manyPrefixes(n)
		if family == 6 {
			prefixes = in6(prefixes)
		}
		before := heapBytes()
		table := tableOf(prefixes)
		memory := float64(heapBytes()-before) / float64(len(prefixes))
		for _, flows := range []int{1 << 16, 256} {
			targets := targetsIn(prefixes, flows)
			b.Run(fmt.Sprintf("routes=%d/destinations=%d", n, flows), func(b *testing.B) {
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					if _, ok := table.Hop(targets[i&(flows-1)]); !ok {
						b.Fatal("no route")
					}
				}
				b.ReportMetric(memory, "B/route")
			})
		}
		runtime.KeepAlive(table)
	}
}

// BenchmarkRemoveInsert removes one of 100,000 routes and inserts it again.
func BenchmarkRemoveInsert(b *testing.B) {
	prefixes := manyPrefixes(100_000)
	table := tableOf(prefixes)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		p := prefixes[i%len(prefixes)]
		table.Remove(p, ip.RIP)
		table.Insert(learned(p))
	}
}

func TestLookupDoesNotAllocate(t *testing.T) {
	prefixes := manyPrefixes(10_000)
	prefixes = append(prefixes, in6(prefixes)...)
	table, targets := tableOf(prefixes), targetsIn(prefixes, 256)
	require.Equal(t, len(prefixes), table.Len())
	i := 0
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		_, routed := table.Lookup(targets[i%256])
		if _, ok := table.Hop(targets[i%256]); !ok || !routed {
			t.Fatal("no route")
		}
		i++
	}))
}
