package sim_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/netem"
	"github.com/tidepool-net/tidepool/internal/rip"
	"github.com/tidepool-net/tidepool/internal/sim"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

func both(c netem.Config) sim.LinkConfig { return sim.LinkConfig{AB: c, BA: c} }

// move runs a transfer in each direction over a line and checks that all data arrived.
func move(tb testing.TB, seed uint64, cfg sim.LineConfig, ab, ba uint64) *sim.Line {
	tb.Helper()
	l, err := sim.NewLine(seed, cfg)
	require.NoError(tb, err)
	left := &sim.Bulk{Send: ab, RecvAt: 77}
	right := &sim.Bulk{Send: ba, SendAt: 77}
	over, err := l.Bulk(left, right, 80, time.Hour)
	require.NoError(tb, err)
	require.True(tb, over, "seed %d: left %+v right %+v", seed, left, right)
	require.NoError(tb, left.Err)
	require.NoError(tb, right.Err)
	require.False(tb, left.Wrong || right.Wrong)
	require.Equal(tb, []uint64{ba, ab}, []uint64{left.Received, right.Received})
	require.True(tb, left.EOF && right.EOF)
	return l
}

func TestTwoHostsOnALink(t *testing.T) {
	cfg := sim.LineConfig{Links: []sim.LinkConfig{both(netem.Config{Delay: time.Millisecond})}}
	l := move(t, 1, cfg, 1<<20, 300_000)
	assert.Equal(t, 1, len(l.Hosts())-1)
	assert.Equal(t, l.Stats().Sent, l.Stats().Delivered, "nothing is lost")
}

func TestTransfersOfNoBytesAndOneByte(t *testing.T) {
	move(t, 1, sim.LineConfig{}, 0, 0)
	move(t, 1, sim.LineConfig{}, 1, 0)
	move(t, 1, sim.LineConfig{}, 0, 1)
}

func TestLineOfRouters(t *testing.T) {
	wire := both(netem.Config{Delay: time.Millisecond, Loss: netem.UniformLoss(0.02)})
	for _, routers := range []int{1, 2, 5} {
		cfg := sim.LineConfig{Routers: routers, Links: []sim.LinkConfig{wire}}
		l := move(t, 3, cfg, 200_000, 100_000)
		assert.Len(t, l.Hosts(), routers+2)
	}
}

func TestLineWithRIP(t *testing.T) {
	t.Run("the course's", func(t *testing.T) { lineOfRIP(t, false, time.Minute) })
	// the timeouts of RFC 2080 §2.3
	t.Run("RIPng", func(t *testing.T) { lineOfRIP(t, true, 10*time.Minute) })
}

func lineOfRIP(t *testing.T, six bool, settled time.Duration) {
	t.Helper()
	l, err := sim.NewLine(5, sim.LineConfig{
		Routers: 3, RIP: &rip.Config{}, IPv6: six,
		Links: []sim.LinkConfig{both(netem.Config{Delay: time.Millisecond})},
	})
	require.NoError(t, err)
	l.Run(20 * time.Second)
	left, right := &sim.Bulk{Send: 500_000}, &sim.Bulk{}
	over, err := l.Bulk(left, right, 80, time.Minute)
	require.NoError(t, err)
	require.True(t, over)
	assert.Equal(t, uint64(500_000), right.Received)

	// After a link is cut, its neighbors' routes time out, and no route leads there any more.
	dst := l.Address(80).Addr()
	_, ok := l.Routers[0].Stack().Routing().Lookup(dst)
	require.True(t, ok)
	sim.End{Host: l.Routers[1], Iface: 1}.Cut(true)
	sim.End{Host: l.Routers[2], Iface: 0}.Cut(true)
	l.Run(settled)
	_, ok = l.Routers[0].Stack().Routing().Lookup(dst)
	assert.False(t, ok, "the route is gone")
	sim.End{Host: l.Routers[1], Iface: 1}.Cut(false)
	sim.End{Host: l.Routers[2], Iface: 0}.Cut(false)
	l.Run(settled)
	_, ok = l.Routers[0].Stack().Routing().Lookup(dst)
	assert.True(t, ok, "the route is back")
}

