package rip_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/rip"
)

// took returns the time from since to the last change of a routing table.
func (w *network) took(since clock.Time) time.Duration {
	if w.settled < since {
		return 0
	}
	return w.settled.Sub(since)
}

func TestConvergenceAfterStart(t *testing.T) {
	// Routers send triggered updates at once (RFC 2453 §3.4.4), so the network converges when they
	// have crossed it: each link takes 1 ms.
	tests := []struct {
		name    string
		routers int
		pairs   [][2]int
		within  time.Duration
	}{
		{"two", 2, line(2), 0},
		{"line of 3", 3, line(3), time.Millisecond},
		{"line of 15", 15, line(15), 13 * time.Millisecond},
		{"line of 17, the longest", 17, line(17), 15 * time.Millisecond},
		{"ring of 3", 3, ring(3), time.Millisecond},
		{"ring of 29", 29, ring(29), 14 * time.Millisecond},
		{"grid of 8 x 8", 64, grid(8), 14 * time.Millisecond},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newNetwork(t, tt.routers, tt.pairs, rip.Config{})
			w.start()
			begin := w.now
			w.run(4 * time.Second)
			assert.Empty(t, w.wrongRoutes())
			assert.LessOrEqual(t, w.took(begin), tt.within)
			t.Logf("# converged after %v, %d messages", w.took(begin), w.sent)

			t.Log("# no table changes after convergence")
			before := w.settled
			w.run(time.Minute)
			assert.Equal(t, before, w.settled)
			assert.Empty(t, w.wrongRoutes())
		})
	}
}

func TestInfinityEndsTheLine(t *testing.T) {
	// RFC 2453 §3.2: the longest path is 15 hops.
	w := newNetwork(t, 18, line(18), rip.Config{})
	w.start()
	w.run(20 * time.Second)
	assert.Equal(t, 15, w.hops(w.routers[0], w.wires[15].prefix))
	assert.Equal(t, -1, w.hops(w.routers[0], w.wires[16].prefix))
	assert.Equal(t, 15, w.hops(w.routers[1], w.wires[16].prefix))
	assert.Empty(t, w.wrongRoutes())
}

func TestCutWithInterfaceDown(t *testing.T) {
	// When an interface goes down, the routers withdraw its routes at once. A router that lost a
	// path requests another one when the withdrawals have passed.
	for _, n := range []int{3, 4, 8, 15, 29} {
		t.Run(fmt.Sprintf("ring of %d", n), func(t *testing.T) {
			w := newNetwork(t, n, ring(n), rip.Config{})
			w.start()
			w.run(7 * time.Second)
			cut := w.now
			w.setDown(0, true)
			w.run(time.Duration(n+1) * time.Millisecond)
			for _, r := range w.routers {
				assert.NotContains(t, r.routes, w.wires[0].prefix,
					"router %d has learned of the cut", r.id)
			}
			w.run(30 * time.Second)
			assert.Empty(t, w.wrongRoutes())
			assert.LessOrEqual(t, w.took(cut), 500*time.Millisecond+time.Duration(2*n)*time.Millisecond)
			t.Logf("# converged %v after the cut", w.took(cut))

			t.Log("# and up again: the router requests the table, so it does not wait for a periodic update")
			up := w.now
			w.setDown(0, false)
			w.run(time.Second)
			assert.Empty(t, w.wrongRoutes())
			assert.LessOrEqual(t, w.took(up), time.Duration(n+2)*time.Millisecond)
		})
	}
}

func TestCutWithoutRequests(t *testing.T) {
	// As in RFC 2453, a router learns another path from a neighbor's next full update.
	w := newNetwork(t, 8, ring(8), rip.Config{Timers: rip.Timers{AskAfter: -1}})
	w.start()
	w.run(7 * time.Second)
	cut := w.now
	w.setDown(0, true)
	w.run(30 * time.Second)
	assert.Empty(t, w.wrongRoutes())
	assert.LessOrEqual(t, w.took(cut), 5*time.Second+20*time.Millisecond)
	assert.Greater(t, w.took(cut), time.Second)
}

