package sim_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/netem"
	"github.com/tidepool-net/tidepool/internal/sim"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// cell is one cell of a laboratory sweep: flows from hosts on the left to hosts on the right, over
// one shared link.
type cell struct {
	flows     int
	congested string
	rate      netem.BitsPerSecond
	loss      float64
	// The cell is a line: one pair of hosts on the shared link, without routers.
	line bool
}

// cellRTT is a cell's round-trip time while its queue is empty; cellMTU gives an MSS of 1460.
const (
	cellRTT = 40 * time.Millisecond
	cellMTU = 1500
)

// bottleneck is the shared link: its delay in each direction is a quarter of the round trip, or a
// half in a line, and its queue holds one bandwidth-delay product.
func (c *cell) bottleneck() sim.LinkConfig {
	delay := cellRTT / 4
	if c.line {
		delay = cellRTT / 2
	}
	wire := sim.LinkConfig{
		AB: netem.Config{
			Rate: c.rate, Delay: delay,
			Queue: netem.DropTail{Bytes: int(float64(c.rate) / 8 * cellRTT.Seconds())},
		},
		BA: netem.Config{Delay: delay}, MTU: cellMTU,
	}
	if c.loss > 0 {
		wire.AB.Loss = netem.UniformLoss(c.loss)
	}
	return wire
}

func (c *cell) tcp() tcp.Config {
	return tcp.Config{
		Knobs:   tcp.Knobs{Recovery: tcp.Recovery{Congestion: c.congested}},
		Buffers: tcp.Buffers{Send: 2 << 20, Recv: 16 << 20},
	}
}

// world builds the cell and dials its flows.
func (c *cell) world(tb testing.TB, seed uint64) (*sim.World, []*sim.Bulk) {
	tb.Helper()
	if c.line {
		l, err := sim.NewLine(seed, sim.LineConfig{
			Left: c.tcp(), Right: c.tcp(), Links: []sim.LinkConfig{c.bottleneck()},
		})
		require.NoError(tb, err)
		var apps []*sim.Bulk
		for i := range c.flows {
			apps = append(apps, endless(tb, l.Left, l.Right, l.Address(80+uint16(i))))
		}
		return l.World, apps
	}
	return c.dumbbell(tb, seed)
}

// endless makes one host send to another without end.
func endless(tb testing.TB, from, to *sim.Host, addr netip.AddrPort) *sim.Bulk {
	tb.Helper()
	app := &sim.Bulk{}
	_, err := to.Listen(addr.Port(), 1, func(*sim.Conn) sim.App { return app })
	require.NoError(tb, err)
	_, err = from.Dial(addr, &sim.Bulk{Send: 1 << 50})
	require.NoError(tb, err)
	return app
}

// dumbbell has one host per flow on each side of two routers. Flow i's networks are 10.i.0.0/24 on
// the left and 10.i.1.0/24 on the right. The shared link is 10.255.0.0/24.
func (c *cell) dumbbell(tb testing.TB, seed uint64) (*sim.World, []*sim.Bulk) {
	tb.Helper()
	w := sim.New(seed)
	addr := func(i, side, host int) netip.Addr {
		return netip.AddrFrom4([4]byte{10, byte(i), byte(side), byte(host)})
	}
	net := func(i, side, host int) netip.Prefix { return netip.PrefixFrom(addr(i, side, host), 24) }
	var routers [2]*sim.Host
	for side := range routers {
		cfg := stack.Config{
			Forwarding: true,
			Interfaces: []stack.Interface{{Name: "trunk", Addr: net(255, 0, 1+side), MTU: cellMTU}},
			Routes: []stack.Route{{
				Prefix: netip.MustParsePrefix("0.0.0.0/0"), Via: addr(255, 0, 2-side),
			}},
		}
		for i := range c.flows {
			cfg.Interfaces = append(cfg.Interfaces, stack.Interface{
				Name: fmt.Sprintf("if%d", i), Addr: net(i, side, 1), MTU: cellMTU,
			})
		}
		var err error
		routers[side], err = w.AddHost(fmt.Sprintf("router%d", side), cfg)
		require.NoError(tb, err)
	}
	wire := c.bottleneck()
	require.NoError(tb, w.Connect(sim.End{Host: routers[0]}, sim.End{Host: routers[1]}, wire.AB, wire.BA))
	var apps []*sim.Bulk
	for i := range c.flows {
		var ends [2]*sim.Host
		for side := range ends {
			h, err := w.AddHost(fmt.Sprintf("host%d.%d", side, i), stack.Config{
				TCP:        c.tcp(),
				Interfaces: []stack.Interface{{Name: "if0", Addr: net(i, side, 2), MTU: cellMTU}},
				Routes: []stack.Route{{
					Prefix: netip.MustParsePrefix("0.0.0.0/0"), Via: addr(i, side, 1),
				}},
			})
			require.NoError(tb, err)
			access := netem.Config{Delay: cellRTT / 8}
			require.NoError(tb,
				w.Connect(sim.End{Host: h}, sim.End{Host: routers[side], Iface: 1 + i}, access, access))
			ends[side] = h
		}
		apps = append(apps, endless(tb, ends[0], ends[1], netip.AddrPortFrom(addr(i, 1, 2), 80)))
	}
	return w, apps
}

// endToEnd counts the packets that the end hosts sent. Forwarded packets do not count.
func endToEnd(w *sim.World) (packets uint64) {
	for _, h := range w.Hosts() {
		if len(h.Stack().Interfaces().Infos()) == 1 {
			packets += sim.End{Host: h}.Out().Counters().In
		}
	}
	return packets
}

// BenchmarkCell measures how many packets (segments and acknowledgments) of a laboratory cell one
// core simulates per second. A packet counts once, where an end host sends it. The metric hops
// counts it once for each link that it crosses.
func BenchmarkCell(b *testing.B) {
	const span = 10 * time.Second
	for _, c := range []cell{
		{flows: 1, congested: "cubic", rate: 100e6, line: true},
		{flows: 4, congested: "cubic", rate: 100e6, line: true},
		{flows: 1, congested: "reno", rate: 100e6, loss: 0.02, line: true},
		{flows: 1, congested: "bbr", rate: 100e6, loss: 0.02, line: true},
		{flows: 1, congested: "cubic", rate: 100e6},
		{flows: 4, congested: "cubic", rate: 100e6},
		{flows: 4, congested: "reno", rate: 100e6},
		{flows: 4, congested: "reno", rate: 100e6, loss: 0.02},
		{flows: 4, congested: "cubic", rate: 1e9},
	} {
		kind := "dumbbell"
		if c.line {
			kind = "line"
		}
		name := fmt.Sprintf("%s/%d-%s/%.0fM/loss=%g%%", kind, c.flows, c.congested,
			float64(c.rate)/1e6, c.loss*100)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var packets, hops uint64
			for seed := uint64(0); b.Loop(); seed++ {
				w, _ := c.world(b, seed)
				w.Run(span)
				packets += endToEnd(w)
				hops += w.Stats().Delivered
			}
			b.ReportMetric(float64(packets)/b.Elapsed().Seconds(), "packets/s")
			b.ReportMetric(float64(hops)/b.Elapsed().Seconds(), "hops/s")
		})
	}
}