// Two runs of one seed are the same, packet for packet and nanosecond for nanosecond.
func TestRunsOfOneSeedAreEqual(t *testing.T) {
	wild := sim.LinkConfig{
		AB: netem.Config{
			Rate: netem.BitsPerSecond(20e6), Queue: netem.DropTail{Packets: 20},
			Delay: 3 * time.Millisecond, Jitter: netem.NormalJitter(time.Millisecond), Overtaking: true,
			Loss: netem.Bursts(0.02, 3), Duplicate: 0.01, Truncate: 0.01,
			Corrupt: netem.Corrupt{Share: 0.01},
		},
		BA: netem.Config{Delay: time.Millisecond, Loss: netem.UniformLoss(0.05)},
	}
	run := func(seed uint64) *sim.Line {
		cfg := sim.LineConfig{Routers: 1, Links: []sim.LinkConfig{wild}}
		return move(t, seed, cfg, 400_000, 50_000)
	}
	a, b, other := run(8), run(8), run(9)
	assert.Equal(t, a.Hash(), b.Hash())
	assert.Equal(t, a.Stats(), b.Stats())
	assert.Equal(t, a.Now(), b.Now())
	assert.NotEqual(t, a.Hash(), other.Hash())
}

// A full link carries its rate: 10 Mbit/s, counting payload and headers.
func TestThroughputIsTheRate(t *testing.T) {
	const size = 5_000_000
	l, err := sim.NewLine(1, sim.LineConfig{Links: []sim.LinkConfig{{
		AB: netem.Config{
			Rate: netem.BitsPerSecond(10e6), Delay: 10 * time.Millisecond,
			Queue: netem.DropTail{Packets: 100},
		},
		BA: netem.Config{Delay: 10 * time.Millisecond},
	}}})
	require.NoError(t, err)
	left, right := &sim.Bulk{Send: size}, &sim.Bulk{}
	over, err := l.Bulk(left, right, 80, time.Minute)
	require.NoError(t, err)
	require.True(t, over)
	out := sim.End{Host: l.Left}.Out().Counters()
	busy := time.Duration(out.OutBytes * 8 * 100)
	took := right.Finished.Sub(l.Now().Add(-l.Elapsed()))
	assert.Greater(t, took, busy)
	assert.InEpsilon(t, float64(busy), float64(took), 0.02)
}

func TestRefusedAndTimedOut(t *testing.T) {
	l, err := sim.NewLine(1, sim.LineConfig{})
	require.NoError(t, err)
	app := &sim.Bulk{Send: 1}
	_, err = l.Left.Dial(l.Address(9), app)
	require.NoError(t, err)
	l.RunUntil(time.Minute, func() bool { return app.Over })
	assert.ErrorIs(t, app.Err, tcp.ErrRefused)

	sim.End{Host: l.Left}.Cut(true)
	app = &sim.Bulk{Send: 1}
	_, err = l.Left.Dial(l.Address(9), app)
	require.NoError(t, err)
	l.RunUntil(time.Hour, func() bool { return app.Over })
	assert.ErrorIs(t, app.Err, tcp.ErrTimeout)
}

