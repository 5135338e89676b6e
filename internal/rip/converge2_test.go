package rip_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/rip"
)

var rip2 = rip.Config{Dialect: rip.RIPv2}

// RFC 2453 §3.10.1, RFC 2080 §2.5.1: a router that has sent a triggered update delays the next one
// by up to 5 s.
func TestConvergenceOfRIPv2(t *testing.T) {
	for _, tt := range []struct {
		name    string
		routers int
		pairs   [][2]int
	}{
		{"two", 2, line(2)},
		{"line of 15", 15, line(15)},
		{"line of 16, the longest", 16, line(16)},
		{"ring of 27", 27, ring(27)},
		{"grid of 6 x 6", 36, grid(6)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, dialect := range []rip.Dialect{rip.RIPv2, rip.RIPng} {
				w := newNetwork(t, tt.routers, tt.pairs, rip.Config{Dialect: dialect})
				w.start()
				begin := w.now
				w.run(2 * time.Minute)
				assert.Empty(t, w.wrongRoutes())
				assert.LessOrEqual(t, w.took(begin), 5*time.Second*time.Duration(min(tt.routers, 14)))
				t.Logf("# converged after %v, %d messages in two minutes", w.took(begin), w.sent)
				before := w.settled
				w.run(20 * time.Minute)
				assert.Equal(t, before, w.settled, "no table changes after convergence")
				assert.Empty(t, w.wrongRoutes())
			}
		})
	}
}

// RFC 2453 §3.2: a network that is 15 hops away has cost 16, because its own router announces it at
// 1.
func TestInfinityEndsTheLineOfRIPv2(t *testing.T) {
	w := newNetwork(t, 18, line(18), rip2)
	w.start()
	w.run(10 * time.Minute)
	assert.Equal(t, 14, w.hops(w.routers[0], w.wires[14].prefix))
	assert.Equal(t, -1, w.hops(w.routers[0], w.wires[15].prefix))
	assert.Empty(t, w.wrongRoutes())
}

func TestCutsOfRIPv2(t *testing.T) {
	for _, seen := range []bool{true, false} {
		t.Run(fmt.Sprintf("seen %v", seen), func(t *testing.T) {
			w := newNetwork(t, 8, ring(8), rip2)
			w.start()
			w.run(5 * time.Minute)
			require.Empty(t, w.wrongRoutes())
			cut := w.now
			if seen {
				w.setDown(0, true)
			} else {
				w.wires[0].broken = true
			}
			w.run(10 * time.Minute)
			assert.Zero(t, w.loops())
			for _, r := range w.routers {
				for _, x := range w.wires[1:] {
					assert.GreaterOrEqual(t, w.hops(r, x.prefix), 0, "router %d to %v", r.id, x.prefix)
				}
			}
			if seen {
				assert.Empty(t, w.wrongRoutes())
				// The routers learn the other path from the next full update (RFC 2453 §3.8).
				assert.LessOrEqual(t, w.took(cut), 35*time.Second+8*5*time.Second)
			} else {
				assert.GreaterOrEqual(t, w.took(cut), 145*time.Second, "not before the timeout")
				assert.LessOrEqual(t, w.took(cut), 180*time.Second+35*time.Second+8*5*time.Second)
			}
			t.Logf("# converged %v after the cut", w.took(cut))
		})
	}
}

// RFC 2453 §3.4.4: split horizon does not prevent this case (see TestCountingToInfinityIsBounded).
// With delayed triggered updates each step takes up to 5 s.
func TestCountingToInfinityOfRIPv2(t *testing.T) {
	w := newNetwork(t, 4, append(ring(3), [2]int{0, 3}), rip2)
	w.start()
	w.run(20 * time.Second)
	require.Empty(t, w.wrongRoutes())
	stub := w.wires[3].prefix
	deaf := true
	w.lose = func(from, to *router, _ []byte) bool { return deaf && from.id == 0 && to.id == 2 }
	w.setDown(3, true)
	w.run(40 * time.Second) // router 2 announces the route during this time
	deaf = false
	heard := w.now
	worst := 0
	for range 3000 {
		w.run(100 * time.Millisecond)
		for _, r := range w.routers[:3] {
			worst = max(worst, r.routes[stub].Cost)
		}
	}
	t.Logf("# the cost went up to %d; quiet %v after router 2 hears", worst, w.took(heard))
	assert.Greater(t, worst, 4, "the routers counted up")
	assert.Less(t, worst, rip.Infinity)
	assert.LessOrEqual(t, w.took(heard), 35*time.Second+16*5*time.Second, "16 steps, not 16 periods")
	assert.Empty(t, w.wrongRoutes())
	assert.Zero(t, w.loops())
}

func TestRIPv2UnderChurnAndLoss(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 3))
			w := &network{tb: t, now: 1, delay: time.Millisecond}
			w.keys = []rip.Key{key(1, rip.KeyedMD5, "tide")}
			w.make(12, append(ring(12), [2]int{0, 6}, [2]int{3, 9}), rip2)
			w.lose = func(_, _ *router, _ []byte) bool { return rng.Float64() < 0.1 }
			w.start()
			w.run(time.Minute)
			for range 8 {
				i := rng.IntN(len(w.wires))
				w.setDown(i, !w.wires[i].down)
				w.run(time.Duration(rng.IntN(60)) * time.Second)
			}
			w.run(6 * time.Minute)
			assert.Zero(t, w.loops(), "no routing loop is left")
			w.lose = nil
			w.run(4 * time.Minute)
			assert.Empty(t, w.wrongRoutes())
		})
	}
}