func TestUndetectedCut(t *testing.T) {
	// RFC 2453 §3.8: the timeout detects the failure, 12 s after the last update.
	w := newNetwork(t, 5, ring(5), rip.Config{})
	w.start()
	w.run(7 * time.Second)
	cut := w.now
	w.wires[0].broken = true
	w.run(40 * time.Second)
	assert.LessOrEqual(t, w.took(cut), 12*time.Second+520*time.Millisecond)
	assert.GreaterOrEqual(t, w.took(cut), 7*time.Second, "not before the timeout")
	t.Logf("# converged %v after the cut", w.took(cut))

	t.Log("# router 0 still has its interface on the broken link, so its network stays")
	for _, r := range w.routers {
		for _, x := range w.wires[1:] {
			assert.GreaterOrEqual(t, w.hops(r, x.prefix), 0, "router %d to %v", r.id, x.prefix)
		}
	}
	assert.Zero(t, w.loops())
}

func TestFlap(t *testing.T) {
	w := newNetwork(t, 6, ring(6), rip.Config{})
	w.start()
	w.run(time.Second)
	sent := w.sent
	const flaps = 20
	for range flaps {
		w.setDown(2, true)
		w.run(30 * time.Millisecond)
		w.setDown(2, false)
		w.run(30 * time.Millisecond)
		assert.Empty(t, w.wrongRoutes(), "after the updates have spread")
		assert.Zero(t, w.loops())
	}
	perFlap := (w.sent - sent) / flaps
	t.Logf("# %d messages a flap", perFlap)
	assert.Less(t, perFlap, 120, "a flap costs messages in proportion to the network")
}

func TestNodeFailsAndRecovers(t *testing.T) {
	w := newNetwork(t, 4, ring(4), rip.Config{})
	w.start()
	w.run(6 * time.Second)
	w.wires[0].broken, w.wires[1].broken = true, true // router 1 is between these links
	w.run(20 * time.Second)
	assert.Equal(t, 1, w.hops(w.routers[0], w.wires[2].prefix))
	t.Log("# after twice the timeout expired routes are deleted, and the network comes back")
	w.run(20 * time.Second)
	w.wires[0].broken, w.wires[1].broken = false, false
	w.run(6 * time.Second)
	assert.Empty(t, w.wrongRoutes())
}

// RFC 2453 §3.4.4: split horizon does not stop three routers from learning an unreachable route
// from each other in turn. Router 0 loses its network 10.0.3.0/24. Router 1 learns of the loss, but
// router 2 does not. Router 2's next update restores the route at router 1, whose update then
// restores it at router 0.
func TestCountingToInfinityIsBounded(t *testing.T) {
	pairs := append(ring(3), [2]int{0, 3})
	w := newNetwork(t, 4, pairs, rip.Config{})
	w.start()
	w.run(4999 * time.Millisecond)
	require.Empty(t, w.wrongRoutes())
	stub := w.wires[3].prefix

	deaf := true
	w.lose = func(from, to *router, _ []byte) bool { return deaf && from.id == 0 && to.id == 2 }
	cut, sent := w.now, w.sent
	w.setDown(3, true)
	w.run(500 * time.Microsecond)
	assert.Contains(t, w.routers[2].routes, stub, "router 2 has not learned of the loss")
	deaf = false

	worst := 0
	for range 10_000 {
		w.run(100 * time.Microsecond)
		for _, r := range w.routers[:3] {
			worst = max(worst, r.routes[stub].Cost)
		}
	}
	t.Logf("# the cost went up to %d; quiet %v after the cut, %d messages", worst, w.took(cut), w.sent-sent)
	assert.Greater(t, worst, 3, "the routers counted up")
	assert.Less(t, worst, rip.Infinity)
	assert.LessOrEqual(t, w.took(cut), 40*time.Millisecond, "16 steps, not 16 periods")
	assert.Empty(t, w.wrongRoutes())
	assert.Zero(t, w.loops())
}