func TestEarlyEnds(t *testing.T) {
	run := func(left, right *sim.Bulk) {
		l, err := sim.NewLine(1, sim.LineConfig{
			Left: tcp.Config{Buffers: tcp.Buffers{Send: 20_000}}, Right: tcp.Config{Buffers: tcp.Buffers{Send: 20_000}},
			Links: []sim.LinkConfig{both(netem.Config{
				Delay: time.Millisecond, Rate: netem.BitsPerSecond(1e8),
			})},
		})
		require.NoError(t, err)
		over, err := l.Bulk(left, right, 80, time.Hour)
		require.NoError(t, err)
		require.True(t, over)
		require.False(t, left.Wrong || right.Wrong)
	}
	const size = 500_000
	left, right := &sim.Bulk{Send: size}, &sim.Bulk{Leave: sim.LeaveAbort, After: size / 2}
	run(left, right)
	assert.ErrorIs(t, left.Err, tcp.ErrReset)
	assert.ErrorIs(t, right.Err, tcp.ErrAborted)

	left = &sim.Bulk{Send: size}
	right = &sim.Bulk{Send: 10, Leave: sim.LeaveCloseRead, After: size / 2}
	run(left, right)
	assert.NoError(t, left.Err)
	assert.Equal(t, uint64(size), left.Sent)
	assert.Less(t, right.Received, uint64(size))

	left = &sim.Bulk{Send: size, Leave: sim.LeaveCloseWrite, After: size / 2}
	right = &sim.Bulk{Send: 10}
	run(left, right)
	assert.NoError(t, left.Err)
	assert.Equal(t, left.Sent, right.Received)
	assert.Less(t, right.Received, uint64(size))

	left, right = &sim.Bulk{Send: size, Leave: sim.LeaveClose, After: size / 2}, &sim.Bulk{}
	run(left, right)
	assert.NoError(t, right.Err)
	assert.Equal(t, left.Sent, right.Received, "data written before the close arrives")
}

func TestSlowApplications(t *testing.T) {
	l, err := sim.NewLine(1, sim.LineConfig{
		Left: tcp.Config{Buffers: tcp.Buffers{Send: 3000}}, Right: tcp.Config{Buffers: tcp.Buffers{Recv: 2000}},
		Links: []sim.LinkConfig{both(netem.Config{Delay: time.Millisecond})},
	})
	require.NoError(t, err)
	left := &sim.Bulk{Send: 100_000, MaxWrite: 700, MaxPause: time.Millisecond}
	right := &sim.Bulk{MaxRead: 300, MaxPause: 3 * time.Millisecond, Lazy: 0.5}
	over, err := l.Bulk(left, right, 80, time.Hour)
	require.NoError(t, err)
	require.True(t, over)
	assert.Equal(t, uint64(100_000), right.Received)
	assert.Greater(t, l.Elapsed(), 100*time.Millisecond)
}

func TestPattern(t *testing.T) {
	b := make([]byte, 200_000)
	sim.Fill(b, 12345)
	assert.Equal(t, len(b), sim.Check(b, 12345))
	assert.Less(t, sim.Check(b, 12346), 10)
	for _, at := range []int{0, 1, 53_176, 65_521, 199_999} {
		b[at]++
		assert.Equal(t, at, sim.Check(b, 12345))
		b[at]--
	}
	assert.Zero(t, sim.Check(nil, 5))
}

func TestTasksRunInOrder(t *testing.T) {
	w := sim.New(1)
	var got []int
	for i, at := range []time.Duration{3, 1, 2, 1, 3, 0} {
		w.At(w.Now().Add(at), func(clock.Time) { got = append(got, i) })
	}
	w.Run(time.Second)
	assert.Equal(t, []int{5, 1, 3, 2, 0, 4}, got)
	assert.Equal(t, time.Second, w.Elapsed())
}

func TestInvalidWorlds(t *testing.T) {
	_, err := sim.NewLine(1, sim.LineConfig{Routers: 999})
	assert.ErrorContains(t, err, "999 routers")
	bad := sim.LinkConfig{AB: netem.Config{Duplicate: 7}}
	_, err = sim.NewLine(1, sim.LineConfig{Links: []sim.LinkConfig{bad}})
	assert.ErrorIs(t, err, netem.ErrConfig)
	_, err = sim.NewLine(1, sim.LineConfig{Left: tcp.Config{Buffers: tcp.Buffers{Recv: -4}}})
	assert.ErrorContains(t, err, "host left")
	l, err := sim.NewLine(1, sim.LineConfig{})
	require.NoError(t, err)
	a, b := sim.End{Host: l.Left}, sim.End{Host: l.Right}
	assert.ErrorContains(t, l.Connect(a, b, netem.Config{}, netem.Config{}), "already has a link")
	assert.ErrorContains(t, l.Connect(a, a, netem.Config{}, netem.Config{}), "must join two hosts")
}

