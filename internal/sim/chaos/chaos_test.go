// Package chaos_test connects two stacks by links that drop, duplicate, reorder, cut and corrupt
// packets, and runs many kinds of applications over them, seed after seed:
//
//	go test ./internal/sim/chaos -v -run TestChaos -timeout 0 -seeds -1  # endless
//	go test ./internal/sim/chaos -v -run TestChaos -seeds 2000 -hash     # hashes
//	go test ./internal/sim/chaos -v -run TestSeed -seed 4711             # one seed
//
// check_test.go has the checks. The seed determines everything: draw_test.go draws the scenario
// from it. A failed seed's message says how to repeat the run.
package chaos_test

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"sync"
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

var (
	seedCount = flag.Int64("seeds", 0, "number of `SEEDS` of TestChaos; -1: until interrupted")
	firstSeed = flag.Uint64("first", 0, "first `SEED` of TestChaos")
	hashes    = flag.Bool("hash", false, "print each seed's hash, and how its ends closed")
	oneSeed   = flag.Uint64("seed", 3, "the `SEED` of TestSeed")
	overIPv6  = flag.Bool("ipv6", false, "run TestSeed over IPv6")
)

// TestChaos runs a number of seeds. Over links with all faults, either every byte arrives in order,
// or the connection fails with an error. No acknowledged byte is lost.
func TestChaos(t *testing.T) { chaos(t, 10_000, false) }

func TestChaosOverIPv6(t *testing.T) { chaos(t, 4000, true) }

const maxFailures = 10

func chaos(t *testing.T, usual int64, ipv6 bool) {
	t.Helper()
	if !testenv.Long() {
		usual /= 20
	}
	count := uint64(cmp.Or(*seedCount, usual)) // -1 is the largest number
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt)
	defer stop()
	seeds, outcomes := make(chan uint64), make(chan *outcome)
	go func() {
		defer close(seeds)
		for n := range count {
			select {
			case seeds <- *firstSeed + n:
			case <-ctx.Done():
				return
			}
		}
	}()
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for seed := range seeds {
				outcomes <- play(seed, ipv6, nil)
			}
		})
	}
	go func() {
		workers.Wait()
		close(outcomes)
	}()
	all := newTally()
	for o := range outcomes {
		all.add(o)
		assert.Empty(t, o.failure, "repeat it: go test ./internal/sim/chaos -v -run TestSeed "+
			"-seed %d -ipv6=%t", o.seed, ipv6)
		if *hashes {
			fmt.Printf("seed %06d hash %016x %v\n", o.seed, o.hash, o.ends)
		}
		if all.seeds%10_000 == 0 {
			t.Logf("%d seeds", all.seeds)
		}
		if all.failed == maxFailures {
			stop()
		}
	}
	t.Log(all)
	// The run proves nothing unless faults occurred and transfers survived them.
	assert.Greater(t, all.verified, all.seeds*5000)
	assert.Greater(t, all.cleanPairs, all.seeds*7/10)
	f := &all.faults
	for _, n := range []uint64{f.Lost, f.Duplicated, f.Reordered, f.Truncated, f.Corrupted} {
		assert.Greater(t, n, 5*all.seeds)
	}
}

// TestSeed runs one seed and prints its details.
func TestSeed(t *testing.T) {
	s := draw(*oneSeed, *overIPv6)
	var packets bytes.Buffer
	o := play(*oneSeed, *overIPv6, &packets)
	t.Logf("%s\nline %+v\nleft %+v\nright %+v\noutages %+v\nrooms %v\n%+v",
		&packets, s.line, s.left, s.right, s.outages, s.rooms, *o)
	assert.Empty(t, o.failure)
	assert.Contains(t, packets.String(), "Flags [S]")
}

func TestSeedDeterminesTheRun(t *testing.T) {
	for seed := range uint64(20) {
		first, again := play(seed, false, nil), play(seed, false, nil)
		assert.Equal(t, first, again)
		over6 := play(seed, true, nil)
		assert.NotEqual(t, first.hash, over6.hash)
		assert.Equal(t, over6, play(seed, true, nil))
	}
}

// faultless returns a scenario without faults. Tests add faults to it.
func faultless() *scenario {
	s := draw(0, false)
	s.outages = nil
	delay := netem.Config{Delay: time.Millisecond}
	s.line = sim.LineConfig{Links: []sim.LinkConfig{{AB: delay, BA: delay}}}
	s.left, s.right = sim.Bulk{Send: 100_000}, sim.Bulk{Send: 50_000}
	return s
}

// playWith runs a scenario with a change, and returns the violated invariant.
func playWith(s *scenario, change func(*seedRun)) string {
	r := &seedRun{scenario: s}
	if err := r.build(nil); err != nil {
		return err.Error()
	}
	if change != nil {
		change(r)
	}
	r.run()
	return r.failure
}

// Each check fails if its invariant is violated.
func TestChecksDetectViolations(t *testing.T) {
	assert.Empty(t, playWith(faultless(), nil))

	s := faultless()
	s.right.RecvAt = 1
	assert.Contains(t, playWith(s, nil), "right: byte 0 is wrong")

	s = faultless()
	assert.Contains(t, playWith(s, func(r *seedRun) {
		r.line.At(r.line.Now(), func(now clock.Time) { r.left.app.Sent -= 10 })
	}), "sent", "more arrives than the application counted")

	s = faultless()
	s.left.KeepOpen = true
	assert.Contains(t, playWith(s, nil), "stuck", "an end that never closes")

	s = faultless()
	assert.Contains(t, playWith(s, func(r *seedRun) {
		r.line.At(r.line.Now().Add(5*time.Millisecond), func(clock.Time) {
			r.left.conn.Abort()
			r.left.conn.Host().Settle()
		})
	}), "was aborted, but neither application aborted it")

	s = faultless()
	s.line.Left.Buffers.Recv = -1
	assert.Contains(t, playWith(s, nil), "Buffers.Recv")
}

// The check detects an acknowledgment of a byte that the other end has not received.
func TestFalseAcknowledgmentIsDetected(t *testing.T) {
	r := &seedRun{scenario: faultless()}
	require.NoError(t, r.build(nil))
	r.steps(time.Hour, func() bool { return r.right.conn != nil })
	r.checkAlways()
	require.Empty(t, r.failure)
	tx := r.left.conn.TCP().Tx()
	require.Greater(t, tx.Tail(), r.right.inOrder(1<<40))
	tx.Release(tx.Tail())
	r.checkAlways()
	assert.Contains(t, r.failure, "got an acknowledgment of 100000 bytes")
}

func TestHalfOpenConnectionIsNoFailure(t *testing.T) {
	s := faultless()
	s.left.Send = 0
	r := &seedRun{scenario: s}
	require.NoError(t, r.build(nil))
	r.steps(time.Hour, func() bool {
		return r.right.conn != nil && r.left.conn.TCP().State() == tcp.StateFinWait2
	})
	require.Empty(t, r.failure)
	sim.End{Host: r.line.Right}.Cut(true)
	// For the checks, the application itself ends the connection.
	r.right.app.Leave = sim.LeaveAbort
	r.right.conn.Abort()
	r.right.conn.Host().Settle()
	r.run()
	assert.Empty(t, r.failure)
	assert.True(t, r.left.halfOpen)
	assert.Equal(t, "half-open", r.left.outcome())
}
