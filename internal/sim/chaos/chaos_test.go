package main

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/netem"
	"github.com/tidepool-net/tidepool/internal/sim"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// TestChaos runs a limited number of seeds. Over a link with all faults, either every byte arrives
// in order, or the connection fails with an error. No acknowledged byte is lost.
func TestChaos(t *testing.T) {
	chaos(t, 10_000, false)
}

func TestChaosOverIPv6(t *testing.T) {
	chaos(t, 4000, true)
}

func chaos(t *testing.T, seeds uint64, ipv6 bool) {
	t.Helper()
	const batches = 20
	if !testenv.Long() {
		seeds /= 20
	}
	totals := make([]*tally, batches)
	t.Run("seeds", func(t *testing.T) {
		for i := range totals {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				totals[i] = newTally()
				for seed := uint64(i); seed < seeds; seed += batches {
					o := play(seed, ipv6, nil)
					totals[i].add(o)
					require.Empty(t, o.failure, replayCommand(seed, ipv6))
				}
			})
		}
	})
	// The run proves nothing unless faults occurred and transfers survived them.
	var all tally
	for _, one := range totals {
		all.seeds += one.seeds
		all.verified += one.verified
		all.cleanPairs += one.cleanPairs
		all.faults.Add(&one.faults)
	}
	assert.Equal(t, seeds, all.seeds)
	assert.Greater(t, all.verified, seeds*5000)
	assert.Greater(t, all.cleanPairs, seeds*7/10)
	f := &all.faults
	for _, n := range []uint64{f.Lost, f.Duplicated, f.Reordered, f.Truncated, f.Corrupted} {
		assert.Greater(t, n, 5*seeds)
	}
}

func TestOneSeedIsOneRun(t *testing.T) {
	for seed := range uint64(20) {
		first, again := play(seed, false, nil), play(seed, false, nil)
		assert.Equal(t, first, again)
		over6 := play(seed, true, nil)
		assert.NotEqual(t, first.hash, over6.hash)
		assert.Equal(t, over6, play(seed, true, nil))
	}
}

// faultless returns a scenario without faults, for tests that add their own.
func faultless() *scenario {
	s := draw(0, false)
	s.outages = nil
	delay := netem.Config{Delay: time.Millisecond}
	s.line = sim.LineConfig{Wires: []sim.Wire{{AB: delay, BA: delay}}}
	s.left, s.right = sim.Bulk{Send: 100_000}, sim.Bulk{Send: 50_000}
	return s
}

// playWith plays a scenario, with a change to its game.
func playWith(s *scenario, tamper func(*game)) string {
	g := &game{scenario: s}
	if err := g.build(nil); err != nil {
		return err.Error()
	}
	if tamper != nil {
		tamper(g)
	}
	g.run()
	return g.failure
}

// Each check fails if its invariant is violated.
func TestTheChecksNotice(t *testing.T) {
	assert.Empty(t, playWith(faultless(), nil))

	s := faultless()
	s.right.RecvAt = 1
	assert.Contains(t, playWith(s, nil), "right: byte 0 is wrong", "the reader's pattern is another")

	s = faultless()
	assert.Contains(t, playWith(s, func(g *game) {
		g.line.At(g.line.Now(), func(now clock.Time) { g.left.app.Sent -= 10 })
	}), "sent", "more arrives than was sent")

	s = faultless()
	s.left.KeepOpen = true
	assert.Contains(t, playWith(s, nil), "stuck", "an end that never closes")

	s = faultless()
	assert.Contains(t, playWith(s, func(g *game) {
		g.line.At(g.line.Now().Add(5*time.Millisecond), func(clock.Time) {
			g.left.conn.Abort()
			g.left.conn.Host().Settle()
		})
	}), "was aborted, but neither application aborted it")

	s = faultless()
	s.line.Left.Buffers.Recv = -1
	assert.Contains(t, playWith(s, nil), "Buffers.Recv")
}

// The check detects a byte that TCP calls acknowledged although the other end does not have it.
func TestAFalseAcknowledgmentIsNoticed(t *testing.T) {
	g := &game{scenario: faultless()}
	require.NoError(t, g.build(nil))
	g.steps(time.Hour, func() bool { return g.right.conn != nil })
	g.checkAlways()
	require.Empty(t, g.failure)
	tx := g.left.conn.TCP().Tx()
	require.Greater(t, tx.Tail(), g.right.inOrder(1<<40))
	tx.Release(tx.Tail())
	g.checkAlways()
	assert.Contains(t, g.failure, "got an acknowledgment of 100000 bytes")
}

func TestWaitingForAPeerThatIsGoneIsNoFailure(t *testing.T) {
	s := faultless()
	s.left.Send = 0
	g := &game{scenario: s}
	require.NoError(t, g.build(nil))
	g.steps(time.Hour, func() bool {
		return g.right.conn != nil && g.left.conn.TCP().State() == tcp.StateFinWait2
	})
	require.Empty(t, g.failure)
	sim.End{Host: g.line.Right}.Cut(true)
	// The checks see an application that ends the connection itself.
	g.right.app.Leave = sim.LeaveAbort
	g.right.conn.Abort()
	g.right.conn.Host().Settle()
	g.run()
	assert.Empty(t, g.failure)
	assert.True(t, g.left.forlorn)
	assert.Equal(t, "waited for a peer that was gone", g.left.outcome())
}

func TestRunnerAndReport(t *testing.T) {
	var out bytes.Buffer
	r := runner{first: 5, seeds: 40, workers: 3, out: &out, progress: 1}
	total := r.run(context.Background())
	assert.Equal(t, uint64(40), total.seeds)
	assert.Contains(t, out.String(), "a second")
	out.Reset()
	total.failures = []uint64{7}
	total.ipv6 = true
	total.print(&out, time.Second)
	for _, want := range []string{
		"seeds run                                     40\n", "bytes verified", "  corrupted",
		"an end: clean", "seeds a second                              40.0\n",
		"go run ./internal/sim/chaos -seed 7 -ipv6=true\n",
	} {
		assert.Contains(t, out.String(), want)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r.seeds = 0
	assert.Zero(t, r.run(ctx).seeds, "an interrupt ends it")

	out.Reset()
	assert.Zero(t, replay(&out, 3, false, true))
	assert.Contains(t, out.String(), "Flags [S]")
	assert.Contains(t, out.String(), "hash")
}