// In its steady state, a world allocates no memory for packets.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	l, err := sim.NewLine(1, sim.LineConfig{Routers: 1, Links: []sim.LinkConfig{{
		AB: netem.Config{
			Rate: netem.BitsPerSecond(1e8), Queue: netem.DropTail{Packets: 50},
			Delay: time.Millisecond,
		},
		BA: netem.Config{Delay: time.Millisecond},
	}}})
	require.NoError(t, err)
	left, right := &sim.Bulk{Send: 1 << 40}, &sim.Bulk{}
	_, err = l.Bulk(left, right, 80, 2*time.Second)
	require.NoError(t, err)
	before := right.Received
	allocs := testing.AllocsPerRun(10, func() { l.Run(10 * time.Millisecond) })
	assert.Greater(t, right.Received, before+1e6)
	assert.Zero(t, allocs, "for 100 ms of a full link")
}

// BenchmarkWorld measures how many packets one core simulates: each is sent, checksummed, delayed,
// verified, acknowledged and read.
func BenchmarkWorld(b *testing.B) {
	delay := netem.Config{Delay: 5 * time.Millisecond}
	rate := netem.Config{
		Delay: 5 * time.Millisecond, Rate: netem.BitsPerSecond(1e9),
		Queue: netem.DropTail{Bytes: 1 << 20},
	}
	for _, bc := range []struct {
		name string
		cfg  sim.LineConfig
	}{
		{"delay", sim.LineConfig{Links: []sim.LinkConfig{both(delay)}}},
		{"rate", sim.LineConfig{Links: []sim.LinkConfig{{AB: rate, BA: delay}}}},
		{"router", sim.LineConfig{
			Routers: 1, Links: []sim.LinkConfig{both(delay), {AB: rate, BA: delay}},
		}},
	} {
		b.Run(fmt.Sprint(bc.name), func(b *testing.B) {
			b.ReportAllocs()
			var packets uint64
			for seed := uint64(0); b.Loop(); seed++ {
				packets += move(b, seed, bc.cfg, 100_000_000, 0).Stats().Delivered
			}
			b.ReportMetric(float64(packets)/b.Elapsed().Seconds(), "packets/s")
		})
	}
}

// A host with backpressure loses no packets in its own queue, and uses the full capacity of the
// link, as without backpressure.
func TestBackpressure(t *testing.T) {
	const size = 3_000_000
	for _, held := range []bool{false, true} {
		l, err := sim.NewLine(1, sim.LineConfig{
			Left: tcp.Config{Knobs: tcp.Knobs{Recovery: tcp.Recovery{Congestion: "none"}}},
			Links: []sim.LinkConfig{{
				AB: netem.Config{
					Rate: netem.BitsPerSecond(1e7), Queue: netem.DropTail{Packets: 30},
					Delay: 5 * time.Millisecond,
				},
				BA: netem.Config{Delay: 5 * time.Millisecond},
			}},
		})
		require.NoError(t, err)
		if held {
			sim.End{Host: l.Left}.SetRoom(20)
		}
		left, right := &sim.Bulk{Send: size}, &sim.Bulk{}
		over, err := l.Bulk(left, right, 80, time.Hour)
		require.NoError(t, err)
		require.True(t, over)
		require.Equal(t, uint64(size), right.Received)
		c := sim.End{Host: l.Left}.Out().Counters()
		if held {
			busy := time.Duration(c.OutBytes * 8 * 100)
			assert.Zero(t, c.QueueDropped)
			assert.InEpsilon(t, float64(busy), float64(l.Elapsed()), 0.02)
		} else {
			assert.Positive(t, c.QueueDropped)
		}
	}
}

// A large segment crosses a path with an MTU hundreds of times smaller. It becomes a thousand small
// segments, more than a batch holds.
func TestPathWithASmallMTU(t *testing.T) {
	wire := func(mtu int) sim.LinkConfig {
		return sim.LinkConfig{
			AB: netem.Config{Delay: time.Millisecond}, BA: netem.Config{Delay: time.Millisecond}, MTU: mtu,
		}
	}
	l := move(t, 1, sim.LineConfig{
		Routers: 2, Links: []sim.LinkConfig{wire(65_535), wire(100), wire(65_535)},
	},
		300_000, 0)
	l.Run(time.Minute)
}

