package starlark_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
	"github.com/tidepool-net/tidepool/internal/tcp/starlark"
)

// FuzzScript checks that any file is refused or gives a controller, and that neither the compiler
// nor the controller panics or hangs at any event. The window is always between a segment and the
// largest window, and every error is an *Error with a position in the file or for the whole file.
func FuzzScript(f *testing.F) {
	files, err := filepath.Glob("../../../tutorial/*.star")
	require.NoError(f, err)
	for _, name := range files {
		src, err := os.ReadFile(name)
		require.NoError(f, err)
		f.Add(src, uint64(1))
	}
	for _, src := range []string{
		"def on_ack(state, ack): state.own.append([ack.rtt, random()])\n" +
			"def init(state, conn): state.own = []",
		"def on_ack(state, ack):\n  while ack.now < 5: state.cwnd = state.cwnd * 2 + 1",
		"def on_exit(state, exit): return (exit.cwnd_before, math.pow(exit.now, .5))",
		"def on_loss(state, loss): state.own = {loss.kind: state.cwnd, TIMEOUT: -1}",
		"def on_segment_lost(state, s): print('%d at %s' % (s.seq, s.now))",
		"def on_restart(state, restart): return sorted([x for x in range(3)])[1] << 300",
		"N = param('n', 0.5)\ndef init(state, conn): set_timer(N)\n" +
			"def on_timer(state, timer):\n  set_timer(N)\n  record('n', timer.now)",
		"def on_send(state, sent): return sent.in_flight + sent.size",
		"def on_ack(state, ack): print(ack.marked, ack.one_way, ack.sent_at)",
		"x = {}\nfor i in range(9): x[i] = x",
	} {
		f.Add([]byte(whole(src)), uint64(2))
	}
	f.Fuzz(func(t *testing.T, src []byte, seed uint64) {
		p, err := starlark.Compile("fuzz.star", src, nil)
		if err != nil {
			var e *starlark.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, "fuzz.star", e.File, "%v", err)
			return
		}
		run := p.Begin(starlark.Hooks{})
		cfg := congestion.Config{MSS: 1000, InitialWindow: 10_000, MaxWindow: 1 << 20, Seed: seed}
		c := run.New(cfg)
		r := rand.New(rand.NewPCG(seed, 1))
		now := clock.Time(time.Hour)
		for range 40 {
			now = now.Add(time.Duration(r.Int64N(1e9)))
			anything(r, now, c.Cwnd(), 1000).deliver(c)
			require.LessOrEqual(t, 1000, c.Cwnd())
			require.LessOrEqual(t, c.Cwnd(), cfg.MaxWindow)
			require.LessOrEqual(t, 0, c.Ssthresh())
			require.LessOrEqual(t, int64(0), c.PacingRate())
		}
		if err := run.Err(); err != nil {
			var e *starlark.Error
			require.ErrorAs(t, err, &e)
			require.Positive(t, e.Line, "%v", err)
		}
	})
}