func TestConvergenceWithLoss(t *testing.T) {
	for seed := range uint64(10) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			w := newNetwork(t, 10, append(ring(10), [2]int{0, 5}, [2]int{2, 7}), rip.Config{})
			w.lose = func(_, _ *router, _ []byte) bool { return rng.Float64() < 0.2 }
			w.start()
			w.run(30 * time.Second)
			w.setDown(0, true)
			w.run(2 * time.Second)
			w.setDown(4, true)
			w.run(time.Minute)
			assert.Zero(t, w.loops(), "no routing loop is left")
			w.lose = nil
			w.run(12 * time.Second)
			assert.Empty(t, w.wrongRoutes())
		})
	}
}

func TestRandomNetworksUnderChurn(t *testing.T) {
	seeds := uint64(8)
	if !testenv.Long() {
		seeds = 2
	}
	for seed := range seeds {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 2))
			const n = 40
			var pairs [][2]int
			for i := 1; i < n; i++ { // a tree with a few additional links
				pairs = append(pairs, [2]int{i, rng.IntN(i)/3 + i/4})
			}
			for range 15 {
				if a, b := rng.IntN(n), rng.IntN(n); a != b {
					pairs = append(pairs, [2]int{a, b})
				}
			}
			w := newNetwork(t, n, pairs, rip.Config{})
			w.start()
			w.run(5 * time.Second)
			require.Empty(t, w.wrongRoutes())
			for range 12 {
				i := rng.IntN(len(w.wires))
				w.setDown(i, !w.wires[i].down)
				w.run(time.Duration(rng.IntN(3000)) * time.Millisecond)
			}
			w.run(20 * time.Second)
			assert.Empty(t, w.wrongRoutes())
		})
	}
}

func TestSameNetworkSameMessages(t *testing.T) {
	play := func() (uint64, int) {
		w := newNetwork(t, 16, grid(4), rip.Config{})
		w.start()
		w.run(3 * time.Second)
		w.setDown(5, true)
		w.run(20 * time.Second)
		w.setDown(5, false)
		w.run(20 * time.Second)
		return w.log, w.sent
	}
	log, sent := play()
	for range 3 {
		againLog, againSent := play()
		require.Equal(t, log, againLog)
		require.Equal(t, sent, againSent)
	}
}

// TestOldAddresses builds a line of three routers as files with the old syntax do: each end of a
// link is its own /32, and entries have no mask.
func TestOldAddresses(t *testing.T) {
	w := newNetwork(t, 3, line(3), rip.Config{EntrySize: 8})
	for _, r := range w.routers {
		for i, p := range r.ports {
			r.speaker.SetLocal(w.now, p.wire.prefix, i, false)
		}
	}
	for _, r := range w.routers {
		for i, p := range r.ports {
			host, err := p.addr.Prefix(32)
			require.NoError(t, err)
			r.speaker.SetLocal(w.now, host, i, true)
		}
	}
	w.start()
	w.run(time.Second)
	var got []string
	for _, p := range []string{"10.0.0.2/32", "10.0.1.1/32", "10.0.1.2/32"} {
		c, ok := w.routers[0].routes[entry(p, 0).Prefix]
		require.True(t, ok, p)
		got = append(got, fmt.Sprint(p, " via ", c.NextHop, " cost ", c.Cost))
	}
	assert.Equal(t, []string{
		"10.0.0.2/32 via 10.0.0.2 cost 1",
		"10.0.1.1/32 via 10.0.0.2 cost 1",
		"10.0.1.2/32 via 10.0.0.2 cost 2",
	}, got)
	assert.Len(t, w.routers[0].routes, 3)
}