// Many routers converge in the course's dialect.
func TestManyRoutersConverge(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 4))
	n := 150
	if !testenv.Long() {
		n = 50
	}
	var pairs [][2]int
	for i := 1; i < n; i++ {
		pairs = append(pairs, [2]int{i, rng.IntN(i)})
	}
	for range n {
		if a, b := rng.IntN(n), rng.IntN(n); a != b {
			pairs = append(pairs, [2]int{a, b})
		}
	}
	w := newNetwork(t, n, pairs, rip.Config{})
	w.start()
	w.run(2 * time.Second)
	assert.Empty(t, w.wrongRoutes())
}

// big delivers n routes from b to a RIPv2 Speaker. It returns the messages that b has sent.
func big(tb testing.TB, n int) (*bench2, [][]byte) {
	tb.Helper()
	x := newBench2(tb, undelayed())
	var messages [][]byte
	var entries []string
	for i := range n {
		entries = append(entries, fmt.Sprintf("20.%d.%d.0/24=1", i>>8, i&255))
		if len(entries) == rip.MaxEntries2 || i == n-1 {
			messages = append(messages, message2(tb, rip.Response, 2, strings.Join(entries, " ")))
			entries = entries[:0]
		}
	}
	for _, m := range messages {
		require.Equal(tb, rip.Accepted, x.say(b, rip.Port, m))
	}
	for _, ok := x.NextChange(); ok; _, ok = x.NextChange() {
		continue
	}
	x.fetch()
	return x, messages
}

const manyRoutes = 10_000

// A full table takes many messages. The Speaker learns, announces, expires and deletes it.
func TestTenThousandRoutes(t *testing.T) {
	x, messages := big(t, manyRoutes)
	assert.Len(t, messages, 400)
	x.now = x.Deadline()
	x.Advance(x.now)
	sent := x.fetch()
	assert.Len(t, sent, 2*401, "all routes and the router's two networks, on both links")
	x.now = x.now.Add(180 * time.Second)
	x.Advance(x.now)
	gone := 0
	for c, ok := x.NextChange(); ok; c, ok = x.NextChange() {
		require.True(t, c.Gone)
		gone++
	}
	assert.Equal(t, manyRoutes, gone)
	x.fetch()
	x.now = x.now.Add(120 * time.Second)
	x.Advance(x.now)
	assert.Len(t, x.Info(x.now).Routes, 2)
}

// Neither a repeated route nor a full update without changes allocates memory.
func TestBigTableDoesNotAllocate(t *testing.T) {
	x, messages := big(t, 1000)
	from := netip.AddrPortFrom(b, rip.Port)
	var m rip.Message
	x.now = x.Deadline()
	x.Advance(x.now)
	for x.Output(x.now, &m) {
		continue
	}
	assert.Zero(t, testing.AllocsPerRun(20, func() {
		for _, p := range messages {
			if x.Input(x.now, from, 0, p) != rip.Accepted {
				t.Fatal("refused")
			}
		}
		x.now = max(x.Deadline(), x.now+1)
		x.Advance(x.now)
		for x.Output(x.now, &m) {
			continue
		}
	}))
}

func BenchmarkRefresh10k(bb *testing.B) {
	x, messages := big(bb, manyRoutes)
	from := netip.AddrPortFrom(b, rip.Port)
	bb.ReportAllocs()
	for bb.Loop() {
		x.now++
		for _, m := range messages {
			x.Input(x.now, from, 0, m)
		}
	}
	bb.ReportMetric(float64(bb.Elapsed().Nanoseconds())/float64(bb.N)/manyRoutes, "ns/route")
}

func BenchmarkWholeTable10k(bb *testing.B) {
	x, _ := big(bb, manyRoutes)
	ask, from := message2(bb, rip.Request, 2, "*"), netip.AddrPortFrom(c, 4000)
	var m rip.Message
	bb.ReportAllocs()
	for bb.Loop() {
		x.Input(x.now, from, 1, ask)
		n := 0
		for x.Output(x.now, &m) {
			n++
		}
		if n != 401 {
			bb.Fatal(n)
		}
	}
	bb.ReportMetric(float64(bb.Elapsed().Nanoseconds())/float64(bb.N)/manyRoutes, "ns/route")
}

func BenchmarkLearn10k(bb *testing.B) {
	_, messages := big(bb, manyRoutes)
	from := netip.AddrPortFrom(b, rip.Port)
	bb.ReportAllocs()
	for bb.Loop() {
		x := newBench2(bb, undelayed())
		for _, m := range messages {
			x.Input(clock.Time(5), from, 0, m)
		}
	}
	bb.ReportMetric(float64(bb.Elapsed().Nanoseconds())/float64(bb.N)/manyRoutes, "ns/route")
}
