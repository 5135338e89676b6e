package sim_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/netem"
	"github.com/tidepool-net/tidepool/internal/sim"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// star connects hosts to one router. Each host has the given number of connections to the next, and
// sends the given number of bytes over each. The result counts the connections that have not ended.
func star(tb testing.TB, hosts, connections int, size uint64) (*sim.World, func() int) {
	tb.Helper()
	w := sim.New(1)
	addr := func(i, end int) netip.Addr {
		return netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), byte(end)})
	}
	hub := stack.Config{Forwarding: true}
	for i := range hosts {
		hub.Interfaces = append(hub.Interfaces, stack.Interface{
			Name: fmt.Sprintf("if%d", i), Addr: netip.PrefixFrom(addr(i, 1), 24), MTU: cellMTU,
		})
	}
	router, err := w.AddHost("hub", hub)
	require.NoError(tb, err)
	all := make([]*sim.Host, hosts)
	for i := range all {
		h, err := w.AddHost(fmt.Sprintf("host%d", i), stack.Config{
			Interfaces: []stack.Interface{{
				Name: "if0", Addr: netip.PrefixFrom(addr(i, 2), 24), MTU: cellMTU,
			}},
			Routes: []stack.Route{{Prefix: netip.MustParsePrefix("0.0.0.0/0"), Via: addr(i, 1)}},
		})
		require.NoError(tb, err)
		wire := netem.Config{
			Rate: netem.BitsPerSecond(20e6), Delay: 5 * time.Millisecond,
			Queue: netem.DropTail{Packets: 50},
		}
		require.NoError(tb, w.Connect(sim.End{Host: h}, sim.End{Host: router, Iface: i}, wire, wire))
		_, err = h.Listen(80, connections, func(*sim.Conn) sim.App { return &sim.Bulk{} })
		require.NoError(tb, err)
		all[i] = h
	}
	var apps []*sim.Bulk
	for i, h := range all {
		for range connections {
			app := &sim.Bulk{Send: size}
			_, err := h.Dial(netip.AddrPortFrom(addr((i+1)%hosts, 2), 80), app)
			require.NoError(tb, err)
			apps = append(apps, app)
		}
	}
	return w, func() int {
		left := 0
		for _, a := range apps {
			if !a.Over {
				left++
			}
		}
		return left
	}
}

// Ten thousand connections between a thousand hosts cross one router.
func TestManyConnections(t *testing.T) {
	hosts, connections := 100, 10
	if testenv.Long() {
		hosts = 1000
	}
	w, left := star(t, hosts, connections, 20_000)
	w.Run(time.Minute)
	require.Zero(t, left())
}

// BenchmarkStar measures how fast a core simulates an increasing number of hosts and connections.
// The cost of a packet must not grow with them.
func BenchmarkStar(b *testing.B) {
	for _, n := range []struct{ hosts, connections int }{{10, 1}, {10, 10}, {100, 10}, {1000, 1}, {1000, 10}} {
		b.Run(fmt.Sprintf("%dx%d", n.hosts, n.connections), func(b *testing.B) {
			b.ReportAllocs()
			var packets, hops uint64
			for b.Loop() {
				size := uint64(50_000_000 / (n.hosts * n.connections))
				w, _ := star(b, n.hosts, n.connections, max(size, 20_000))
				w.Run(time.Minute)
				packets += endToEnd(w)
				hops += w.Stats().Delivered
			}
			b.ReportMetric(float64(packets)/b.Elapsed().Seconds(), "packets/s")
			b.ReportMetric(float64(hops)/b.Elapsed().Seconds(), "hops/s")
		})
	}
}