// A new component does not change the random draws of the others: the links lose the same packets.
func TestAddingALinkKeepsOtherDraws(t *testing.T) {
	run := func(extra bool) (lost []int) {
		w := sim.New(7)
		host := func(name string, addrs ...string) *sim.Host {
			var cfg stack.Config
			for i, a := range addrs {
				cfg.Interfaces = append(cfg.Interfaces, stack.Interface{
					Name: fmt.Sprintf("if%d", i), Addr: netip.MustParsePrefix(a),
				})
			}
			h, err := w.AddHost(name, cfg)
			require.NoError(t, err)
			return h
		}
		a := host("a", "10.0.0.1/24", "10.0.1.1/24")
		b := host("b", "10.0.0.2/24")
		lossy := netem.Config{Loss: netem.UniformLoss(0.2), Delay: time.Millisecond}
		if extra {
			c := host("c", "10.0.1.2/24")
			require.NoError(t, w.Connect(sim.End{Host: a, Iface: 1}, sim.End{Host: c}, lossy, lossy))
		}
		require.NoError(t, w.Connect(sim.End{Host: a}, sim.End{Host: b}, lossy, lossy))
		got := 0
		b.Tap(func(clock.Time, int, stack.Direction, ip.DropReason, [][]byte) { got++ })
		for i := range 100 {
			before := got
			_, err := a.Stack().SendTest(w.Now(), netip.MustParseAddr("10.0.0.2"), 0, []byte("x"))
			require.NoError(t, err)
			a.Settle()
			w.Run(10 * time.Millisecond)
			if got == before {
				lost = append(lost, i)
			}
		}
		return lost
	}
	lost := run(false)
	assert.InDelta(t, 20, len(lost), 15)
	assert.Equal(t, lost, run(true))
}

func TestNamesAreUnique(t *testing.T) {
	l, err := sim.NewLine(1, sim.LineConfig{})
	require.NoError(t, err)
	_, err = l.AddHost("left", stack.Config{})
	assert.ErrorContains(t, err, "duplicate host left")
}

// The receiver skips the checksum of packets that no link has corrupted, but it still detects
// corruption, also by a link that is not the first.
func TestCorruptionBehindARouterIsDetected(t *testing.T) {
	clean := netem.Config{Delay: time.Millisecond}
	corrupting := clean
	corrupting.Corrupt = netem.Corrupt{Share: 0.05, Where: netem.Payload, Bits: 2}
	for name, wires := range map[string][]sim.LinkConfig{
		"first":  {{AB: corrupting, BA: clean}, both(clean)},
		"second": {both(clean), {AB: corrupting, BA: clean}},
	} {
		l, err := sim.NewLine(1, sim.LineConfig{Routers: 1, Links: wires})
		require.NoError(t, err)
		found := uint64(0)
		l.Right.Tap(func(_ clock.Time, _ int, _ stack.Direction, why ip.DropReason, _ [][]byte) {
			if why == ip.DropTCPChecksum {
				found++
			}
		})
		app := &sim.Bulk{}
		over, err := l.Bulk(&sim.Bulk{Send: 1_000_000}, app, 80, time.Minute)
		require.NoError(t, err)
		require.True(t, over && !app.Wrong && app.Received == 1_000_000, name)
		corrupted := uint64(0)
		for _, e := range []sim.End{{Host: l.Left}, {Host: l.Routers[0], Iface: 1}} {
			corrupted += e.Out().Counters().Corrupted
		}
		assert.Greater(t, corrupted, uint64(20), name)
		assert.Equal(t, corrupted, found, name)
	}
}

func TestRunWithinATurnPanics(t *testing.T) {
	w := sim.New(1)
	w.At(w.Now(), func(clock.Time) { w.Run(time.Second) })
	assert.PanicsWithValue(t, "BUG: sim: a world is run from within a turn",
		func() { w.Run(time.Second) })
}
